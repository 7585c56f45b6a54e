"""Where a run keeps what its samples say of validation: beside them, and never rewritten."""

from __future__ import annotations

import re
from pathlib import Path

VALIDATION = re.compile(r"\d{9,18}\.valid\.safetensors")
"""Names of these files."""


def validation_of(sample: Path) -> Path:
    """Of the sample in this file."""
    return sample.with_suffix(".valid.safetensors")

"""What all tables of a recipe share, and how a wrong name is answered."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """Frozen; unknown keys are refused, and numbers that are none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def nearest(name: str, known: Iterable[str]) -> str:
    """'; did you mean …?', or nothing when no known name is near."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""

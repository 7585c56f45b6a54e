"""Which kind of thing does this define? Labelled sentences that may be shipped.

Of WordNet 3.1 (Princeton University, `wordnet.licence.txt`): the label is the file in which its
lexicographers filed the noun (`noun.animal`, …). Taken were the eight files with the most
definitions, and 750 of each by `random.Random(0).sample`, of those definitions of 4 to 30 words in
plain ASCII that stand in one file only, without their examples.
"""

from __future__ import annotations

import lzma
from pathlib import Path

from ..files import read_bytes, write_atomic

SOURCE = "WordNet 3.1, Princeton University"


def write_definitions(path: Path) -> Path:
    """6,000 rows of `text,label`, as CSV; what is there already stays."""
    packed = read_bytes(Path(__file__).with_name("definitions.csv.xz"))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, lzma.decompress(packed))
    return path

"""Which of the K samples to average: the three collections of the paper (Section 4.1)."""

from __future__ import annotations

from typing import TypeVar

from ..errors import LangevinError

T = TypeVar("T")
COLLECTIONS = ("forward", "backward", "thinned")


def name_of_last(how: str) -> str:
    """What to call the last of the chosen samples: thinned and backward collections end with that of the run."""
    return "last sample" if how in ("backward", "thinned") else "last of the collection"


def choose(samples: list[T], how: str, n: int | None = None) -> list[T]:
    """*forward*: the first n; *backward*: the last n; *thinned*: n at the interval K/n, ending with the last.

    >>> choose([1, 2, 3, 4, 5, 6], "thinned", 3)
    [2, 4, 6]
    """
    if how not in COLLECTIONS:
        raise LangevinError(f"select must be one of {', '.join(COLLECTIONS)}, got {how!r}")
    total = len(samples)
    n = total if n is None else n
    if not 1 <= n <= total:
        raise LangevinError(f"expected between 1 and {total} samples, as many as there are, got {n}")
    if how == "forward":
        return samples[:n]
    if how == "backward":
        return samples[total - n :]
    return [samples[(i + 1) * total // n - 1] for i in range(n)]

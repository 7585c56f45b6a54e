"""Readers joined into one: a linear pool, whose parts are all parts of all members.

A member's weight is shared by its parts, so that the pool is one mixture, its entropy and mutual
information are exact, and it is a reader itself. With `adapt` members count on as they can, and the
weights of all parts follow what is read (`switching.py`), by this `share`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import LangevinError
from ..models.reader import Reader
from .mixture import Mixture, log_mixture, mixture
from .switching import SHARE, follow


@dataclass(frozen=True)
class Member:
    """What takes part in a pool, and its weight there."""

    name: str
    reader: Reader
    weight: float = 1.0


class Pool:
    """A reader that is a mixture of readers over the same tokens."""

    def __init__(
        self, members: Sequence[Member], *, adapt: bool = False, share: float = SHARE
    ) -> None:
        refuse_no_pool(members)
        total = sum(member.weight for member in members)
        self.members, self.adapt, self.share = list(members), adapt, share
        self.shares = [member.weight / total for member in members]
        self.begin(1)

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.members]

    @property
    def sizes(self) -> list[int]:
        """How many parts each member has."""
        return [len(member.reader.weights) for member in self.members]

    @property
    def weights(self) -> Tensor:
        """With which the next token is foreseen, [parts, rows]."""
        return self.prior if self.now is None else self.now[:, None]

    @property
    def prior(self) -> Tensor:
        """Those from validation."""
        parts = [share * member.reader.weights.double()
                 for share, member in zip(self.shares, self.members, strict=True)]
        return torch.cat(parts)

    def begin(self, rows: int, given: Tensor | None = None) -> None:
        if self.adapt and rows != 1:
            raise LangevinError(f"expected one text to adapt to, got {rows} rows; read them one "
                                f"after the other, or with adapt=False")
        for member in self.members:
            member.reader.begin(rows, given)
        self.now: Tensor | None = None
        self.read_with = torch.empty(sum(self.sizes), rows, 0, dtype=torch.float64)
        """The weights with which each token of the last chunk was foreseen, [parts, rows, n]."""

    def foresee(self) -> Tensor:
        return self.joined([member.reader.foresee() for member in self.members])

    def read(self, tokens: Tensor) -> Tensor:
        each = [member.reader.read(tokens).cpu().double() for member in self.members]
        return self.weigh(torch.cat(each))

    def foresee_along(self, tokens: Tensor) -> Tensor:
        log_p = self.joined([member.reader.foresee_along(tokens) for member in self.members])
        observed = tokens.cpu().expand(len(log_p), -1, -1)[..., None]
        self.weigh(log_p.gather(-1, observed)[..., 0])
        return log_p

    def joined(self, each: Sequence[Tensor]) -> Tensor:
        """Of all parts of all members, log p of all tokens."""
        refuse_other_tokens(self.names, [log_p.shape[-1] for log_p in each])
        return torch.cat([log_p.cpu().double() for log_p in each])

    def weigh(self, log_p: Tensor) -> Tensor:
        """Remember the weights with which these tokens were foreseen; with `adapt` they move."""
        if self.adapt:
            trace, self.now = follow(log_p[:, 0], self.prior[:, 0], self.now, self.share)
            self.read_with = trace[:, None]
        else:
            self.read_with = self.prior[..., None].expand_as(log_p)
        return log_p

    def take(self, rows: Tensor) -> None:
        self.refuse_rows(len(rows))
        for member in self.members:
            member.reader.take(rows)

    def join(self, other: Reader) -> None:
        if not isinstance(other, Pool) or other.names != self.names:
            raise LangevinError("expected a pool of the same members to join, got another; make "
                                "both by reader() of one posterior")
        self.refuse_rows(self.weights.shape[1] + other.weights.shape[1])
        for ours, theirs in zip(self.members, other.members, strict=True):
            ours.reader.join(theirs.reader)

    def score(self, tokens: Tensor) -> Tensor:
        """Read on: log p̄ of each token, [rows, n]."""
        log_p = self.read(tokens)
        return log_mixture(log_p, self.read_with)

    def next(self) -> Mixture:
        """What comes next, and how far members and samples disagree about it."""
        return mixture(self.foresee(), self.weights, self.sizes)

    def refuse_rows(self, rows: int) -> None:
        if self.adapt and rows != 1:
            raise LangevinError(f"expected one text to adapt to, got {rows} rows; search and "
                                f"batches need adapt=False")


def refuse_no_pool(members: Sequence[Member]) -> None:
    names = [member.name for member in members]
    if not members or len(set(names)) < len(names):
        raise LangevinError(f"expected members of different names to pool, got "
                            f"{', '.join(names) or 'none'}; pass each posterior once")
    weights = [member.weight for member in members]
    if min(weights) < 0 or not 0 < sum(weights) < float("inf"):
        raise LangevinError(f"expected weights of zero or more, and one above, got {weights}; "
                            f"leave them out to have them chosen by validation")


def refuse_other_tokens(names: Sequence[str], sizes: Sequence[int]) -> None:
    """Members over different vocabularies do not foresee the same items."""
    if len(set(sizes)) > 1:
        sizes_text = ", ".join(f"{name} over {size}" for name, size in zip(names, sizes, strict=True))
        raise LangevinError(f"expected members over the same tokens, got {sizes_text}; pool what was "
                            f"trained with one vocabulary")

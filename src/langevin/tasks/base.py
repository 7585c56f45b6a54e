"""What a task must supply to the one training loop, to evaluation and to averaging."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..posterior.scores import Result, Scores
from ..posterior.streaming import Predictions
from ..recipe import Recipe
from .shards import WHOLE, Shard

Carry = Any
"""The detached recurrent state that a batch hands to the next, or None where batches are
independent."""

Batch = tuple[Tensor, ...]
"""What a model sees and what was observed, rows first in every tensor: rows of a batch are a
batch."""


@dataclass(frozen=True)
class Slice:
    """Some items that are predicted at once."""

    observed: Tensor
    logits: Callable[[nn.Module, Carry], tuple[Tensor, Carry]]
    """Model and the state after the slice before → [items, classes] and the state after this."""


Context = tuple[tuple[str, float], ...]
"""Tokens with the score of each; NaN where there is none."""


@dataclass(frozen=True)
class UncertainItem(Result):
    """An item of a split, or a caption, of which the samples are less sure than of others."""

    score: float
    """By which it is ranked."""
    text: str
    """The token, the sentence or the caption."""
    entropy: float
    """In nats; of a caption, as all numbers but log p, the mean over its words."""
    aleatoric: float
    mutual_information: float
    label: str | None = None
    """The class of a sentence."""
    predicted: str | None = None
    """The most probable class, or token."""
    p: float | None = None
    """Of what was observed, under the average."""
    std: float | None = None
    confidence: float | None = None
    """p of the most probable."""
    confidence_std: float | None = None
    disagreement: float | None = None
    """Share of the samples whose own answer is another."""
    log_p: float | None = None
    """Of a whole caption."""
    log_p_std: float | None = None
    source: str | None = None
    """The image."""
    place: tuple[int, int] | None = None
    """Of a token: in which stream, and after how many tokens of it."""
    context: Context = ()
    """The words around it, or of it."""
    at: int | None = None
    """Where in its context it stands."""


class Items(Protocol):
    """What a split asks a model to predict."""

    unit: str
    classes: int
    available: int
    """How many items the whole split has."""
    slices: list[Slice]
    unknown_share: float | None
    """Of what was observed, the share that is <unk>."""

    def most_uncertain(self, made: Predictions, score: Tensor, top: int) -> list[UncertainItem]:
        """The items, or groups of them, of the largest score."""


class Task(Protocol):
    """One job on one data set. Everything else (loop, store, average, report) is shared."""

    name: str
    recipe: Recipe
    vocabulary: Vocabulary
    facts: dict[str, Any]
    """What the run folder remembers of the data and what reopening checks: at least data_sha256 and
    num_data."""
    splits: tuple[str, ...]
    """Those that can be evaluated; "valid" is one of them."""
    score: str
    """The number that early stopping watches; lower is better."""
    unit: str
    """What an item is: token, word or sentence."""
    in_order: bool
    """Whether items depend on their neighbours, as tokens of a text do."""
    num_data: int
    """N: how many terms the mean training loss stands for."""
    batches_per_epoch: int
    fewest_rows: int
    """Rows of the smallest training batch."""
    carries: bool
    """Whether a batch begins with the state in which the one before ended."""

    def add_file(self, path: Path) -> str:
        """Offer a file of the user's as one more split; returns the split's name."""

    def build_model(self) -> nn.Module: ...

    def prior_means(self) -> dict[str, Tensor]:
        """By the name of a parameter, where its Gaussian prior is centred if not at zero."""

    def expect_beginning(self) -> None:
        """Refuse where something is not there that only a run from its beginning needs."""

    def as_sample(self, model: nn.Module) -> nn.Module:
        """What is stored of a model."""

    def loss(
        self, model: nn.Module, epoch: int, index: int, carry: Carry, shard: Shard = WHOLE
    ) -> tuple[Tensor, Carry]:
        """Mean negative log-likelihood of one training batch, and the state for the next.

        Of a shard: what its rows add to that mean, so that the losses of all shards sum to it; and
        their state.
        """

    def training_batch(self, epoch: int, index: int) -> Batch: ...

    def batches_of(self, split: str) -> Iterator[Batch]:
        """A split in batches, in order."""

    def logits(self, model: nn.Module, batch: Batch, carry: Carry) -> tuple[Tensor, Tensor, Carry]:
        """Logits [items, classes] of a batch, row after row; what was observed, [items]; and the
        state after it."""

    def log_probs(
        self, model: nn.Module, split: str, mask_seed: int | None = None, shard: Shard = WHOLE
    ) -> Tensor:
        """Log-probabilities that can be averaged over samples: of each observed token, or of every
        class.

        Dropout is off, or on with the masks of this seed. Those of all shards, one after the other,
        are the whole.
        """

    def observed(self, log_probs: Tensor, split: str) -> Tensor:
        """Of (averaged) log-probabilities those of what was observed, [items]."""

    def items(self, split: str, limit: int) -> Items:
        """The items of a split one by one; `limit` is for tokens, which can be very many."""

    def outcome(self, split: str, place: int) -> str:
        """What stands at a place of the flattened log-probabilities, in words; no two are alike."""

    def scores(self, log_probs: Tensor, split: str) -> Scores:
        """Numbers from (averaged) log-probabilities."""


def refuse_changed_data(corpus: str, sha256: str, facts: dict[str, Any] | None) -> None:
    """Reopening a run with other data than it was trained on would give numbers that mean
    nothing."""
    if facts and facts["data_sha256"] != sha256:
        raise LangevinError(
            f"{corpus} changed since this run began (its sha256 was {facts['data_sha256']}, is {sha256}); "
            f"bring back the old data or train anew"
        )


def refuse_changed_split(split_hash: str, facts: dict[str, Any] | None) -> None:
    if facts and facts["split_sha256"] != split_hash:
        raise LangevinError("the sentences are no longer split as when this run began; use the langevin that began it")


def refuse_changed_vectors(name: object, now: dict[str, Any], facts: dict[str, Any] | None) -> None:
    if facts and facts["vectors_sha256"] != now["vectors_sha256"]:
        raise LangevinError(f"the word vectors {name} changed since this run began; bring back the old ones")

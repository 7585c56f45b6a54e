"""A sequence of tokens → batches of inputs and targets (the inputs shifted by one).

*Successive*: the text is cut into as many streams as a batch has rows; batch i+1 continues batch i, so that the
recurrent state can be carried over. *Random*: each batch is a set of windows from anywhere, to be read from a zero
state. Both are functions of (seed, epoch, index), hence resumable at any batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import LangevinError

Batch = tuple[Tensor, Tensor]


class SuccessiveBatches:
    """Streams side by side; every target is visited once an epoch, in order. The last window may be shorter.

    `tail` are the few tokens after the last stream that did not fill the rows: left out in training, scored in
    evaluation.
    """

    def __init__(self, streams: Tensor, window: int, tail: Tensor | None = None) -> None:
        if streams.shape[1] < 2:
            raise LangevinError(f"expected at least 2 tokens in each of {streams.shape[0]} streams, got "
                                f"{streams.shape[1]}; use a longer text or a smaller batch_size")
        self.streams, self.window = streams, window
        self.tail = streams.new_empty(0) if tail is None else tail

    @property
    def tokens(self) -> int:
        """How many targets an epoch has: the N of the sampler."""
        return self.streams.shape[0] * (self.streams.shape[1] - 1)

    def __len__(self) -> int:
        return -(-(self.streams.shape[1] - 1) // self.window)

    def batch(self, epoch: int, index: int) -> Batch:
        start = index * self.window
        piece = self.streams[:, start : start + self.window + 1]
        return piece[:, :-1], piece[:, 1:]


class RandomBatches:
    """Windows that start anywhere in the text, uniformly, drawn anew in every batch."""

    def __init__(self, sequence: Tensor, rows: int, window: int, seed: int) -> None:
        if len(sequence) < window + 1:
            raise LangevinError(f"expected at least {window + 1} tokens for one window, got {len(sequence)}; "
                                f"use a longer text or a smaller window")
        self.sequence, self.rows, self.window, self.seed = sequence, rows, window, seed

    @property
    def tokens(self) -> int:
        return len(self.sequence) - 1

    def __len__(self) -> int:
        return max(1, self.tokens // (self.rows * self.window))

    def batch(self, epoch: int, index: int) -> Batch:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch * len(self) + index)
        starts = torch.randint(len(self.sequence) - self.window, (self.rows, 1), generator=generator)
        piece = self.sequence[starts + torch.arange(self.window + 1)]
        return piece[:, :-1], piece[:, 1:]


def streams_of(sequence: Tensor, rows: int) -> Tensor:
    """Cut a sequence into `rows` equal streams that overlap by one token, so that no target is lost between them.

    Up to rows−1 tokens at the end do not fit and are left out.
    """
    length = (len(sequence) - 1) // rows
    if length < 1:
        raise LangevinError(
            f"expected at least {rows + 1} tokens for {rows} streams, got {len(sequence)}; "
            f"use a longer text or a smaller batch_size"
        )
    starts = torch.arange(rows)[:, None] * length
    return sequence[starts + torch.arange(length + 1)]


def split_contiguous(sequence: Tensor, parts: tuple[float, float, float]) -> dict[str, Tensor]:
    """Train, validation and test as consecutive pieces of the text."""
    total = sum(parts)
    first = round(len(sequence) * parts[0] / total)
    second = round(len(sequence) * (parts[0] + parts[1]) / total)
    return {"train": sequence[:first], "valid": sequence[first:second], "test": sequence[second:]}


def split_streams(sequence: Tensor, rows: int, window: int, parts: tuple[int, int, int]) -> dict[str, Tensor]:
    """char-rnn's split, which the paper follows: cut the whole text into streams first, then split along time.

    `parts` count batches of rows × window tokens; 260 + 32 + 33 for War and Peace.
    """
    batches = (len(sequence) - 1) // (rows * window)
    if batches < sum(parts):
        raise LangevinError(
            f"expected {sum(parts)} batches of {rows}×{window} tokens, the text has {batches}; "
            f"use a longer text or another split"
        )
    streams = streams_of(sequence[: batches * rows * window + 1], rows)
    edges = [0, parts[0] * window, (parts[0] + parts[1]) * window, sum(parts) * window]
    return {
        name: streams[:, start : end + 1]
        for name, start, end in zip(("train", "valid", "test"), edges[:-1], edges[1:], strict=True)
    }

"""A sequence of tokens → splits → batches of inputs and targets (the inputs shifted by one).

*Successive*: the text is cut into as many streams as a batch has rows; batch i+1 continues batch i,
so that the recurrent state can be carried over. *Random*: each batch is a set of windows from
anywhere, to be read from a zero state. Both are functions of (seed, epoch, index), hence resumable
at any batch. A sequence keeps the small type in which it was encoded; a batch is of int64, which
models read.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import LangevinError

Batch = tuple[Tensor, Tensor]


class SuccessiveBatches:
    """Streams side by side; every target is visited once an epoch, in order.

    The last window may be shorter. `tail` are the few tokens after the last stream that did not
    fill the rows: left out in training, scored in evaluation.
    """

    def __init__(self, streams: Tensor, window: int, tail: Tensor | None = None) -> None:
        if streams.shape[1] < 2:
            raise LangevinError(
                f"expected at least 2 tokens in each of {streams.shape[0]} streams, got "
                f"{streams.shape[1]}; use a longer text or a smaller batch_size"
            )
        self.streams, self.window = streams, window
        self.tail = streams.new_empty(0) if tail is None else tail

    @classmethod
    def of(cls, sequence: Tensor, rows: int, window: int) -> SuccessiveBatches:
        """All of a sequence: `rows` streams, and what is left after them as the tail."""
        streams = streams_of(sequence, rows)
        return cls(streams, window, sequence[rows * (streams.shape[1] - 1) + 1 :])

    @property
    def tokens(self) -> int:
        """How many targets an epoch has: the N of the sampler."""
        return self.streams.shape[0] * (self.streams.shape[1] - 1)

    @property
    def sequence(self) -> Tensor:
        """The streams one after the other, without the tokens in which they overlap."""
        joined = self.streams.new_empty(self.tokens + 1)
        joined[:-1].view(len(self.streams), -1).copy_(self.streams[:, :-1])
        joined[-1] = self.streams[-1, -1]
        return joined

    @property
    def texts(self) -> list[Tensor]:
        """What is read from beginning to end: the first token of each is given, the others are
        observed. Joined they are the targets, stream after stream, and the tail.

        Streams that follow one another are one text; those of char-rnn's split are not.
        """
        if bool((self.streams[:-1, -1] == self.streams[1:, 0]).all()):
            return [torch.cat([self.sequence, self.tail])]
        return [*self.streams[:-1], torch.cat([self.streams[-1], self.tail])]

    @property
    def rest(self) -> Tensor:
        """The end of the last stream and the tail, [1, tail + 1], to be read on from there."""
        return torch.cat([self.streams[-1, -1:], self.tail])[None].long()

    def some(self, rows: slice) -> SuccessiveBatches:
        """Some of the streams, which may be none; the tail goes with the last."""
        last = rows.stop == len(self.streams)
        return SuccessiveBatches(self.streams[rows], self.window, self.tail if last else None)

    def __len__(self) -> int:
        return -(-(self.streams.shape[1] - 1) // self.window)

    def batch(self, epoch: int, index: int) -> Batch:
        start = index * self.window
        piece = self.streams[:, start : start + self.window + 1].long()
        return piece[:, :-1], piece[:, 1:]


class RandomBatches:
    """Windows that start anywhere in the text, uniformly, drawn anew in every batch."""

    def __init__(self, sequence: Tensor, rows: int, window: int, seed: int) -> None:
        if len(sequence) < window + 1:
            raise LangevinError(f"expected at least {window + 1} tokens for one window, got "
                                f"{len(sequence)}; use a longer text or a smaller window")
        self.sequence, self.rows, self.window, self.seed = sequence, rows, window, seed

    @property
    def tokens(self) -> int:
        return len(self.sequence) - 1

    def __len__(self) -> int:
        return max(1, self.tokens // (self.rows * self.window))

    def batch(self, epoch: int, index: int) -> Batch:
        seed = self.seed * 1_000_003 + epoch * len(self) + index
        generator = torch.Generator().manual_seed(seed)
        last = len(self.sequence) - self.window
        starts = torch.randint(last, (self.rows, 1), generator=generator)
        piece = self.sequence[starts + torch.arange(self.window + 1)].long()
        return piece[:, :-1], piece[:, 1:]


def streams_of(sequence: Tensor, rows: int) -> Tensor:
    """Cut a sequence into `rows` equal streams that overlap by one token: no target is lost there.

    Up to rows−1 tokens at the end do not fit and are left out. Nothing is copied.
    """
    length = (len(sequence) - 1) // rows
    if length < 1:
        raise LangevinError(
            f"expected at least {rows + 1} tokens for {rows} streams, got {len(sequence)}; "
            f"use a longer text or a smaller batch_size"
        )
    return sequence.unfold(0, length + 1, length)[:rows]


def split_contiguous(sequence: Tensor, parts: tuple[float, float, float]) -> dict[str, Tensor]:
    """Train, validation and test as consecutive pieces of the text."""
    total = sum(parts)
    first = round(len(sequence) * parts[0] / total)
    second = round(len(sequence) * (parts[0] + parts[1]) / total)
    return {"train": sequence[:first], "valid": sequence[first:second], "test": sequence[second:]}


def split_streams(
    sequence: Tensor, rows: int, window: int, parts: tuple[int, int, int]
) -> dict[str, Tensor]:
    """char-rnn's split, which the paper follows: cut the whole text into streams, then along time.

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


def batches_of_splits(
    pieces: dict[str, Tensor], rows: int, window: int
) -> dict[str, SuccessiveBatches]:
    """Each piece of a text as streams side by side; what does not fill them comes after the last.

    Training has `rows` streams, the other pieces as many as they have windows for.
    """
    batches = {}
    for name, piece in pieces.items():
        needed = rows * 2 + 1 if name == "train" else 2
        if len(piece) < needed:
            raise LangevinError(
                f"the text is too short: {len(piece)} tokens of {sum(map(len, pieces.values()))} "
                f"are for {name}, at least {needed} are needed with batch_size {rows}; "
                f"use a longer text or a smaller batch_size"
            )
        fitting = rows if name == "train" else max(1, min(rows, len(piece) // (window + 1)))
        batches[name] = SuccessiveBatches.of(piece, fitting, window)
    return batches

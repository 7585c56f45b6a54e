"""Language modelling: the likelihood of each next token."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.batching import RandomBatches, SuccessiveBatches, batches_of_splits, split_contiguous, split_streams
from ..data.corpora import Corpus, corpus_sha256, open_text, read_corpus
from ..data.vocabulary import Vocabulary, number_words
from ..errors import LangevinError
from ..models.initial import initialise
from ..models.language_model import LanguageModel
from ..models.recurrent import detach
from ..models.softmax import cross_entropy
from ..posterior.scores import Scores
from ..recipe import Recipe, TextData
from .base import Batch, Carry, refuse_changed_data
from .items import TextItems
from .shards import WHOLE, Shard


class LanguageModelTask:
    """Bytes, characters or words of one text, in three splits."""

    name, score, unit, in_order = "language-model", "nll", "token", True

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary | None = None, facts: dict[str, Any] | None = None
    ) -> None:
        data = recipe.data
        assert isinstance(data, TextData)
        self.recipe, self.data = recipe, data
        corpus = read_corpus(data.corpus)
        sha256 = corpus_sha256(corpus)
        refuse_changed_data(data.corpus, sha256, facts)
        self.vocabulary = vocabulary or self.build_vocabulary(corpus)
        self.carries = data.batching == "successive"
        pieces = {name: self.vocabulary.encode_text(text) for name, text in corpus.items()}
        self.evaluated = (self.split(pieces["text"]) if "text" in pieces
                          else batches_of_splits(pieces, data.batch_size, data.window))
        self.training: SuccessiveBatches | RandomBatches = self.evaluated["train"]
        if not self.carries:
            self.training = RandomBatches(self.training.sequence, data.batch_size, data.window, recipe.run.seed)
        self.num_data, self.batches_per_epoch = self.training.tokens, len(self.training)
        self.fewest_rows = data.batch_size
        self.facts = {"data_sha256": sha256, "num_data": self.num_data}
        self.unknown, self.bytes = dict[str, float](), dict[str, int | None]()

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.evaluated)

    def build_vocabulary(self, corpus: Corpus) -> Vocabulary:
        """The words of the training split, others become `<unk>`; the characters of the whole text;
        all bytes.

        Where the text is split as by char-rnn, bytes are also counted as there: those that it has.
        """
        data, text = self.data, corpus.get("text", corpus.get("train"))
        assert text is not None
        limits: dict[str, Any] = {"min_count": data.min_count, "max_size": data.max_vocab, "running": data.running}
        if data.level == "byte" and data.split == "streams":
            return Vocabulary.of_seen_bytes(text)
        if "text" not in corpus or data.level != "word":
            return Vocabulary.build(text, data.level, **limits)
        sequence, words = number_words(text, running=data.running)
        streams = self.split(sequence)["train"].streams
        counts = torch.zeros(len(words), dtype=torch.long)
        for row in streams:
            counts += torch.bincount(row[:-1], minlength=len(words))
        seen = {word: count for word, count in zip(words, counts.tolist(), strict=True) if count}
        return Vocabulary.of_text(seen, unknown=True, **limits)

    def split(self, sequence: Tensor) -> dict[str, SuccessiveBatches]:
        """Train, validation and test from one text."""
        data = self.data
        if data.split == "streams":
            train, valid, test = (int(part) for part in data.parts)
            streams = split_streams(sequence, data.batch_size, data.window, (train, valid, test))
            return {name: SuccessiveBatches(piece, data.window) for name, piece in streams.items()}
        return batches_of_splits(split_contiguous(sequence, data.parts), data.batch_size, data.window)

    def add_file(self, path: Path) -> str:
        """Offer another text, in the model's vocabulary, as the split "text"."""
        sequence = self.vocabulary.encode_text(open_text(path))
        if len(sequence) < 2:
            raise LangevinError(f"expected at least 2 tokens to score, got {len(sequence)}; use a longer text")
        self.evaluated |= batches_of_splits({"text": sequence}, self.data.batch_size, self.data.window)
        for known in (self.unknown, self.bytes):
            known.pop("text", None)
        return "text"

    def add_training(self, tokens: Tensor) -> None:
        """Train on these streams too, [rows, time]: each follows one of the training streams."""
        streams = self.evaluated["train"].streams
        if isinstance(self.training, RandomBatches):
            joint = torch.cat([self.training.sequence, tokens.flatten()])
            self.training = RandomBatches(joint, self.data.batch_size, self.data.window, self.recipe.run.seed)
        else:
            self.training = SuccessiveBatches(torch.cat([streams, tokens], 1), self.data.window)
        self.num_data, self.batches_per_epoch = self.training.tokens, len(self.training)

    def build_model(self) -> LanguageModel:
        return recorded_language_model(self.recipe, self.vocabulary)

    def prior_means(self) -> dict[str, Tensor]:
        return {}

    def expect_beginning(self) -> None:
        """All is there."""

    def as_sample(self, model: nn.Module) -> nn.Module:
        return model

    def loss(
        self, model: nn.Module, epoch: int, index: int, carry: Carry, shard: Shard = WHOLE
    ) -> tuple[Tensor, Carry]:
        """Mean over the tokens of the batch; the last window of an epoch, if it is shorter, counts
        by its tokens."""
        batch = self.training_batch(epoch, index)
        with shard.cut(batch) as own:
            logits, targets, after = self.logits(model, own, carry if index else None)
        batches, tokens = (self.batches_per_epoch, self.num_data) if self.carries else (1, batch[1].numel())
        return cross_entropy(logits, targets, targets.numel() * batches / tokens), after

    def training_batch(self, epoch: int, index: int) -> Batch:
        return self.training.batch(epoch, index)

    def batches_of(self, split: str) -> Iterator[Batch]:
        """The streams of a split, without the few tokens after the last of them."""
        batches = self.evaluated[split]
        return (batches.batch(0, index) for index in range(len(batches)))

    def logits(self, model: nn.Module, batch: Batch, carry: Carry) -> tuple[Tensor, Tensor, Carry]:
        inputs, targets = batch
        device = next(model.parameters()).device
        logits, after = model(inputs.to(device), carry if self.carries else None)
        return logits.flatten(0, 1), targets.to(device).flatten(), detach(after) if self.carries else None

    @torch.no_grad()
    def log_probs(
        self, model: nn.Module, split: str, mask_seed: int | None = None, shard: Shard = WHOLE
    ) -> Tensor:
        """log p of every observed token of the split; state is carried along each stream for
        successive models."""
        model.train(mask_seed is not None)
        if mask_seed is not None:
            torch.manual_seed(mask_seed)
        batches = self.evaluated[split]
        return score_streams(model, batches.some(shard.span(len(batches.streams))), carries=self.carries)

    def observed(self, log_probs: Tensor, split: str) -> Tensor:
        return log_probs

    def items(self, split: str, limit: int) -> TextItems:
        batches = self.evaluated[split]
        return TextItems(self.vocabulary, batches, limit, carries=self.carries)

    def outcome(self, split: str, place: int) -> str:
        batches = self.evaluated[split]
        targets = batches.streams[:, 1:]
        last = place - targets.numel()
        token = int(targets[divmod(place, targets.shape[1])] if last < 0 else batches.tail[last])
        return f"{self.vocabulary.token_text(token)!r}, token {place + 1:,}"

    def scores(self, log_probs: Tensor, split: str) -> Scores:
        """Mean negative log-likelihood per token in nats, its exponential, and bits of a byte."""
        nll, tokens = -log_probs.double().mean().item(), log_probs.numel()
        read = self.byte_count(split)
        return Scores(
            nll, tokens, perplexity=math.exp(min(nll, 700.0)),
            bits_per_byte=nll * tokens / math.log(2) / read if read else None,
            unknown_share=self.unknown_share(split),
        )  # fmt: skip

    def byte_count(self, split: str) -> int | None:
        """Of the observed tokens of a split; None where they cannot be turned back into bytes."""
        batches = self.evaluated[split]
        if split not in self.bytes:
            seen = torch.cat([batches.streams[:, 1:].flatten(), batches.tail])
            self.bytes[split] = self.vocabulary.byte_count(seen)
        return self.bytes[split]

    def unknown_share(self, split: str) -> float | None:
        """Of the words or characters of a split, those that are <unk>; None of bytes."""
        if self.vocabulary.unknown is None:
            return None
        if split not in self.unknown:
            batches = self.evaluated[split]
            seen = torch.cat([batches.streams[:, 1:].flatten(), batches.tail])
            self.unknown[split] = self.vocabulary.unknown_share(seen)
        return self.unknown[split]


def recorded_language_model(recipe: Recipe, vocabulary: Vocabulary, facts: dict[str, Any] | None = None) -> LanguageModel:
    """The model of a recipe with its first weights."""
    m = recipe.model
    model = LanguageModel(
        len(vocabulary), cell=m.cell, embed=m.embed or m.hidden, hidden=m.hidden, layers=m.layers, dropout=m.dropout,
        dropout_kind=m.dropout_kind, tied=m.tied,
    )
    initialise(model, m.init, m.init_scale, m.forget_bias, recipe.run.seed)
    return model


def score_streams(model: nn.Module, batches: SuccessiveBatches, *, carries: bool) -> Tensor:
    """log p of each target: stream after stream, then the tail that continues the last stream."""
    if not len(batches.streams):
        return torch.empty(0)
    carry, pieces = None, []
    for index in range(len(batches)):
        log_p, after = score(model, *batches.batch(0, index), carry)
        carry = after if carries else None
        pieces.append(log_p)
    scored = torch.cat(pieces, dim=1).flatten()
    if not len(batches.tail):
        return scored
    last = [tuple(part[:, -1:].contiguous() for part in state) for state in carry] if carry else None
    rest = batches.rest
    return torch.cat([scored, score(model, rest[:, :-1], rest[:, 1:], last)[0].flatten()])


def score(model: nn.Module, inputs: Tensor, targets: Tensor, carry: Carry) -> tuple[Tensor, Carry]:
    """log p of the targets, on the CPU, and the state after them."""
    device = next(model.parameters()).device
    logits, after = model(inputs.to(device), carry)
    nll = F.cross_entropy(logits.flatten(0, 1), targets.to(device).flatten(), reduction="none")
    return -nll.view(targets.shape).cpu(), after

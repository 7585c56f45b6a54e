"""Language modelling: the likelihood of each next token."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.batching import RandomBatches, SuccessiveBatches, split_contiguous, split_streams, streams_of
from ..data.corpora import read_corpus, sha256
from ..data.vocab import Vocabulary
from ..errors import LangevinError
from ..nn.initialise import initialise
from ..nn.language_model import LanguageModel
from ..nn.recurrent import detach
from ..recipe import Recipe
from .base import Carry


class LanguageModelTask:
    """Bytes, characters or words of one text, in three splits."""

    name, score = "language-model", "nll"

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary | None = None, expected_sha256: str | None = None
    ) -> None:
        self.recipe, data = recipe, recipe.data
        raw = read_corpus(data.corpus)
        self.data_sha256 = sha256(raw)
        if expected_sha256 not in (None, self.data_sha256):
            raise LangevinError(
                f"{data.corpus} changed since this run began (its sha256 was {expected_sha256}, "
                f"is {self.data_sha256}); bring back the old text or train anew"
            )
        self.vocabulary = vocabulary or Vocabulary.build(
            raw, data.level, min_count=data.min_count, max_size=data.max_vocab
        )
        splits = self.split(self.vocabulary.encode(raw))
        self.carries = data.batching == "successive"
        self.evaluated = {name: SuccessiveBatches(streams, data.window) for name, streams in splits.items()}
        self.training: SuccessiveBatches | RandomBatches = self.evaluated["train"]
        if not self.carries:
            sequence = torch.cat([self.training.streams[:, :-1].flatten(), self.training.streams[-1, -1:]])
            self.training = RandomBatches(sequence, data.batch_size, data.window, recipe.run.seed)
        self.num_data, self.batches_per_epoch = self.training.tokens, len(self.training)

    def split(self, sequence: Tensor) -> dict[str, Tensor]:
        """Train, validation and test, each as streams of tokens side by side."""
        data = self.recipe.data
        if data.split == "streams":
            train, valid, test = (int(part) for part in data.parts)
            return split_streams(sequence, data.batch_size, data.window, (train, valid, test))
        pieces = split_contiguous(sequence, data.parts)
        for name, piece in pieces.items():
            needed = data.batch_size * 2 + 1 if name == "train" else 2
            if len(piece) < needed:
                raise LangevinError(
                    f"the text is too short: {len(sequence)} tokens leave {len(piece)} for {name}, at least {needed} "
                    f"are needed with batch_size {data.batch_size}; use a longer text or a smaller batch_size"
                )
        rows = {name: max(1, min(data.batch_size, len(p) // (data.window + 1))) for name, p in pieces.items()}
        return {name: streams_of(piece, rows[name]) for name, piece in pieces.items()}

    def add_text(self, raw: bytes) -> None:
        """Offer another text, in the model's vocabulary, as the split "text"."""
        sequence = self.vocabulary.encode(raw)
        if len(sequence) < 2:
            raise LangevinError(f"expected at least 2 tokens to score, got {len(sequence)}; use a longer text")
        rows = max(1, min(self.recipe.data.batch_size, len(sequence) // 1000))
        self.evaluated["text"] = SuccessiveBatches(streams_of(sequence, rows), self.recipe.data.window)

    def build_model(self) -> LanguageModel:
        m = self.recipe.model
        model = LanguageModel(
            len(self.vocabulary), cell=m.cell, embed=m.embed or m.hidden, hidden=m.hidden, layers=m.layers,
            dropout=m.dropout, dropout_kind=m.dropout_kind, dropconnect=m.dropconnect, tied=m.tied,
        )
        initialise(model, m.init, m.init_scale, m.forget_bias, self.recipe.run.seed)
        return model

    def loss(self, model: nn.Module, epoch: int, index: int, carry: Carry) -> tuple[Tensor, Carry]:
        inputs, targets = self.training.batch(epoch, index)
        device = next(model.parameters()).device
        logits, after = model(inputs.to(device), carry if self.carries and index else None)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.to(device).flatten())
        return loss, detach(after) if self.carries else None

    def terms(self, index: int) -> int:
        inputs, _ = self.training.batch(0, index)
        return inputs.numel()

    @torch.no_grad()
    def log_probs(self, model: nn.Module, split: str) -> Tensor:
        """log p of every observed token of the split, in reading order of the streams; state is carried throughout."""
        return score_streams(model, self.evaluated[split], carries=self.carries)

    def metrics(self, log_probs: Tensor, split: str) -> dict[str, float]:
        """Mean negative log-likelihood per token in nats, and its exponential."""
        nll = -log_probs.double().mean().item()
        return {"nll": nll, "perplexity": math.exp(min(nll, 700.0)), "tokens": log_probs.numel()}


def score_streams(model: nn.Module, batches: SuccessiveBatches, *, carries: bool) -> Tensor:
    """log p of each target, flat."""
    device = next(model.parameters()).device
    model.eval()
    carry, pieces = None, []
    for index in range(len(batches)):
        inputs, targets = batches.batch(0, index)
        logits, after = model(inputs.to(device), carry)
        carry = after if carries else None
        nll = F.cross_entropy(logits.flatten(0, 1), targets.to(device).flatten(), reduction="none")
        pieces.append(-nll.view(targets.shape).cpu())
    return torch.cat(pieces, dim=1).flatten()

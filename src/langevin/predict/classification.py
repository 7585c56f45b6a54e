"""Texts → class probabilities averaged over the draws of a posterior, with their uncertainty.

The data of training need not be there, but for what asks about a split.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..data.buckets import in_length_order
from ..data.folds import check_split
from ..errors import LangevinError
from ..models.reading import StateReader, TextReader
from ..posterior.risk import DecisionRule
from ..posterior.streaming import predictive
from ..posterior.uncertainty import Predictive, uncertainty_score
from ..process import SILENT, Progress
from ..recipe import SentenceData
from ..tasks.classification import ClassifyTask, log_probs_of, open_reader
from .base import Posterior
from .decision import (
    AUTO,
    Decision,
    LabelledPredictions,
    RiskTarget,
    decide_splits,
    label_split,
    learn,
    why_inexact,
)
from .rules import keep_rule, kept_rule, last_target
from .opened import Opened
from .results import Prediction

AT_ONCE = 1 << 22
"""Probabilities of all draws that are held at once: 16 MB."""


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as they are read, and what was out of the ordinary about each."""

    texts: list[str]
    sentences: list[Tensor]
    empty: list[bool]
    """No word at all: the answer is the shares of the classes in training."""
    cut: list[bool]
    """Longer than what is read; what follows was not."""
    means: Tensor | None = None
    """The mean state of each text, where an encoder reads them."""

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int]) -> EncodedTexts:
        """Some of them."""
        return EncodedTexts(
            [self.texts[row] for row in rows], [self.sentences[row] for row in rows],
            [self.empty[row] for row in rows], [self.cut[row] for row in rows],
            None if self.means is None else self.means[list(rows)],
        )  # fmt: skip

    def with_words(self) -> EncodedTexts:
        return self.take([row for row, none in enumerate(self.empty) if not none])

    def pieces(self, rows: int) -> Iterator[EncodedTexts]:
        """So many at a time."""
        for first in range(0, len(self), rows):
            yield self.take(range(first, min(first + rows, len(self))))


class ClassificationPosterior(Posterior):
    """A classifier of sentences. Every answer about sentences comes from here."""

    noun, maker = "classifier", "'langevin train --task classify'"

    def __init__(self, opened: Opened, device: torch.device) -> None:
        super().__init__(opened, device)
        missing = [key for key in ("labels", "label_names", "tokens", "embed")
                   if key not in self.facts]
        if missing:
            raise LangevinError(f"the folder is damaged: {self.path} does not tell its "
                                f"{missing[0]}; train the run again")
        assert isinstance(self.recipe.data, SentenceData)
        self.settings: SentenceData = self.recipe.data
        self.labels: list[str] = self.facts["labels"]
        """As they stand in the training file."""
        self.label_names: list[str] = self.facts["label_names"]
        """What people read, where the data set has names for its labels."""

    @cached_property
    def fingerprint(self) -> str:
        """One hash of the averaged samples: what was learnt with them is not for others."""
        return hashlib.sha256("".join(draw.sha256 for draw in self.draws).encode()).hexdigest()[:16]

    @property
    def has_dropout(self) -> bool:
        return bool(self.recipe.model.dropout)

    @property
    def task(self) -> ClassifyTask:
        """The labelled sentences of training, validation and test; these must still be there."""
        assert isinstance(self.data, ClassifyTask)
        return self.data

    @property
    def rule(self) -> DecisionRule | None:
        """Which answers to accept: the rule that was last asked for, where one is kept."""
        folder = self.opened.folder
        if folder is None:
            return None
        return kept_rule(folder.path, last_target(folder.path), self.fingerprint, len(self))

    def predict(self, texts: str | Sequence[str]) -> list[Prediction]:
        """One prediction for each text, the same as by `langevin classify`."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        encoded = self.encode(texts, free=True)
        return self.predictions(encoded, self.predictive(encoded), self.rule)

    def decide(
        self, risk: float | None = None, coverage: float | None = None, *,
        confidence: float | None = None, statistic: str = AUTO, progress: Progress = SILENT,
    ) -> Decision:
        """Learn on validation which answers to accept, keep the rule, test what it promises.

        The accepted answers are wrong in at most `risk` of cases, but for chance 1 − `confidence`;
        or the surest share `coverage` is accepted, which promises nothing.
        """
        target = RiskTarget.parse(risk, coverage, confidence, statistic)
        if target is None:
            raise LangevinError("expected a risk or a coverage, got neither; such as risk=0.05")
        splits = self.predict_splits(("valid", "test"), progress)
        rule = learn(target, splits["valid"])
        if self.opened.folder is not None:
            keep_rule(self.opened.folder.path, target, self.fingerprint, len(self), rule)
        return decide_splits(
            target, rule, splits, run=str(self.path), samples=len(self),
            skipped=tuple(self.opened.chosen.skipped), caution=self.caution(rule),
        )  # fmt: skip

    def rule_for(
        self, target: RiskTarget | None = None, progress: Progress = SILENT
    ) -> DecisionRule:
        """The rule for a target, or for the last one: as it is kept, or learnt now and kept."""
        folder = self.opened.folder
        if folder is None:
            raise LangevinError(f"expected a run folder to learn decisions in, {self.path} is an "
                                f"exported model; use the run that it was made from")
        target = target or last_target(folder.path)
        rule = kept_rule(folder.path, target, self.fingerprint, len(self))
        if rule is None:
            rule = learn(target, self.predict_splits(("valid",), progress)["valid"])
        keep_rule(folder.path, target, self.fingerprint, len(self), rule)
        return rule

    def caution(self, rule: DecisionRule) -> str | None:
        """Why what a rule promises is not exact; None where it is, or nothing is promised."""
        return why_inexact(self.opened) if rule.target == "risk" else None

    @cached_property
    def reader(self) -> TextReader:
        """What reads texts as the network wants them."""
        return open_reader(self.recipe, self.vocabulary, self.facts)

    @property
    def limit(self) -> str:
        """How much of a text is read, in words."""
        if isinstance(self.reader, StateReader):
            return f"{self.reader.encoder.limit} tokens, as many as the encoder reads"
        return f"{self.settings.max_words} words (max_words of the run)"

    def encode(self, texts: Sequence[str], *, free: bool = False) -> EncodedTexts:
        """Texts as in training; `free` ones are not cut into tokens as the run expects it."""
        read = self.reader.read(texts, free=free)
        return EncodedTexts(list(texts), read.sentences, read.empty, read.cut, read.means)

    def split(self, name: str) -> EncodedTexts:
        """The sentences of a split, as the run was trained on them."""
        check_split(name, self.task.splits)
        texts, sentences = self.task.texts[name], self.task.sentences[name]
        empty = [not len(own) for own in sentences]
        return EncodedTexts(texts, sentences, empty, [False] * len(texts), self.task.means.get(name))

    def predict_splits(
        self, names: Sequence[str], progress: Progress = SILENT
    ) -> dict[str, LabelledPredictions]:
        """Predictions of those of these splits that the run has."""
        found = {}
        for name in names:
            if name in self.task.splits:
                predicted = self.predictive(self.split(name).with_words(), progress)
                found[name] = label_split(self.task, name, predicted)
        return found

    def predictive(self, encoded: EncodedTexts, progress: Progress = SILENT) -> Predictive:
        """Mean and spread over the draws, and the parts of the uncertainty, of each text."""
        return Predictive.cat(map(predictive, self.each_piece(encoded, progress)))

    def each_piece(self, encoded: EncodedTexts, progress: Progress = SILENT) -> Iterator[Tensor]:
        """`log_probs` of all texts, piece by piece, so that memory does not grow with them."""
        if not len(encoded):
            raise LangevinError("expected at least one text, got none")
        rows = max(1, AT_ONCE // (len(self) * len(self.labels)))
        advance = progress.begin(-(-len(encoded) // rows), "texts")
        for piece in encoded.pieces(rows):
            yield self.log_probs(piece)
            advance()

    @torch.no_grad()
    def log_probs(self, encoded: EncodedTexts) -> Tensor:
        """log p of every class under every draw, [draws, texts, classes].

        Draws that fit in memory stay there and run as one ensemble; of others one is read after
        the other.
        """
        if len(self.ensemble.chunks) > 1:
            found = []
            for draw in self.draws:
                draw.load_into(self.model)
                found.append(log_probs_of(self.model, encoded.sentences))
            return torch.stack(found)

        def run(tokens: Tensor, lengths: Tensor) -> Tensor:
            each = self.ensemble.log_probs(
                tokens.to(self.device), lengths.to(self.device), each=True
            ).each
            assert each is not None
            return each.cpu()

        return in_length_order(encoded.sentences, run, dim=1)

    def masked_log_probs(self, encoded: EncodedTexts, masks: int) -> Iterator[Tensor]:
        """log p of every class under so many dropout masks of the last sample."""
        if not self.has_dropout:
            raise LangevinError(f"Monte-Carlo dropout needs a model trained with dropout, "
                                f"{self.path} has none")
        self.draws[-1].load_into(self.model)
        for mask in range(masks):
            yield log_probs_of(self.model, encoded.sentences, mask)

    def predictions(
        self, encoded: EncodedTexts, found: Predictive, rule: DecisionRule | None
    ) -> list[Prediction]:
        """What is said about each text; empty ones are never accepted."""
        accepted: list[bool | None] = [None] * len(encoded)
        if rule is not None:
            sure = rule.decide(uncertainty_score(rule.statistic, found)).tolist()
            accepted = [yes and not none for yes, none in zip(sure, encoded.empty, strict=True)]
        columns = zip(
            found.label.tolist(), found.probabilities.tolist(), found.std.tolist(),
            found.total.tolist(), found.epistemic.tolist(), accepted, encoded.empty, encoded.cut,
            encoded.texts, strict=True,
        )  # fmt: skip
        labels = self.labels
        return [
            Prediction(labels[at], dict(zip(labels, p, strict=True)),
                       dict(zip(labels, std, strict=True)), *rest)
            for at, p, std, *rest in columns
        ]


def imbalance(facts: Mapping[str, Any]) -> str | None:
    """How far the classes are from equal shares, in words; None where they nearly are."""
    counts, names = facts["class_counts"], facts["label_names"]
    most, least = max(counts), min(counts)
    if most <= 1.5 * least:
        return None
    often = names[counts.index(most)]
    times = f"{most / least:.1f} times" if least else "infinitely"
    return (f"unequal classes: {often!r} is {times} as frequent as {names[counts.index(least)]!r}; "
            f"always answering {often!r} would be wrong in {1 - most / sum(counts):.1%} of the "
            f"training sentences")

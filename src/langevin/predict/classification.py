"""Texts → class probabilities averaged over draws, and their uncertainty; splits need the data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property

import torch
from torch import Tensor

from ..data.buckets import in_length_order
from ..data.folds import check_split
from ..errors import LangevinError
from ..models.reading import TextReader
from ..posterior.conformal import SetRule, learn_sets, score_sets
from ..posterior.risk import DecisionRule
from ..posterior.streaming import predictive
from ..posterior.uncertainty import Predictive
from ..process import SILENT, Progress
from ..recipe import SentenceData
from ..store.linear_members import LinearMembers
from ..tasks.classification import ClassifyTask, log_probs_of, open_reader
from ..tasks.members import pool_members
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
from .rules import keep_rule, keep_sets, kept_rule, kept_sets, last_target
from .encoded import EncodedTexts, make_predictions
from .linear_pool import add_linear_pool, open_members, predictions_of
from .opened import Opened
from .prediction_sets import PredictionSets
from .ranking import TOKENS, RankedItems, rank_items
from .results import Evaluation, Prediction

AT_ONCE = 1 << 22
"""Probabilities of all draws that are held at once: 16 MB."""


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
        """One hash of what is averaged: what was learnt with it is not for others."""
        sums = [draw.sha256 for draw in self.draws]
        if self.members is not None:
            record = self.members.record
            sums += [*record.files.values(), *map(str, record.weights.values())]
        return hashlib.sha256("".join(sums).encode()).hexdigest()[:16]

    @cached_property
    def members(self) -> LinearMembers | None:
        """Linear parts that answer together with the samples, where the run has some."""
        return open_members(self.opened)

    @property
    def pool_draws(self) -> int:
        """Draws of the answer: members with fewer begin again."""
        parts = self.members.parts.values() if self.members else ()
        return max([len(self), *(part.draws for part in parts)])

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
        if self.opened.folder is None:
            return None
        path = self.opened.folder.path
        return kept_rule(path, last_target(path), self.fingerprint, self.pool_draws)

    @property
    def set_rule(self) -> SetRule | None:
        """Which classes stand in the set of a text: the rule that was learnt last."""
        folder = self.opened.folder
        return kept_sets(folder.path, self.fingerprint) if folder else None

    def predict(self, texts: str | Sequence[str]) -> list[Prediction]:
        """One prediction for each text, the same as by `langevin classify`."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        encoded = self.encode(texts, free=True)
        found = self.predictive(encoded)
        return make_predictions(self.labels, encoded, found, self.rule, self.set_rule)

    def decide(
        self, risk: float | None = None, coverage: float | None = None, *,
        cost: float | None = None, confidence: float | None = None, statistic: str = AUTO,
        progress: Progress = SILENT,
    ) -> Decision:
        """Learn on validation which answers to accept, keep the rule, test what it promises.

        Accepted answers are wrong in at most `risk` of cases, but for chance 1 − `confidence`. The
        surest share `coverage`, or what is cheapest at a `cost` of an error, promise nothing.
        """
        target = RiskTarget.parse(risk, coverage, confidence, statistic, cost)
        if target is None:
            raise LangevinError("expected a risk or a coverage, got neither; such as risk=0.05")
        splits = self.predict_splits(("valid", "test"), progress)
        rule = learn(target, splits["valid"])
        if self.opened.folder is not None:
            keep_rule(self.opened.folder.path, target, self.fingerprint, self.pool_draws, rule)
        return decide_splits(
            target, rule, splits, run=str(self.path), samples=len(self),
            skipped=tuple(self.opened.chosen.skipped), caution=self.caution(rule),
        )  # fmt: skip

    def sets(self, alpha: float = 0.1, progress: Progress = SILENT) -> PredictionSets:
        """Learn on validation which classes stand in the set of a text, keep that, test it.

        The true class is missing from at most a share `alpha` of the sets of new texts.
        """
        rule = self.set_rule_for(alpha, progress, anew=True)
        test = None
        if "test" in self.task.splits:
            found = self.predictive(self.split("test"), progress)
            test = score_sets(rule, found.probabilities, self.task.targets["test"])
        return PredictionSets(
            str(self.path), len(self), rule, why_inexact(self.opened), test,
            tuple(self.opened.chosen.skipped),
        )  # fmt: skip

    def set_rule_for(
        self, alpha: float, progress: Progress = SILENT, *, anew: bool = False
    ) -> SetRule:
        """The rule for sets: as it is kept, or learnt now and kept."""
        folder = self.opened.folder
        known = kept_sets(folder.path, self.fingerprint, alpha) if folder and not anew else None
        if known is not None:
            return known
        valid = self.predictive(self.split("valid"), progress)
        rule = learn_sets(valid.probabilities, self.task.targets["valid"], alpha=alpha)
        if folder is not None:
            keep_sets(folder.path, self.fingerprint, rule)
        return rule

    def rule_for(
        self, target: RiskTarget | None = None, progress: Progress = SILENT
    ) -> DecisionRule:
        """The rule for a target, or for the last one: as it is kept, or learnt now and kept."""
        folder = self.opened.folder
        if folder is None:
            raise LangevinError(f"expected a run folder to learn decisions in, {self.path} is an "
                                f"exported model; use the run that it was made from")
        target = target or last_target(folder.path)
        rule = kept_rule(folder.path, target, self.fingerprint, self.pool_draws)
        if rule is None:
            rule = learn(target, self.predict_splits(("valid",), progress)["valid"])
        keep_rule(folder.path, target, self.fingerprint, self.pool_draws, rule)
        return rule

    def caution(self, rule: DecisionRule) -> str | None:
        """Why what a rule promises is not exact; None where it is, or nothing is promised."""
        return why_inexact(self.opened) if rule.target == "risk" else None

    @cached_property
    def reader(self) -> TextReader:
        """What reads texts as the network wants them."""
        return open_reader(self.recipe, self.vocabulary, self.facts)

    def encode(self, texts: Sequence[str], *, free: bool = False) -> EncodedTexts:
        """Texts as in training; `free` ones are not cut into tokens as the run expects it."""
        read = self.reader.read(texts, free=free)
        return EncodedTexts(list(texts), read.sentences, read.empty, read.cut, read.means)

    def split(self, name: str) -> EncodedTexts:
        """The sentences of a split, as the run was trained on them."""
        check_split(name, self.task.splits)
        if name == "valid" and self.members is not None and self.members.record.refitted:
            raise LangevinError(f"expected validation sentences that no part of {self.path} was "
                                f"fitted to, its linear parts were (refit): nothing can be "
                                f"promised by them; train without --refit")
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
        rows = max(1, AT_ONCE // (self.pool_draws * len(self.labels)))
        advance = progress.begin(-(-len(encoded) // rows), "texts")
        for piece in encoded.pieces(rows):
            yield self.log_probs(piece)
            advance()

    def log_probs(self, encoded: EncodedTexts) -> Tensor:
        """log p of every class under every draw, [draws, texts, classes]: of the pool, if any."""
        network = self.network_log_probs(encoded)
        if self.members is None:
            return network
        return pool_members(self.members, network, encoded.texts, encoded.means)

    @torch.no_grad()
    def network_log_probs(self, encoded: EncodedTexts) -> Tensor:
        """The same by the samples alone.

        Those that fit in memory stay there and run as one ensemble; of others one is read after
        the other.
        """
        if len(self.ensemble.chunks) > 1:
            found = []
            for draw in self.draws:
                draw.load_into(self.model)
                found.append(log_probs_of(self.model, encoded.sentences))
            return torch.stack(found)

        def run(*rows: Tensor) -> Tensor:
            rows = tuple(part.to(self.device) for part in rows)
            each = self.ensemble.log_probs(*rows, each=True).each
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

    @property
    def pools(self) -> bool:
        return self.members is not None

    def with_members(self, result: Evaluation, each: Sequence[Tensor]) -> Evaluation:
        """Told of validation only where no member was fitted to it."""
        assert self.members is not None
        student = not isinstance(self.data, ClassifyTask)  # which has just learnt
        if student or (result.split == "valid" and self.members.record.refitted):
            return result
        return add_linear_pool(result, self.opened, self.task, self.model, self.members, each)

    def rank(
        self, split: str = "test", *, tokens: int = TOKENS, top: int = 20, by: str | None = None,
        progress: Progress = SILENT,
    ) -> RankedItems:
        """What every posterior tells, of the pool where the run has members."""
        made = None
        if self.members is not None:
            pieces = list(self.each_piece(self.split(split), progress))
            made = predictions_of(pieces, self.task.targets[split])
        return rank_items(self.opened, self.data, self.model, split, tokens=tokens, top=top, by=by,
                          made=made, progress=progress)

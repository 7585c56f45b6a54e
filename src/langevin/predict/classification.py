"""Texts → class probabilities averaged over the samples of a run, with their uncertainty. The training data need not
be there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ..data.buckets import in_length_order
from ..data.spelling import split_unknown, words_of
from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..models.classifier import SentenceClassifier
from ..posterior.streaming import Moments, predictive
from ..posterior.uncertainty import Predictive
from ..recipe import SentenceData
from ..store.folder import RunFolder
from ..store.weights import load_weights
from ..tasks.classification import ClassifyTask, build_classifier, log_probs_of
from ..process import prepare_device
from ..posterior.selection import Selection
from ..tasks import open_run_task
from .base import Posterior
from ..posterior.selection import resolve
from ..tasks.choice import choosing

Groups = Mapping[str, Sequence[Tensor]]
"""Encoded sentences by name; each sample is loaded once for all groups."""


@dataclass(frozen=True)
class Encoded:
    """Texts as numbers, and what was out of the ordinary about each."""

    sentences: list[Tensor]
    empty: list[bool]
    """No word at all: the answer is the shares of the classes in training."""
    cut: list[bool]
    """Longer than the run's `max_words`; what follows was not read."""


def encode_texts(
    texts: Sequence[str], vocabulary: Vocabulary, tokens: str, max_words: int, *, free: bool = False
) -> Encoded:
    """Texts cut into words as in training.

    In `free` text for a model of tokenised sentences ("this?", not "this ?") a piece that the model does not know
    is cut at its punctuation.
    """
    words = [words_of(text, tokens) for text in texts]
    if free and tokens == "space":
        words = [split_unknown(own, vocabulary) for own in words]
    sentences = [vocabulary.encode_tokens(own[:max_words]) for own in words]
    return Encoded(sentences, [not own for own in words], [len(own) > max_words for own in words])


class Classifier:
    """A trained run opened to answer, with the samples that are to be averaged."""

    def __init__(self, path: str | Path, selection: Selection | None = None, *, in_memory: bool = False) -> None:
        self.folder = RunFolder(path)
        self.recipe = self.folder.recipe
        if not isinstance(self.recipe.data, SentenceData):
            raise LangevinError(f"expected the run of a classifier in {path}, got one of {self.recipe.task}; "
                                f"train one with 'langevin train --task classify'")
        self.data = self.recipe.data
        self.selection = selection or Selection()
        chosen = resolve(self.folder, self.selection, choosing())
        self.samples, self.skipped = chosen.samples, chosen.skipped
        facts = self.folder.facts
        missing = [key for key in ("labels", "label_names", "tokens", "embed") if key not in facts]
        if missing:
            raise LangevinError(f"the run folder is damaged: {path}/origin.json does not tell its {missing[0]}; train "
                                f"the run again")
        self.labels: list[str] = facts["labels"]
        """As they stand in the training file."""
        self.label_names: list[str] = facts["label_names"]
        self.tokens: str = facts["tokens"]
        self.vocabulary: Vocabulary = self.folder.vocabulary
        model = build_classifier(self.recipe, len(self.vocabulary), len(self.labels), facts["embed"])
        self.model: SentenceClassifier = model.to(prepare_device(self.recipe.run.device, self.recipe.run.threads))
        self.weights = [sample.load() for sample in self.samples] if in_memory else None

    @property
    def fingerprint(self) -> str:
        """One hash of the averaged samples: a threshold that was learned with them is not for others."""
        return hashlib.sha256("".join(sample.sha256 for sample in self.samples).encode()).hexdigest()[:16]

    @property
    def has_dropout(self) -> bool:
        return bool(self.recipe.model.dropout)

    def open_task(self) -> ClassifyTask:
        """The labelled sentences that the run was trained, validated and tested on; these must still be there."""
        task = open_run_task(self.folder)
        assert isinstance(task, ClassifyTask)
        return task

    def encode(self, texts: Sequence[str], *, free: bool = False) -> Encoded:
        """`encode_texts` as this run was trained."""
        return encode_texts(texts, self.vocabulary, self.tokens, self.data.max_words, free=free)

    def each(self, groups: Groups, masks: int | None = None) -> Iterator[dict[str, Tensor]]:
        """log p of every class in every group, [sentences, classes], under one sample after the other.

        With `masks`, under so many dropout masks of the last sample.
        """
        for name, sentences in groups.items():
            if not len(sentences):
                raise LangevinError(f"expected at least one text in {name}, got none")
        if masks is not None and not self.has_dropout:
            raise LangevinError(f"Monte-Carlo dropout needs a model trained with dropout, {self.folder.path} has none")
        for number in range(masks or len(self.samples)):
            if masks is None or number == 0:
                self.load(len(self.samples) - 1 if masks else number)
            seed = None if masks is None else number
            yield {name: log_probs_of(self.model, sentences, seed) for name, sentences in groups.items()}

    def predict(
        self, groups: Groups, advance: Callable[[], None] = lambda: None, masks: int | None = None
    ) -> dict[str, Predictive]:
        """Averaged predictions of each group with their uncertainty; `advance` is called after each sample."""
        moments = {name: Moments() for name in groups}
        for predicted in self.each(groups, masks):
            for name, log_probs in predicted.items():
                moments[name].add(log_probs)
            advance()
        return {name: own.result() for name, own in moments.items()}

    def load(self, number: int) -> None:
        """Put one of the samples into the model."""
        if self.weights is None:
            self.samples[number].load_into(self.model)
        else:
            load_weights(self.model, self.weights[number], str(self.samples[number].path))


def answers(classifier: Classifier, texts: Sequence[str], encoded: Encoded, given: Predictive) -> list[dict[str, Any]]:
    """What is said about each text, JSON-ready: label, mean, spread, and the parts of its uncertainty in nats."""
    labels, names = classifier.labels, classifier.label_names
    columns = zip(
        texts, encoded.empty, encoded.cut, given.label.tolist(), given.confidence.tolist(), given.label_std.tolist(),
        given.total.tolist(), given.epistemic.tolist(), given.probabilities.tolist(), given.std.tolist(), strict=True,
    )
    return [
        {
            "text": text, "label": labels[at], "name": names[at], "probability": p, "std": std, "entropy": total,
            "mutual_information": epistemic, "empty": empty, "cut": cut,
            "probabilities": dict(zip(labels, row, strict=True)), "stds": dict(zip(labels, spread, strict=True)),
        }
        for text, empty, cut, at, p, std, total, epistemic, row, spread in columns
    ]


def remarks(classifier: Classifier, encoded: Encoded) -> list[str]:
    """What a reader of the answers should know about the texts."""
    said = []
    if any(encoded.empty):
        said.append(f"empty texts: {sum(encoded.empty)}, answered with the shares of the classes in training")
    if any(encoded.cut):
        said.append(f"texts cut after {classifier.data.max_words} words (max_words of the run): {sum(encoded.cut)}")
    return said


def imbalance(facts: Mapping[str, Any]) -> str | None:
    """How far the classes are from equal shares, in words; None where they nearly are."""
    counts, names = facts["class_counts"], facts["label_names"]
    most, least = max(counts), min(counts)
    if most <= 1.5 * least:
        return None
    often = names[counts.index(most)]
    times = f"{most / least:.1f} times" if least else "infinitely"
    return (f"unequal classes: {often!r} is {times} as frequent as {names[counts.index(least)]!r}; "
            f"always answering {often!r} would be wrong in {1 - most / sum(counts):.1%} of the training sentences")


@dataclass(frozen=True)
class Decision:
    """The class of a text with the averaged probability of every class and the uncertainty in nats.

    `total` = H[p̄] = `aleatoric` (what every sample is unsure of) + `epistemic` (what the samples disagree about).
    """

    label: str
    probability: float
    probabilities: dict[str, float]
    std: dict[str, float]
    total: float
    aleatoric: float
    epistemic: float
    empty: bool = False
    """No word at all: the answer is the shares of the classes in training."""
    cut: bool = False
    """Longer than the run's `max_words`; what follows was not read."""


class ClassificationPosterior(Posterior):
    """A classifier of sentences."""

    def predict(self, texts: str | Sequence[str]) -> list[Decision]:
        """One decision for each text, the same as by `langevin classify`."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        if not texts:
            raise LangevinError("expected at least one text, got none")
        data = self.recipe.data
        assert isinstance(data, SentenceData)
        encoded = encode_texts(texts, self.vocabulary, self.facts["tokens"], data.max_words, free=True)
        found = predictive(self._log_probs(encoded.sentences))
        names = self.facts["label_names"]
        measures = (found.probabilities, found.std, found.label, found.total, found.aleatoric, found.epistemic)
        columns = [*(measure.tolist() for measure in measures), encoded.empty, encoded.cut]
        decisions = []
        for p, std, label, *rest in zip(*columns, strict=True):
            each, spread = (dict(zip(names, values, strict=True)) for values in (p, std))
            decisions.append(Decision(names[label], p[label], each, spread, *rest))
        return decisions

    def _log_probs(self, sentences: list[Tensor]) -> Tensor:
        """[samples, texts, classes], in the order of the texts."""
        def log_probs(tokens: Tensor, lengths: Tensor) -> Tensor:
            each = self.ensemble.log_probs(tokens.to(self.device), lengths.to(self.device), each=True).each
            assert each is not None
            return each.cpu()

        return in_length_order(sentences, log_probs, dim=1)

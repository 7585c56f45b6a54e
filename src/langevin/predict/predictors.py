"""A trained posterior as an object that answers: what a text scores, what comes next, which class, which caption."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..data.buckets import in_length_order
from ..data.features import ImageFeatures
from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..posterior.ensemble import Ensemble
from ..posterior.streaming import predictive
from ..recipe import Recipe, SentenceData
from ..store.samples import Sample
from .captioning import AveragedDecoder, Search, describe, search_captions, word_probabilities
from .classification import encode_texts
from .explain import spelled
from .generate import generate


class Predictor:
    """Samples of one model and all that is needed to use them; the training data are not."""

    def __init__(
        self, model: nn.Module, samples: Sequence[Sample], recipe: Recipe, vocabulary: Vocabulary, facts: dict[str, Any]
    ) -> None:
        self.model, self.samples = model.eval(), list(samples)
        self.recipe, self.vocabulary, self.facts = recipe, vocabulary, facts
        self.device = next(model.parameters()).device
        self.ensemble = Ensemble(model, self.samples, plan="batched" if recipe.task == "caption" else "auto")

    def __len__(self) -> int:
        """How many samples are averaged."""
        return len(self.samples)

    def __repr__(self) -> str:
        m = self.recipe.model
        return f"{type(self).__name__}({len(self)} samples of {m.layers}×{m.hidden} {m.cell})"


@dataclass(frozen=True)
class Token:
    """A token, its averaged probability, and the standard deviation of that over the samples (n−1).

    `word` is what stood in the text where the token is `<unk>`.
    """

    token: str
    probability: float
    std: float
    word: str | None = None


@dataclass(frozen=True)
class Score:
    """How well a text was foreseen: −log p̄ per token in nats, its exponential, and every token."""

    nll: float
    perplexity: float
    tokens: list[Token]


class LanguagePredictor(Predictor):
    """A language model."""

    def score(self, text: str) -> Score:
        """How probable this text is, read from the start of a line."""
        sentence = spelled(self.vocabulary, text)
        tokens = sentence.tokens
        each = self.ensemble.score(tokens[None, :-1].to(self.device), targets=tokens[None, 1:]).each
        assert each is not None
        p, std = mean_and_std(each[:, 0])
        nll = -p.log().mean().item()
        scored = named(self.vocabulary.pieces(tokens)[1:], p, std)
        scored = [replace(token, word=sentence.unknown.get(at)) for at, token in enumerate(scored, 1)]
        return Score(nll, math.exp(min(nll, 700.0)), scored)

    def next(self, text: str, top: int = 10) -> list[Token]:
        """The most probable tokens after this text."""
        if top < 1:
            raise LangevinError(f"expected at least one token to show, got top={top}")
        context = self.vocabulary.spell(text).tokens[None].to(self.device)
        each = self.ensemble.log_probs(context, each=True).each
        assert each is not None
        p, std = mean_and_std(each[:, 0, -1])
        best = p.topk(min(top, len(p))).indices
        names = [self.vocabulary.token_text(number) for number in best.tolist()]
        return named(names, p[best], std[best])

    def generate(
        self, prompt: str, length: int = 200, *, temperature: float = 0.8, seed: int = 0, top_k: int | None = None,
        top_p: float | None = None,
    ) -> str:
        """The text that follows the prompt, `length` tokens of it."""
        stream = generate(
            self.model, self.samples, self.vocabulary.spell(prompt).tokens, length, temperature=temperature, seed=seed,
            top_k=top_k, top_p=top_p,
        )
        return self.vocabulary.decode(list(stream)).decode("utf-8", "replace")


def named(names: Sequence[str], p: Tensor, std: Tensor) -> list[Token]:
    return [Token(*row) for row in zip(names, p.tolist(), std.tolist(), strict=True)]


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


class SentencePredictor(Predictor):
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


class CaptionPredictor(Predictor):
    """A captioner of image features."""

    def caption(
        self, features: Any, *, beam: int = 5, top: int = 1, length_power: float = 0.0, max_length: int = 20
    ) -> list[list[dict[str, Any]]]:
        """The best captions of each row of features [images, width], with the probability and spread of every word."""
        values = torch.as_tensor(features).float()
        values = values[None] if values.dim() == 1 else values
        given = ImageFeatures([str(number) for number in range(len(values))], values, "the features given")
        given.expect_width(int(self.facts["feature_width"]))
        search = Search(beam, top, length_power, max_length)
        found = []
        searched = search_captions(AveragedDecoder(self.ensemble), self.vocabulary, values, search)
        for row, captions in zip(values, searched, strict=True):
            each = word_probabilities(self.ensemble, self.vocabulary, row.expand(len(captions), -1), captions)
            found.append([describe(self.vocabulary, c, log_p) for c, log_p in zip(captions, each, strict=True)])
        return found


PREDICTORS: dict[str, type[Predictor]] = {
    "language-model": LanguagePredictor, "classify": SentencePredictor, "caption": CaptionPredictor,
}


def mean_and_std(log_p: Tensor) -> tuple[Tensor, Tensor]:
    """Of probabilities over the samples, which come first; the spread over n−1, zero for one sample."""
    p = log_p.double().exp().cpu()
    return p.mean(0), p.std(0, correction=1 if len(p) > 1 else 0)

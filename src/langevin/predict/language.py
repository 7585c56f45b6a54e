"""A language model that answers: what a text scores, what comes next, how it goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from ..errors import LangevinError
from .base import Posterior
from .explain import spelled
from .generate import generate


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


class LanguagePosterior(Posterior):
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
            self.model, self.draws, self.vocabulary.spell(prompt).tokens, length, temperature=temperature, seed=seed,
            top_k=top_k, top_p=top_p,
        )
        return self.vocabulary.decode(list(stream)).decode("utf-8", "replace")


def named(names: Sequence[str], p: Tensor, std: Tensor) -> list[Token]:
    return [Token(*row) for row in zip(names, p.tolist(), std.tolist(), strict=True)]


def mean_and_std(log_p: Tensor) -> tuple[Tensor, Tensor]:
    """Of probabilities over the samples, which come first; the spread over n−1, zero for one sample."""
    p = log_p.double().exp().cpu()
    return p.mean(0), p.std(0, correction=1 if len(p) > 1 else 0)

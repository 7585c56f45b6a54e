"""Captions from the averaged predictive distribution, and how sure the samples are of them.

At each step of the beam search the probability of a word is its mean over the samples. Each sample carries a state of
its own; all are advanced at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ..data.captions import START
from ..data.features import ImageFeatures
from ..data.vocabulary import END, UNKNOWN, Vocabulary
from ..errors import LangevinError
from ..models.stacked import reorder
from ..posterior.ensemble import Ensemble
from ..store.folder import RunFolder
from ..store.samples import choose
from ..tasks.captioning import build_captioner
from ..process import prepare_device
from ..posterior.selection import Selection
from .base import Posterior
from .beam import Hypothesis, beam_search, check_settings
from ..posterior.selection import resolve
from ..tasks.choice import choosing

IMAGES_AT_ONCE = 32
"""Images of one beam search. More make larger products and hold more: S × images × beam × vocabulary numbers."""
ROWS_AT_ONCE = 320
"""Images × beam of one search, at most, so that a wide beam does not fill the memory."""


@dataclass(frozen=True)
class Search:
    """Settings of the beam search."""

    beam: int = 5
    top: int = 1
    length_power: float = 0.0
    """Scores are Σ log p / length^power; 0 is the plain sum."""
    max_length: int = 20

    def check(self) -> None:
        """Refuse impossible settings before any other work."""
        check_settings(self.beam, self.top, self.length_power, self.max_length)

    @property
    def images_at_once(self) -> int:
        return max(1, min(IMAGES_AT_ONCE, ROWS_AT_ONCE // self.beam))


class Decoder(Protocol):
    """The next-word distribution of some captions, row by row, whatever stands behind it."""

    def begin(self, features: Tensor) -> None:
        """See these images: one row for each."""

    def step(self, tokens: Tensor) -> Tensor:
        """Read a word in each row; p of the next, [rows, vocabulary]."""

    def take(self, rows: Tensor) -> None:
        """Go on with these rows, some of them twice, some not at all."""


class AveragedDecoder:
    """All samples of an ensemble at once; p is the mean over them, never a mean of logits."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble, self.carry = ensemble, None
        self.device = next(ensemble.model.parameters()).device

    def begin(self, features: Tensor) -> None:
        self.carry = self.ensemble(features.to(self.device), method="begin")

    def step(self, tokens: Tensor) -> Tensor:
        logits, self.carry = self.ensemble(tokens.to(self.device), carry=self.carry, method="step")
        return torch.softmax(logits, -1).mean(0).cpu()

    def take(self, rows: Tensor) -> None:
        self.carry = reorder(self.carry, rows.to(self.device))


@torch.no_grad()
def search_captions(
    decoder: Decoder, vocabulary: Vocabulary, features: Tensor, search: Search,
    advance: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """The best captions of each image, [images, width] → best first. `advance` is called after each image."""
    search.check()
    found = []
    for some in torch.split(features, search.images_at_once):
        found += search_some(decoder, vocabulary, some, search)
        for _ in some:
            advance()
    return found


def search_some(decoder: Decoder, vocabulary: Vocabulary, features: Tensor, search: Search) -> list[list[Hypothesis]]:
    """One beam search over these images. `<start>` and `<unk>` are never written; nobody gets their probability."""
    numbers = vocabulary.numbers
    never = torch.tensor([numbers[START], numbers[UNKNOWN]])

    def step(tokens: Tensor) -> Tensor:
        return decoder.step(tokens).log().index_fill_(1, never, -torch.inf)

    decoder.begin(features)
    first = step(torch.full((len(features),), numbers[START]))
    return beam_search(
        first, step, decoder.take, end=numbers[END], beam=search.beam, top=search.top, alpha=search.length_power,
        max_length=search.max_length,
    )


@torch.no_grad()
def word_probabilities(
    ensemble: Ensemble, vocabulary: Vocabulary, features: Tensor, captions: list[Hypothesis]
) -> list[Tensor]:
    """log p of each word of each caption (its end last) under every sample: one [S, words] for each row of features."""
    start, end = vocabulary.numbers[START], vocabulary.numbers[END]
    longest = 1 + max(len(caption.tokens) for caption in captions)
    rows = [[start, *caption.tokens, *[end] * (longest - len(caption.tokens))] for caption in captions]
    device = next(ensemble.model.parameters()).device
    tokens = torch.tensor(rows, device=device)
    each = ensemble.score(features.to(device), tokens[:, :-1], targets=tokens[:, 1:]).each
    assert each is not None
    return [scored[:, : len(c.tokens) + 1].cpu() for scored, c in zip(each.unbind(1), captions, strict=True)]


def sentence(vocabulary: Vocabulary, caption: Hypothesis) -> str:
    return " ".join(vocabulary.tokens[token] for token in caption.tokens)


def describe(vocabulary: Vocabulary, caption: Hypothesis, each: Tensor) -> dict[str, Any]:
    """A caption with its probability, and the spread of both over the samples (standard deviations over n−1).

    `log_prob` is Σ log of the averaged word probabilities, what the search maximises; `log_prob_std` is the spread over
    the samples of log p(caption | image, θ_s), the uncertainty of the caption as a whole.
    """
    spread = 1 if len(each) > 1 else 0
    words = [*(vocabulary.tokens[token] for token in caption.tokens), END]
    p = each.double().exp()
    whole = each.double().sum(1)
    return {
        "caption": sentence(vocabulary, caption), "log_prob": caption.log_prob, "score": caption.score,
        "log_prob_std": whole.std(correction=spread).item(), "log_prob_each": whole.tolist(),
        "words": [
            {"word": word, "probability": mean, "std": std}
            for word, mean, std in zip(words, p.mean(0).tolist(), p.std(0, correction=spread).tolist(), strict=True)
        ],
    }


def captioner_in(path: Path) -> RunFolder:
    folder = RunFolder(path)
    if folder.recipe.task != "caption":
        raise LangevinError(
            f"expected the run of a captioner in {path}, got one of {folder.recipe.task}; train one by a recipe "
            f"such as flickr8k-psgld"
        )
    return folder


@dataclass(frozen=True)
class Captioning:
    """A trained run opened to write captions; the data it was trained on need not be there."""

    folder: RunFolder
    vocabulary: Vocabulary
    ensemble: Ensemble
    samples: list[Any]
    skipped: list[str]
    width: int

    @classmethod
    def open(cls, path: Path, selection: Selection) -> Captioning:
        folder = captioner_in(path)
        chosen = resolve(folder, selection, choosing())
        samples, skipped = chosen.samples, chosen.skipped
        vocabulary, width = folder.vocabulary, int(folder.facts["feature_width"])
        model = build_captioner(folder.recipe, width, len(vocabulary)).to(prepare_device(folder.recipe.run.device, folder.recipe.run.threads))
        return cls(folder, vocabulary, Ensemble(model, samples, plan="batched"), samples, skipped, width)

    def ensemble_of(self, samples: list[Any]) -> Ensemble:
        """Some samples of the run, one alone perhaps."""
        return Ensemble(self.ensemble.model, samples, plan="batched")


def caption_images(
    run: Captioning, features: ImageFeatures, search: Search, per_sample: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """For each image its best captions with their uncertainty and, if asked for, those of some single samples."""
    features.expect_width(run.width)
    values = features.values.float()
    shown = choose(run.samples, "thinned", per_sample) if per_sample else []
    found = search_captions(AveragedDecoder(run.ensemble), run.vocabulary, values, search, advance)
    singles = [AveragedDecoder(run.ensemble_of([sample])) for sample in shown]
    alone = [search_captions(single, run.vocabulary, values, search, advance) for single in singles]
    pictures = []
    for number, (name, captions) in enumerate(zip(features.names, found, strict=True)):
        row = values[number].expand(len(captions), -1)
        each = word_probabilities(run.ensemble, run.vocabulary, row, captions)
        others = [
            {"chain": sample.chain, "step": sample.step, "captions": [
                {"caption": sentence(run.vocabulary, c), "log_prob": c.log_prob, "score": c.score} for c in own[number]
            ]}
            for sample, own in zip(shown, alone, strict=True)
        ]
        told = [describe(run.vocabulary, c, log_p) for c, log_p in zip(captions, each, strict=True)]
        pictures.append({"image": name, "captions": told, "per_sample": others})
    return pictures


class CaptionPosterior(Posterior):
    """A captioner of image features."""

    plan = "batched"

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

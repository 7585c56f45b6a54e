"""A captioner that answers: captions of pictures from the average, and how sure the samples are.

At each step of the beam search the probability of a word is its mean over the samples. Each sample
carries a state of its own; all are advanced at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.captions import START
from ..data.features import ImageFeatures
from ..data.vocabulary import END, UNKNOWN, Vocabulary
from ..errors import LangevinError
from ..models.extractor import Extractor, expect_same, open_extractor
from ..models.reader import Reader
from ..posterior.ensemble import Ensemble
from ..recipe import CaptionData
from ..store.samples import Sample, choose
from .base import Posterior
from .beam import Hypothesis, beam_search, check_settings
from .caption_reader import CaptionReader
from .results import Caption, PictureCaptions, SampleCaption, WordScore

IMAGES_AT_ONCE = 32
"""Images of one beam search. More hold more: S × images × beam × vocabulary numbers."""
ROWS_AT_ONCE = 320
"""Images × beam of one search, at most, so that a wide beam does not fill the memory."""


@dataclass(frozen=True)
class BeamSettings:
    """How captions are searched for."""

    beam: int = 5
    top: int = 1
    length_power: float = 0.7
    """Scores are Σ log p / length^power; 0 is the plain sum, which likes short captions. On the
    development images of Flickr8k .7 is ahead of 0 in CIDEr and BLEU-4 (docs/log.md)."""
    max_length: int = 20

    def check(self) -> None:
        """Refuse impossible settings before any other work."""
        check_settings(self.beam, self.top, self.length_power, self.max_length)

    @property
    def images_at_once(self) -> int:
        return max(1, min(IMAGES_AT_ONCE, ROWS_AT_ONCE // self.beam))


class CaptionPosterior(Posterior):
    """A captioner of image features; the data it was trained on need not be there."""

    noun, plan = "captioner", "batched"
    maker = "a recipe such as flickr8k-psgld"

    @cached_property
    def width(self) -> int:
        """Features of an image."""
        return int(self.facts["feature_width"])

    @cached_property
    def extractor(self) -> Extractor:
        """What made the features of its training, or, where nobody knows, the usual ResNet-50."""
        return self.open_extractor()

    def open_extractor(self, name: str | None = None, preprocess: str | None = None) -> Extractor:
        """An extractor by name or file, refused unless it is that of the training."""
        data = self.recipe.data
        assert isinstance(data, CaptionData)
        if name is None and data.extractor is not None and Path(data.extractor).exists():
            name = data.extractor  # which its facts know without the folder
        found = open_extractor(name, preprocess, self.facts.get("extractor"))
        self.expect_extractor(found)
        return found

    def expect_extractor(self, found: Extractor) -> None:
        """Refuse another than that of the training, as far as this is known."""
        if "extractor" in self.facts:
            expect_same(found, self.facts["extractor"])
        if found.width != self.width:
            raise LangevinError(
                f"the model takes {self.width} features an image, {found.name} "
                f"makes {found.width}; name the network that made the training "
                f"features by --extractor"
            )

    def see(
        self,
        pictures: Sequence[Any],
        extractor: Extractor | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> ImageFeatures:
        """Features of pictures: files, or arrays [height, width, 3] of 0 to 255."""
        extractor, names, rows = extractor or self.extractor, list[str](), list[Tensor]()
        for number, picture in enumerate(pictures):
            is_file = isinstance(picture, str | Path)
            names.append(str(picture) if is_file else f"picture {number}")
            read = Path(picture) if is_file else np.asarray(picture)
            rows.append(extractor.features([read])[0].half())
            advance()
        return ImageFeatures(names, torch.stack(rows), "the pictures")

    def caption(
        self,
        images: Any,
        *,
        beam: int = 5,
        length_power: float = BeamSettings.length_power,
        max_length: int = BeamSettings.max_length,
    ) -> list[Caption]:
        """The best caption of each image, with its uncertainty.

        Images are files, arrays of 0 to 255 [height, width, 3] (whole numbers), or rows of features
        [images, width] of the network that made those of the training.
        """
        found = self.describe(
            self.as_features(images), BeamSettings(beam, 1, length_power, max_length)
        )
        return [picture.captions[0] for picture in found]

    def as_features(self, images: Any) -> ImageFeatures:
        """Rows of features as they are, pictures seen by the extractor."""
        if isinstance(images, str | Path):
            return self.see([images])
        if not len(images):
            raise LangevinError("expected at least one image to describe, got none; pass some")
        if is_picture(images):
            return self.see([images])
        if isinstance(images[0], str | Path) or is_picture(images[0]):
            return self.see(images)
        values = torch.as_tensor(images).float()
        values = values[None] if values.dim() == 1 else values
        return ImageFeatures([str(n) for n in range(len(values))], values, "the features given")

    def describe(
        self,
        features: ImageFeatures,
        search: BeamSettings,
        per_sample: int = 0,
        advance: Callable[[], None] = lambda: None,
    ) -> list[PictureCaptions]:
        """The best captions of each image and, if asked for, those of some single samples."""
        features.expect_width(self.width)
        values = features.values.float()
        shown = choose(self.draws, "thinned", per_sample) if per_sample else []
        found = self.search(values, search, advance=advance)
        alone = [self.search(values, search, [sample], advance) for sample in shown]
        pictures = []
        for number, (name, captions) in enumerate(zip(features.names, found, strict=True)):
            row = values[number].expand(len(captions), -1)
            each = word_log_probs(self.ensemble, self.vocabulary, row, captions)
            singles = [
                SampleCaption(
                    sample.chain, sample.step, sentence(self.vocabulary, c), c.log_prob, c.score
                )
                for sample, own in zip(shown, alone, strict=True)
                for c in own[number]
            ]
            best = [
                with_spread(self.vocabulary, c, log_p)
                for c, log_p in zip(captions, each, strict=True)
            ]
            pictures.append(PictureCaptions(name, tuple(best), tuple(singles)))
        return pictures

    def search(
        self,
        features: Tensor,
        search: BeamSettings,
        samples: Iterable[Sample] | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> list[list[Hypothesis]]:
        """The best captions of each image by the average of these samples (None: of all)."""
        return search_captions(self.reader(samples), self.vocabulary, features, search, advance)

    def reader(self, samples: Iterable[Sample] | None = None) -> CaptionReader:
        """What foresees words, of some samples or of all."""
        ensemble = self.ensemble
        if samples is not None:
            ensemble = Ensemble(self.model, samples, plan=self.plan)
        return CaptionReader(ensemble, self.vocabulary.numbers[START])


def is_picture(value: Any) -> bool:
    """Whole numbers of at most 255 are pixels; features are not."""
    return str(getattr(value, "dtype", "")) in ("uint8", "torch.uint8") and value.ndim < 4


@torch.no_grad()
def search_captions(
    reader: Reader,
    vocabulary: Vocabulary,
    features: Tensor,
    search: BeamSettings,
    advance: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """The best captions of each image, [images, width] → best first.

    `advance` is called after each image.
    """
    search.check()
    found = []
    for some in torch.split(features, search.images_at_once):
        found += search_some(reader, vocabulary, some, search)
        for _ in some:
            advance()
    return found


def search_some(
    reader: Reader, vocabulary: Vocabulary, features: Tensor, search: BeamSettings
) -> list[list[Hypothesis]]:
    """One beam search over these images.

    `<start>` and `<unk>` are never written; nobody gets their probability.
    """
    numbers = vocabulary.numbers
    never = torch.tensor([numbers[START], numbers[UNKNOWN]])

    def next_words() -> Tensor:
        p = (reader.foresee().exp() * reader.weights[..., None]).sum(0)
        return p.log().index_fill_(1, never, -torch.inf)

    def step(tokens: Tensor) -> Tensor:
        reader.read(tokens[:, None])
        return next_words()

    reader.begin(len(features), features)
    return beam_search(
        next_words(),
        step,
        reader.take,
        end=numbers[END],
        beam=search.beam,
        top=search.top,
        alpha=search.length_power,
        max_length=search.max_length,
    )


@torch.no_grad()
def word_log_probs(
    ensemble: Ensemble, vocabulary: Vocabulary, features: Tensor, captions: list[Hypothesis]
) -> list[Tensor]:
    """log p of each word of each caption (its end last) under every sample.

    One [S, words] for each row of features.
    """
    start, end = vocabulary.numbers[START], vocabulary.numbers[END]
    longest = 1 + max(len(caption.tokens) for caption in captions)
    rows = [
        [start, *caption.tokens, *[end] * (longest - len(caption.tokens))] for caption in captions
    ]
    device = next(ensemble.model.parameters()).device
    tokens = torch.tensor(rows, device=device)
    each = ensemble.score(features.to(device), tokens[:, :-1], targets=tokens[:, 1:]).each
    assert each is not None
    return [
        scored[:, : len(c.tokens) + 1].cpu()
        for scored, c in zip(each.unbind(1), captions, strict=True)
    ]


def sentence(vocabulary: Vocabulary, caption: Hypothesis) -> str:
    return " ".join(vocabulary.tokens[token] for token in caption.tokens)


def with_spread(vocabulary: Vocabulary, caption: Hypothesis, each: Tensor) -> Caption:
    """A caption with its probability, and the spread of both over the samples (over n−1)."""
    spread = 1 if len(each) > 1 else 0
    words = [*(vocabulary.tokens[token] for token in caption.tokens), END]
    p, whole = each.double().exp(), each.double().sum(1)
    scored = zip(words, p.mean(0).tolist(), p.std(0, correction=spread).tolist(), strict=True)
    return Caption(
        sentence(vocabulary, caption),
        caption.log_prob,
        caption.score,
        log_p_std=whole.std(correction=spread).item(),
        log_p_parts=tuple(whole.tolist()),
        words=tuple(WordScore(*word) for word in scored),
    )

"""Image captioning: the likelihood of each word, given the image and the words before."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.buckets import Buckets
from ..data.caption_batches import CaptionBatch, CaptionSet, images_with_features, joint_sha256
from ..data.caption_files import parse_captions
from ..data.captions import Captions, build_vocabulary
from ..data.corpora import open_text
from ..data.spelling import words_of
from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..files import write_atomic
from ..models.captioner import Captioner
from ..models.initial import initialise
from ..models.softmax import cross_entropy
from ..posterior.scores import Scores
from ..recipe import CaptionData, Recipe
from ..store.folder import FEATURES
from ..store.own_features import refuse_changed_features
from .base import Batch, Carry, refuse_changed_data
from .items import CaptionItems
from .pictures import open_pictures
from .shards import WHOLE, Shard

log = logging.getLogger("langevin")

SCORED_AT_ONCE = 256


class CaptionTask:
    """Images and their captions in three splits. N counts words, the end of each caption included.

    Batches hold different numbers of words. The loss of a batch b with words w is

        loss_b = Σ_{w∈b} −log p(w) / (N/B),     N words and B batches in an epoch,

    not the mean over its own words: then the mean of loss_b over the batches of an epoch is the
    mean over all words and the gradient of a random batch is an unbiased estimate of its gradient,
    as the samplers assume.
    """

    name, score, carries = "caption", "nll", False
    unit, in_order = "word", True

    def __init__(
        self,
        recipe: Recipe,
        vocabulary: Vocabulary | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        data = recipe.data
        assert isinstance(data, CaptionData)
        if recipe.model.bidirectional:
            raise LangevinError(
                "a captioner reads forward only, got bidirectional=true; remove it from the recipe"
            )
        self.recipe = recipe
        self.captions, self.features = open_pictures(data, facts)
        refuse_changed_features(self.features, facts)
        sha256 = joint_sha256(self.captions, self.features)
        refuse_changed_data(data.corpus, sha256, facts)
        self.images = images_with_features(
            self.captions, self.features, allow_missing=data.allow_missing
        )
        left_out = self.left_out
        if facts is None:
            self.say_splits(left_out)
        self.vocabulary = vocabulary or build_vocabulary(
            self.captions, data.min_count, data.max_vocab
        )
        self.evaluated = {
            split: self.caption_set(names, self.captions) for split, names in self.images.items()
        }
        lengths = self.evaluated["train"].lengths
        self.training = Buckets(lengths, data.batch_size, recipe.run.seed)
        self.num_data, self.batches_per_epoch = self.evaluated["train"].words, len(self.training)
        self.fewest_rows = self.training.fewest
        self.facts = {
            "data_sha256": sha256,
            "num_data": self.num_data,
            "feature_width": self.features.width,
            "vocabulary": len(self.vocabulary),
            "left_out": left_out,
            "split_sizes": {split: len(names) for split, names in self.images.items()},
        }
        if self.features.extractor is not None:
            self.facts |= {"extractor": self.features.extractor,
                           "features_sha256": self.features.sha256()}

    @property
    def left_out(self) -> int:
        """Images with captions that are in no split, as they lack something."""
        listed = sum(map(len, self.captions.splits.values())) + len(self.captions.bare)
        return listed - sum(map(len, self.images.values()))

    def say_splits(self, left_out: int) -> None:
        """What a new run is told of its images."""
        if left_out:
            log.info(
                "%d of %d images have no features in %s and are left out (allow_missing)",
                left_out,
                left_out + sum(map(len, self.images.values())),
                self.features.source,
            )
        if self.captions.made:
            log.info("images: %s", self.captions.describe())

    def keep_features(self, folder: Path) -> None:
        """Features that were computed of pictures have no file but in the run."""
        data = self.recipe.data
        assert isinstance(data, CaptionData)
        if data.images is not None and data.features is None:
            write_atomic(folder / FEATURES, self.features.to_bytes())

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.evaluated)

    def caption_set(self, names: list[str], captions: Captions) -> CaptionSet:
        return CaptionSet.build(names, captions, self.features, self.vocabulary)

    def add_file(self, path: Path) -> str:
        """Offer other captions of images that have features as the split "file"."""
        texts = parse_captions(path, open_text(path).read()).texts
        missing = self.features.missing(texts)
        if missing:
            raise LangevinError(
                f"{len(missing)} of {len(texts)} images of {path} have no features in "
                f"{self.features.source}, first {missing[0]!r}; add their features or remove their captions"
            )
        if not any(words_of(text, "plain") for captions in texts.values() for text in captions):
            raise LangevinError(
                f"expected captions with words in {path}, got none in the captions of "
                f"{len(texts)} images; pass captions of letters or digits"
            )
        self.images["file"] = list(texts)
        self.evaluated["file"] = self.caption_set(list(texts), Captions(texts, {}, ""))
        return "file"

    def build_model(self) -> Captioner:
        model = build_captioner(self.recipe, self.features.width, len(self.vocabulary))
        model.centre_on(self.features.take(torch.unique(self.evaluated["train"].images)))
        return model

    def prior_means(self) -> dict[str, Tensor]:
        return {}

    def expect_beginning(self) -> None:
        """All is there."""

    def as_sample(self, model: nn.Module) -> nn.Module:
        return model

    def loss(
        self, model: nn.Module, epoch: int, index: int, carry: Carry, shard: Shard = WHOLE
    ) -> tuple[Tensor, Carry]:
        """Mean over the words of the epoch's batches: a batch counts by its words."""
        with shard.cut(self.training_batch(epoch, index)) as own:
            logits, words, _ = self.logits(model, own, None)
        share = len(words) * self.batches_per_epoch / self.num_data
        return cross_entropy(logits, words, share), None

    def training_batch(self, epoch: int, index: int) -> Batch:
        return astuple(self.evaluated["train"].take(self.training.batch(epoch, index)))

    def batches_of(self, split: str) -> Iterator[Batch]:
        captions = self.evaluated[split]
        for rows in torch.split(captions.lengths.argsort(stable=True), SCORED_AT_ONCE):
            yield astuple(captions.take(rows))

    @torch.no_grad()
    def log_probs(
        self, model: nn.Module, split: str, mask_seed: int | None = None, shard: Shard = WHOLE
    ) -> Tensor:
        """log p of every word of the split, caption after caption in the order of its images."""
        model.train(mask_seed is not None)
        if mask_seed is not None:
            torch.manual_seed(mask_seed)
        captions = self.evaluated[split].some(shard.span(len(self.evaluated[split])))
        starts = captions.lengths.cumsum(0) - captions.lengths
        scored = torch.empty(captions.words)
        order = captions.lengths.argsort(stable=True)
        for rows in torch.split(order, SCORED_AT_ONCE) if len(order) else ():
            batch = captions.take(rows)
            places = starts[rows, None] + torch.arange(batch.real.shape[1])
            scored[places[batch.real]] = -self.word_nll(model, batch).float().cpu()
        return scored

    def word_nll(self, model: nn.Module, batch: CaptionBatch) -> Tensor:
        """−log p of each real word of a batch, flat."""
        logits, words, _ = self.logits(model, astuple(batch), None)
        return F.cross_entropy(logits, words, reduction="none")

    def logits(self, model: nn.Module, batch: Batch, carry: Carry) -> tuple[Tensor, Tensor, Carry]:
        """Of the real words of each row; the output layer never sees the padding."""
        assert isinstance(model, Captioner)
        images, inputs, targets, real = batch
        device = next(model.parameters()).device
        hidden = model.hidden(self.features.take(images).to(device), inputs.to(device))
        return model.output(hidden[real.to(device)]), targets[real].to(device), None

    def observed(self, log_probs: Tensor, split: str) -> Tensor:
        return log_probs

    def items(self, split: str, limit: int) -> CaptionItems:
        captions = self.evaluated[split]
        return CaptionItems(self.vocabulary, self.features, captions, limit, SCORED_AT_ONCE)

    def outcome(self, split: str, place: int) -> str:
        captions = self.evaluated[split]
        ends = captions.lengths.cumsum(0)
        row = int(torch.searchsorted(ends, place, right=True))
        batch = captions.take(torch.tensor([row]))
        word = int(batch.targets[0, place - int(ends[row] - captions.lengths[row])])
        image = self.features.names[int(batch.images[0])]
        return f"{self.vocabulary.tokens[word]!r} of {image}, word {place + 1:,}"

    def scores(self, log_probs: Tensor, split: str) -> Scores:
        """Mean nll of a word in nats (ends of captions included), and its exponential."""
        nll = -log_probs.double().mean().item()
        return Scores(nll, log_probs.numel(), perplexity=math.exp(min(nll, 700.0)))


def astuple(batch: CaptionBatch) -> Batch:
    return batch.images, batch.inputs, batch.targets, batch.real


def recorded_captioner(recipe: Recipe, vocabulary: Vocabulary, facts: dict[str, Any]) -> Captioner:
    """The model from what the run folder remembers."""
    return build_captioner(recipe, int(facts["feature_width"]), len(vocabulary))


def build_captioner(recipe: Recipe, width: int, vocabulary: int) -> Captioner:
    """The model of a recipe with its first weights; a sample brings the centre of its features."""
    m = recipe.model
    model = Captioner(
        width,
        vocabulary,
        cell=m.cell,
        embed=m.embed or m.hidden,
        hidden=m.hidden,
        layers=m.layers,
        dropout=m.dropout,
        dropout_kind=m.dropout_kind,
        tied=m.tied,
        image_as=m.image_as,
    )
    initialise(model, m.init, m.init_scale, m.forget_bias, recipe.run.seed)
    return model

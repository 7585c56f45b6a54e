"""Sentence classification: the likelihood of each sentence's label."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.buckets import Buckets, by_length, in_length_order, lengths_of, pad
from ..data.folds import check_classes, numbered, read_all, split
from ..data.sentences import LABEL_NAMES, Sentences, read_sentences
from ..data.spelling import words_of
from ..data.vectors import WordVectors, load_vectors
from ..data.vocabulary import UNKNOWN, Vocabulary
from ..errors import LangevinError
from ..models.classifier import SentenceClassifier
from ..models.initial import initialise
from ..posterior.calibration import calibration_metrics
from ..recipe import Recipe, SentenceData
from .base import Batch, Carry, refuse_changed_data

log = logging.getLogger("langevin")


class ClassifyTask:
    """Labelled sentences in a training, a validation and (mostly) a test split.

    The splits come from a hash of each sentence's number, not from the run's seed: given test, fold k, or a share.
    """

    name, score, carries = "classify", "error", False

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary | None = None, facts: dict[str, Any] | None = None
    ) -> None:
        data = recipe.data
        assert isinstance(data, SentenceData)
        self.recipe, self.data = recipe, data
        corpus = read_all(data)
        sha256 = hashlib.sha256("".join(part.sha256 for part in corpus.values()).encode()).hexdigest()
        refuse_changed_data(data.corpus, sha256, facts)
        self.labels = next(iter(corpus.values())).names
        self.label_names = LABEL_NAMES.get(data.corpus, self.labels)
        self.tokens: str = facts["tokens"] if facts else data.tokens or next(iter(corpus.values())).tokens
        check_classes(data, corpus, self.labels)
        parts, split_hash = split(data, corpus, self.labels)
        refuse_changed_split(split_hash, facts)
        self.texts = {name: [text for text, _ in part] for name, part in parts.items()}
        words = {name: [self.words(text) for text in texts] for name, texts in self.texts.items()}
        counted = [w for name in words if name == "train" or data.vocabulary == "all" for w in words[name]]
        self.vocabulary = vocabulary or Vocabulary.of_words(
            Counter(chain.from_iterable(counted)), min_count=data.min_count, max_size=data.max_vocab, first=[UNKNOWN])
        self.sentences = {name: [self.vocabulary.encode_tokens(w) for w in part] for name, part in words.items()}
        self.targets = {name: torch.tensor([label for _, label in part]) for name, part in parts.items()}
        self.training = Buckets(lengths_of(self.sentences["train"]), data.batch_size, recipe.run.seed)
        self.num_data, self.batches_per_epoch = len(self.sentences["train"]), len(self.training)
        self.class_counts = torch.bincount(self.targets["train"], minlength=len(self.labels))
        counts = Counter(word for part in words.values() for sentence in part for word in sentence)
        self.vectors = load_vectors(data.vectors, counts) if data.vectors else None
        self.facts = self.remembered(sha256, split_hash, counts, corpus)
        refuse_changed_vectors(data.vectors, self.facts, facts)
        if facts is None:
            self.announce()

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.sentences)

    def words(self, text: str) -> list[str]:
        """The words of a text, the first `max_words` of them."""
        return words_of(text, self.tokens)[: self.data.max_words]

    def remembered(
        self, sha256: str, split_hash: str, counts: Counter[str], corpus: dict[str, Sentences]
    ) -> dict[str, Any]:
        """What the run folder keeps: enough to build the model without the data, and to notice other data."""
        lengths = [len(words_of(text, self.tokens)) for part in self.texts.values() for text in part]
        embed = embedding_width(self.recipe, self.vectors)
        return {
            "data_sha256": sha256, "num_data": self.num_data, "split_sha256": split_hash,
            "labels": list(self.labels), "label_names": list(self.label_names),
            "class_counts": self.class_counts.tolist(), "split_sizes": {n: len(t) for n, t in self.texts.items()},
            "tokens": self.tokens, "embed": embed, "encodings": sorted({part.encoding for part in corpus.values()}),
            "empty_texts": lengths.count(0), "cut_texts": sum(length > self.data.max_words for length in lengths),
            "coverage": self.vectors.coverage(counts, self.vocabulary.numbers) if self.vectors else None,
            "vectors_sha256": self.vectors.sha256 if self.vectors else None,
        }

    def announce(self) -> None:
        """Say what was read: splits, classes with their shares, coverage, what was cut."""
        facts, data = self.facts, self.data
        sizes = ", ".join(f"{size} {name}" for name, size in facts["split_sizes"].items())
        shares = ", ".join(
            f"{name} {count / self.num_data:.1%}"
            for name, count in zip(self.label_names, self.class_counts.tolist(), strict=True)
        )
        log.info("%s: %s sentences, %d words; classes: %s", data.corpus, sizes, len(self.vocabulary), shares)
        if facts["coverage"]:
            log.info("%s covers %.0f%% of the types and %.0f%% of the tokens; the other words start at random",
                     data.vectors, 100 * facts["coverage"]["types"], 100 * facts["coverage"]["tokens"])
        if facts["empty_texts"]:
            log.info("%d empty texts are answered with the shares of the classes", facts["empty_texts"])
        if facts["cut_texts"]:
            log.info("%d texts are cut after %d words (max_words)", facts["cut_texts"], data.max_words)

    def add_file(self, path: Path) -> str:
        """Offer another file of labelled sentences as the split "text"."""
        read = read_sentences(path, self.data.text_column, self.data.label_column)
        self.targets["text"] = torch.tensor(numbered(read, self.labels, str(path)))
        self.texts["text"] = list(read.texts)
        self.sentences["text"] = [self.vocabulary.encode_tokens(self.words(text)) for text in read.texts]
        return "text"

    def build_model(self) -> SentenceClassifier:
        model = build_classifier(self.recipe, len(self.vocabulary), len(self.labels), self.facts["embed"])
        if self.vectors:
            vectors = self.vectors.embed(self.vocabulary.tokens, self.recipe.run.seed)
            model.set_vectors(vectors, trained=self.data.train_vectors)
        model.set_prior(self.class_counts)
        return model

    def prior_means(self) -> dict[str, Tensor]:
        """By the name of a parameter, where its Gaussian prior is centred if not at zero.

        What is known of a word beforehand is its vector. A prior around zero would take it away again from every word
        that is rare in training, as nothing holds against the pull.
        """
        if self.vectors is None or not (self.data.train_vectors and self.data.prior_at_vectors):
            return {}
        return {"embedding.weight": self.vectors.embed(self.vocabulary.tokens)}

    def loss(self, model: nn.Module, epoch: int, index: int, carry: Carry) -> tuple[Tensor, Carry]:
        """Mean over the sentences of the batch."""
        logits, labels, _ = self.logits(model, self.training_batch(epoch, index), None)
        return F.cross_entropy(logits, labels), None

    def training_batch(self, epoch: int, index: int) -> Batch:
        members = self.training.batch(epoch, index)
        tokens, lengths = pad([self.sentences["train"][number] for number in members])
        return tokens, lengths, self.targets["train"][members]

    def batches_of(self, split: str) -> Iterator[Batch]:
        sentences = self.sentences[split]
        for members in by_length(sentences):
            yield *pad([sentences[number] for number in members]), self.targets[split][members]

    def logits(self, model: nn.Module, batch: Batch, carry: Carry) -> tuple[Tensor, Tensor, Carry]:
        tokens, lengths, labels = (part.to(next(model.parameters()).device) for part in batch)
        return model(tokens, lengths), labels, None

    def log_probs(self, model: nn.Module, split: str, mask_seed: int | None = None) -> Tensor:
        """log p of every class, [sentences, classes]."""
        return log_probs_of(model, self.sentences[split], mask_seed)

    def metrics(self, log_probs: Tensor, split: str) -> dict[str, float]:
        """Error in percent, nats per sentence, Brier score, expected calibration error."""
        scores = calibration_metrics(log_probs, self.targets[split])
        named = {name: scores[name] for name in ("nll", "brier", "ece")}
        return {"error": 100 * scores["error"], **named, "sentences": len(log_probs)}


def refuse_changed_split(split_hash: str, facts: dict[str, Any] | None) -> None:
    if facts and facts["split_sha256"] != split_hash:
        raise LangevinError("the sentences are no longer split as when this run began; use the langevin that began it")


def refuse_changed_vectors(name: str | None, now: dict[str, Any], facts: dict[str, Any] | None) -> None:
    if facts and facts["vectors_sha256"] != now["vectors_sha256"]:
        raise LangevinError(f"the word vectors {name} changed since this run began; bring back the old ones")


def embedding_width(recipe: Recipe, vectors: WordVectors | None) -> int:
    model = recipe.model
    if model.tied:
        raise LangevinError("a classifier has no output words to tie; set tied = false")
    if vectors and model.embed not in (None, vectors.dim):
        raise LangevinError(f"embed must be {vectors.dim} as in {vectors.name}, got {model.embed}; leave it out")
    return vectors.dim if vectors else model.embed or model.hidden


def build_classifier(recipe: Recipe, words: int, classes: int, embed: int) -> SentenceClassifier:
    """The model of a recipe with its first weights but no word vectors; a sample can be loaded into it."""
    m = recipe.model
    model = SentenceClassifier(
        words, classes, cell=m.cell, embed=embed, hidden=m.hidden, layers=m.layers,
        bidirectional=m.bidirectional is not False, dropout=m.dropout, dropout_kind=m.dropout_kind,
    )
    initialise(model, m.init, m.init_scale, m.forget_bias, recipe.run.seed)
    return model


def model_of(recipe: Recipe, vocabulary: Vocabulary, facts: dict[str, Any]) -> SentenceClassifier:
    """The same from what the run folder remembers."""
    return build_classifier(recipe, len(vocabulary), len(facts["labels"]), facts["embed"])


@torch.no_grad()
def log_probs_of(model: nn.Module, sentences: Sequence[Tensor], mask_seed: int | None = None) -> Tensor:
    """log p of every class for encoded sentences, [sentences, classes], in their order, on the CPU."""
    model.train(mask_seed is not None)
    if mask_seed is not None:
        torch.manual_seed(mask_seed)
    device = next(model.parameters()).device
    return in_length_order(sentences, lambda tokens, lengths: torch.log_softmax(
        model(tokens.to(device), lengths.to(device)), -1).cpu())

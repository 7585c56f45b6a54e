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
from ..data.folds import balanced_weights, refuse_unlearnable, numbered, read_all, split_corpus
from ..data.sentences import LABEL_NAMES, Sentences, read_sentences
from ..data.frozen_vectors import joint_coverage, side_by_side
from ..data.spelling import words_of
from ..data.vocabulary import UNKNOWN, Vocabulary
from ..errors import LangevinError
from ..models.classifier import SentenceClassifier
from ..models.initial import initialise
from ..models.reading import StateReader, TextReader, WordReader, cache_of_states, same_encoder
from ..posterior.calibration import calibration_metrics
from ..posterior.scores import Scores
from ..recipe import Recipe, SentenceData
from .base import Batch, Carry, refuse_changed_data, refuse_changed_split, refuse_changed_vectors
from .items import SentenceItems, name_answer
from .known_words import OF_VECTORS, embedding_width, vectors_of
from .shards import WHOLE, Shard

log = logging.getLogger("langevin")

PROJECTED = 96
"""Width to which the states of an encoder are brought, unless the recipe says."""


class ClassifyTask:
    """Labelled sentences in a training, a validation and (mostly) a test split.

    The splits come from a hash of each sentence's number, not from the run's seed: given test, fold
    k, or a share.
    """

    name, carries = "classify", False
    unit, in_order = "sentence", False

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary | None = None, facts: dict[str, Any] | None = None
    ) -> None:
        data = recipe.data
        assert isinstance(data, SentenceData)
        self.recipe, self.data, self.score = recipe, data, str(data.score)
        corpus = read_all(data)
        sha256 = hashlib.sha256("".join(part.sha256 for part in corpus.values()).encode()).hexdigest()
        refuse_changed_data(data.corpus, sha256, facts)
        self.labels = next(iter(corpus.values())).names
        self.label_names = LABEL_NAMES.get(data.corpus, self.labels)
        self.tokens: str = facts["tokens"] if facts else data.tokens or next(iter(corpus.values())).tokens
        refuse_unlearnable(data, corpus, self.labels)
        parts, split_hash = split_corpus(data, corpus, self.labels)
        refuse_changed_split(split_hash, facts)
        self.texts = {name: [text for text, _ in part] for name, part in parts.items()}
        words = {name: [self.words(text) for text in texts] for name, texts in self.texts.items()}
        counted = [w for name in words if name == "train" or data.vocabulary == "all" for w in words[name]]
        self.vocabulary = vocabulary or Vocabulary.of_words(
            Counter(chain.from_iterable(counted)), min_count=data.min_count, max_size=data.max_vocab, first=[UNKNOWN])
        self.targets = {name: torch.tensor([label for _, label in part]) for name, part in parts.items()}
        self.reader = open_reader(recipe, self.vocabulary, {"tokens": self.tokens} | (facts or {}))
        read = self.read_all_texts()
        self.training = Buckets(lengths_of(self.sentences["train"]), data.batch_size, recipe.run.seed)
        self.num_data, self.batches_per_epoch = len(self.sentences["train"]), len(self.training)
        self.fewest_rows = self.training.fewest
        self.class_counts = torch.bincount(self.targets["train"], minlength=len(self.labels))
        counts = Counter(word for part in words.values() for sentence in part for word in sentence)
        self.vectors, self.missing = vectors_of(data, counts, facts)
        self.table = side_by_side(self.vectors, self.vocabulary.tokens) if self.projects else None
        self.facts = self.remembered(sha256, split_hash, counts, corpus) | read
        if facts and self.missing:
            self.facts |= {key: facts.get(key) for key in OF_VECTORS}
        refuse_changed_vectors(data.vectors, self.facts, facts)
        if facts is None:
            self.announce()

    @property
    def projects(self) -> bool:
        """Whether vectors stay as they are, behind a projection."""
        return bool(self.vectors) and self.recipe.model.project is not None

    def read_all_texts(self) -> dict[str, Any]:
        """`sentences` and `means` of every split, read in one go; what there is to remember of it.

        An encoder keeps its states by all texts together: sorted, so that every split of a set
        shares them.
        """
        every = sorted({text for texts in self.texts.values() for text in texts})
        read = self.reader.read(every)
        place = {text: number for number, text in enumerate(every)}
        numbers = {name: [place[text] for text in texts] for name, texts in self.texts.items()}
        self.sentences = {name: [read.sentences[n] for n in own] for name, own in numbers.items()}
        self.means = {} if read.means is None else {name: read.means[own] for name, own in numbers.items()}
        flags = [(read.empty[n], read.cut[n]) for own in numbers.values() for n in own]
        encoder = self.reader.encoder.facts() if isinstance(self.reader, StateReader) else None
        return {"empty_texts": sum(empty for empty, _ in flags), "cut_texts": sum(cut for _, cut in flags),
                "encoder": encoder}

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.sentences)

    def words(self, text: str) -> list[str]:
        """The words of a text, the first `max_words` of them."""
        return words_of(text, self.tokens)[: self.data.max_words]

    def remembered(
        self, sha256: str, split_hash: str, counts: Counter[str], corpus: dict[str, Sentences]
    ) -> dict[str, Any]:
        """What the run folder keeps: enough to build the model without the data, and to notice
        other data."""
        coverage = joint_coverage(self.vectors, counts, self.vocabulary.numbers) if self.vectors else None
        return {
            "data_sha256": sha256, "num_data": self.num_data, "split_sha256": split_hash,
            "labels": list(self.labels), "label_names": list(self.label_names),
            "class_counts": self.class_counts.tolist(), "split_sizes": {n: len(t) for n, t in self.texts.items()},
            "tokens": self.tokens, "embed": embedding_width(self.recipe, self.vectors),
            "frozen": 0 if self.table is None else self.table.shape[1],
            "encodings": sorted({part.encoding for part in corpus.values()}), "coverage": coverage,
            "vectors_sha256": "+".join(own.sha256 for own in self.vectors) or None,
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
            others = "have none" if self.projects else "start at random"
            log.info("%s covers %.0f%% of the types and %.0f%% of the tokens; the other words %s",
                     " + ".join(data.vector_sets), 100 * facts["coverage"]["types"],
                     100 * facts["coverage"]["tokens"], others)
        if facts["empty_texts"]:
            log.info("%d empty texts are answered with the shares of the classes", facts["empty_texts"])
        if facts["cut_texts"]:
            reads = data.max_words, "words (max_words)"
            if isinstance(self.reader, StateReader):
                reads = self.reader.encoder.limit, "tokens, as many as the encoder reads"
            log.info("%d texts are cut after %d %s", facts["cut_texts"], *reads)

    def add_file(self, path: Path) -> str:
        """Offer another file of labelled sentences as the split "text"."""
        read = read_sentences(path, self.data.text_column, self.data.label_column)
        self.targets["text"] = torch.tensor(numbered(read, self.labels, str(path)))
        self.texts["text"] = list(read.texts)
        found = self.reader.read(read.texts)
        self.sentences["text"] = found.sentences
        if found.means is not None:
            self.means["text"] = found.means
        return "text"

    def build_model(self) -> SentenceClassifier:
        model = recorded_classifier(self.recipe, self.vocabulary, self.facts)
        if self.table is not None:
            model.set_table(self.table)
        elif self.vectors:
            vectors = self.vectors[0].embed(self.vocabulary.tokens, self.recipe.run.seed)
            model.set_vectors(vectors, trained=self.data.train_vectors)
        model.set_prior(self.class_counts)
        return model

    def prior_means(self) -> dict[str, Tensor]:
        """By the name of a parameter, where its Gaussian prior is centred if not at zero.

        What is known of a word beforehand is its vector. A prior around zero would take it away
        again from every word that is rare in training, as nothing holds against the pull.
        """
        trained = self.data.vectors and self.recipe.model.project is None and self.data.train_vectors
        if not (trained and self.data.prior_at_vectors):
            return {}
        self.expect_beginning()
        return {"embedding.weight": self.vectors[0].embed(self.vocabulary.tokens)}

    def expect_beginning(self) -> None:
        if self.missing:
            raise LangevinError(self.missing)

    def as_sample(self, model: nn.Module) -> nn.Module:
        return model

    def loss(
        self, model: nn.Module, epoch: int, index: int, carry: Carry, shard: Shard = WHOLE
    ) -> tuple[Tensor, Carry]:
        """Mean over the sentences of the batch."""
        batch = self.training_batch(epoch, index)
        with shard.cut(batch) as own:
            logits, labels, _ = self.logits(model, own, None)
        share = len(labels) / len(batch[0])
        if self.data.class_weight is None:
            return F.cross_entropy(logits, labels) * share, None
        weights = balanced_weights(self.class_counts).to(logits)[labels]
        return (weights * F.cross_entropy(logits, labels, reduction="none")).mean() * share, None

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

    def log_probs(
        self, model: nn.Module, split: str, mask_seed: int | None = None, shard: Shard = WHOLE
    ) -> Tensor:
        """log p of every class, [sentences, classes]."""
        own = self.sentences[split][shard.span(len(self.sentences[split]))]
        return log_probs_of(model, own, mask_seed) if own else torch.empty(0, len(self.labels))

    def observed(self, log_probs: Tensor, split: str) -> Tensor:
        return log_probs.gather(1, self.targets[split][:, None])[:, 0]

    def items(self, split: str, limit: int) -> SentenceItems:
        return SentenceItems(self.texts[split], self.label_names, self.targets[split],
                             lambda model: self.log_probs(model, split))

    def outcome(self, split: str, place: int) -> str:
        return name_answer(self.texts[split], self.label_names, place)

    def scores(self, log_probs: Tensor, split: str) -> Scores:
        """Nats per sentence, share of errors, Brier score, expected calibration error."""
        numbers = calibration_metrics(log_probs, self.targets[split])
        named = {name: numbers[name] for name in ("nll", "error", "brier", "ece")}
        return Scores(items=len(log_probs), **named)


def open_reader(recipe: Recipe, vocabulary: Vocabulary, facts: dict[str, Any]) -> TextReader:
    """What reads texts as the network of a run wants them; no other encoder than the run
    remembers."""
    data = recipe.data
    assert isinstance(data, SentenceData)
    if data.encoder is not None:
        encoder = same_encoder(data.encoder, data.encoder_layers, facts.get("encoder"))
        return StateReader(encoder, cache_of_states())
    return WordReader(vocabulary, facts["tokens"], data.max_words, bool(recipe.model.characters))


def build_classifier(
    recipe: Recipe, words: int, classes: int, embed: int, frozen: int = 0, states: int = 0
) -> SentenceClassifier:
    """The model of a recipe with its first weights but no word vectors; a sample can be loaded into
    it.

    `embed`, `frozen` and `states` are the widths of trained words, of frozen ones, and of an
    encoder.
    """
    m = recipe.model
    model = SentenceClassifier(
        words, classes, cell=m.cell, embed=embed, hidden=m.hidden, layers=m.layers,
        bidirectional=m.bidirectional is not False, dropout=m.dropout, dropout_kind=m.dropout_kind,
        vectors=frozen, states=states, project=(m.project or PROJECTED) if frozen or states else 0,
        characters=m.characters or 0, readout=m.readout,
    )
    initialise(model, m.init, m.init_scale, m.forget_bias, recipe.run.seed)
    return model


def recorded_classifier(recipe: Recipe, vocabulary: Vocabulary, facts: dict[str, Any]) -> SentenceClassifier:
    """The same from what the run folder remembers."""
    states = (facts.get("encoder") or {}).get("width", 0)
    return build_classifier(recipe, len(vocabulary), len(facts["labels"]), facts["embed"], facts.get("frozen", 0),
                            states)


@torch.no_grad()
def log_probs_of(model: nn.Module, sentences: Sequence[Tensor], mask_seed: int | None = None) -> Tensor:
    """log p of every class for encoded sentences, [sentences, classes], in their order, on the
    CPU."""
    model.train(mask_seed is not None)
    if mask_seed is not None:
        torch.manual_seed(mask_seed)
    device = next(model.parameters()).device
    return in_length_order(sentences, lambda tokens, lengths: torch.log_softmax(
        model(tokens.to(device), lengths.to(device)), -1).cpu())

"""The data table of sentence classification."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from .base import Table


class SentenceData(Table):
    """Which labelled sentences, their splits, word vectors, and batches."""

    corpus: str = Field("trec", description="a data set by name, or a CSV, TSV, JSONL or 'label text' file")
    valid_file: str | None = Field(None, description="labelled sentences for validation")
    test_file: str | None = Field(None, description="labelled sentences for the test")
    text_column: str = Field("text", description="of CSV, TSV and JSONL")
    label_column: str = Field("label", description="of CSV, TSV and JSONL")
    valid_share: float = Field(0.1, gt=0, lt=1, description="of the training sentences, where no validation is given")
    test_share: float = Field(0.1, ge=0, lt=1, description="of all sentences, where no test is given and no fold")
    folds: int = Field(10, ge=2, description="of cross-validation, where no test split is given")
    fold: int | None = Field(None, ge=0, description="the fold that is the test split of this run")
    tokens: Literal["space", "words", "cleaned"] | None = Field(
        None, description="how texts become words; None: 'cleaned' for the named sets, 'space' for 'label text' "
        "lines, 'words' for CSV, TSV and JSONL"
    )
    vocabulary: Literal["train", "all"] = Field("train", description="words of the training split or of all splits")
    min_count: int = Field(1, ge=1, description="words seen less often become <unk>")
    max_vocab: int | None = Field(None, ge=2, description="so many of the most frequent words, with <unk>; None: all")
    max_words: int = Field(512, ge=1, description="longer texts are cut after so many words")
    vectors: str | tuple[str, ...] | None = Field(
        None, description="word vectors: a name in word_vectors/, or a file; several, with project, side by side"
    )
    train_vectors: bool = Field(
        True, description="go on learning them, or leave them as they are; with project they stay"
    )
    prior_at_vectors: bool = Field(True, description="the prior of trained vectors is centred on them, not on zero")
    encoder: str | None = Field(
        None, description="a pretrained encoder, by folder or name, whose states are read in place of words"
    )
    encoder_layers: tuple[int, ...] = Field((-1, -4), min_length=1, description="of the encoder; -1 is the last")
    batch_size: int = Field(50, ge=1, description="sentences in a batch")
    class_weight: Literal["balanced"] | None = Field(
        None, description="balanced: every class counts alike in training, however rare; probabilities are "
        "then those of equally frequent classes"
    )
    score: Literal["error", "nll"] = Field("error", description="what patience watches on validation sentences")
    pool: Literal["auto", "none"] = Field(
        "none", description="auto: linear parts join the network, with weights by validation"
    )
    refit: bool = Field(
        False, description="of a pool: linear parts are fitted to validation too, once the weights are chosen; "
        "nothing is then left by which 'decide' could promise anything"
    )

    @model_validator(mode="after")
    def _folds(self) -> SentenceData:
        if self.fold is not None and self.fold >= self.folds:
            raise ValueError(f"fold must be below folds ({self.folds}; the first is 0), got {self.fold}")
        if self.fold is not None and self.test_file is not None:
            raise ValueError("expected either a fold or a test_file, got both; a fold takes its test split from corpus")
        if self.text_column == self.label_column:
            raise ValueError(f"expected different columns for texts and labels, got {self.text_column!r} for both")
        if self.encoder is not None and self.vectors is not None:
            raise ValueError("expected either an encoder or word vectors, got both; leave one out")
        return self

    @property
    def vector_sets(self) -> tuple[str, ...]:
        return (self.vectors,) if isinstance(self.vectors, str) else self.vectors or ()

    @field_validator("vectors", "encoder")
    @classmethod
    def _found_from_anywhere(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        """What lies on disk is named by its whole path: commands may be given in another folder
        than the training."""
        if isinstance(value, tuple):
            return tuple(whole_path(each) for each in value)
        return whole_path(value) if value else value

    def describe(self, num_data: int) -> str:
        start = self.encoder or ", ".join(self.vector_sets) or "no word vectors"
        fold = "" if self.fold is None else f", fold {self.fold} of {self.folds}"
        return f"{self.corpus}{fold}, {num_data} sentences in batches of {self.batch_size}, {start}"


def whole_path(name: str) -> str:
    return str(Path(name).resolve()) if Path(name).exists() else name


def default_recipe(vectors: object, encoder: object) -> str:
    """The shipped recipe for labelled sentences: by what is known of words before training."""
    return "classify-encoder" if encoder else "classify-vectors" if vectors else "classify-words"


STEPS, FEWEST_EPOCHS, MOST_EPOCHS = 1200, 8, 40
"""Of training, where the recipe leaves epochs out."""


def epochs_by_size(sentences: int, data: SentenceData) -> int:
    """Passes over so many training sentences: fewer sentences are passed over more often."""
    batches = max(1, sentences // data.batch_size)
    fewest = FEWEST_EPOCHS if data.encoder else FEWEST_EPOCHS * 3 // 2
    return min(MOST_EPOCHS, max(fewest, round(STEPS / batches)))

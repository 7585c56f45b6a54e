"""The data table of sentence classification."""

from __future__ import annotations

from pydantic import Field

from .base import Table


class SentenceData(Table):
    """Which labelled sentences, their splits, word vectors, and batches."""

    corpus: str = Field("trec", description="a data set by name, or a CSV, TSV, JSONL or 'label text' file")
    valid_file: str | None = Field(None, description="labelled sentences for validation")
    test_file: str | None = Field(None, description="labelled sentences for the test")
    text_column: str = "text"
    label_column: str = "label"
    valid_share: float = Field(0.1, gt=0, lt=1, description="of the training sentences, where no validation is given")
    test_share: float = Field(0.1, ge=0, lt=1, description="of all sentences, where no test is given and no fold")
    folds: int = Field(10, ge=2, description="of cross-validation, where no test split is given")
    fold: int | None = Field(None, ge=0, description="the fold that is the test split of this run")
    min_count: int = Field(1, ge=1)
    max_vocab: int | None = Field(None, ge=2)
    vectors: str | None = Field(None, description="word vectors: a name in word_vectors/, or a file")
    train_vectors: bool = True
    batch_size: int = Field(50, ge=1)

    def describe(self, num_data: int) -> str:
        start = self.vectors or "no word vectors"
        return f"{self.corpus}, {num_data} sentences in batches of {self.batch_size}, {start}"

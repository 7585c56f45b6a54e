"""Texts → sparse rows: n-grams of words and of characters, weighted by TF-IDF.

Words in ones and twos, and characters in twos to fives within words; counts c enter as 1 + log c,
times log((1 + n)/(1 + df)) + 1 for an n-gram that df of n texts have. Either half of a row has
length one. The last column is constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from ..errors import LangevinError
from .logistic import Matrix

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

WORD = r"[\w'’-]+|[^\w\s]+"
"""A word with its apostrophes and hyphens, or punctuation marks."""
IDF = ("words_idf", "characters_idf")
"""Names of the tensors of weights."""


@dataclass(frozen=True)
class Ngrams:
    """Which n-grams are read, and log-weights of each."""

    words: tuple[str, ...]
    characters: tuple[str, ...]
    words_idf: Tensor
    characters_idf: Tensor
    _vectorizers: list[TfidfVectorizer] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def fit(cls, texts: Sequence[str], least: int) -> Self:
        """The n-grams of texts: those of words that `least` texts have, of characters two.

        Where few texts repeat anything, all are read.
        """
        found: list[tuple[tuple[str, ...], Tensor]] = []
        for kind, enough in (("word", least), ("char_wb", 2)):
            try:
                found.append(learn_ngrams(kind, texts, enough))
            except ValueError:  # nothing is left
                try:
                    found.append(learn_ngrams(kind, texts, 1))
                except ValueError:
                    raise LangevinError(
                        f"expected words in the texts, all {len(texts)} of them are blank; "
                        f"check the column they come from"
                    ) from None
        (words, words_idf), (characters, characters_idf) = found
        return cls(words, characters, words_idf, characters_idf)

    @property
    def width(self) -> int:
        return len(self.words) + len(self.characters) + 1

    def rows(self, texts: Sequence[str]) -> Matrix:
        """[texts, width], sparse. A text without a known n-gram has the constant alone."""
        from scipy.sparse import csr_array, hstack

        if not self._vectorizers:
            self._vectorizers.append(reader("word", self.words, self.words_idf))
            self._vectorizers.append(reader("char_wb", self.characters, self.characters_idf))
        ones = csr_array(np.ones((len(texts), 1), np.float32))
        if not texts:
            return csr_array((0, self.width), dtype=np.float32)  # type: ignore[no-any-return]
        parts = [each.transform(texts) for each in self._vectorizers]
        return csr_array(hstack([*parts, ones], "csr"))  # type: ignore[no-any-return]

    def to_tensors(self) -> dict[str, Tensor]:
        return {"words_idf": self.words_idf, "characters_idf": self.characters_idf}

    @classmethod
    def from_tensors(
        cls, words: Sequence[str], characters: Sequence[str], tensors: Mapping[str, Tensor]
    ) -> Self:
        """What was written; n-grams that repeat, and weights that do not fit, are refused."""
        for name, ngrams in zip(IDF, (words, characters), strict=True):
            idf = tensors[name]
            if len(set(ngrams)) != len(ngrams) or not ngrams:
                raise LangevinError(f"expected distinct n-grams for {name}, some repeat or none "
                                    f"is there; fit the linear part again")
            if idf.shape != (len(ngrams),) or bool((idf < 1).any()):
                raise LangevinError(f"expected {len(ngrams)} weights of at least 1 in {name}, got "
                                    f"shape {tuple(idf.shape)}; fit the linear part again")
        return cls(tuple(words), tuple(characters), tensors[IDF[0]], tensors[IDF[1]])


def learn_ngrams(kind: str, texts: Sequence[str], least: int) -> tuple[tuple[str, ...], Tensor]:
    """The n-grams that at least so many texts have, in the order of their columns; their idf."""
    vectorizer = reader(kind, (), None, least)
    with quiet_sklearn():
        vectorizer.fit(texts)
    names = tuple(str(name) for name in vectorizer.get_feature_names_out())
    return names, torch.from_numpy(np.asarray(vectorizer.idf_, np.float32))


def reader(
    kind: str, ngrams: Sequence[str], idf: Tensor | None, least: int = 1
) -> TfidfVectorizer:
    """A vectorizer of scikit-learn; without n-grams one that is still to learn them."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        analyzer=kind, ngram_range=(1, 2) if kind == "word" else (2, 5), token_pattern=WORD,
        sublinear_tf=True, min_df=least, dtype=np.float32,
        vocabulary={name: column for column, name in enumerate(ngrams)} or None,
    )  # fmt: skip
    if idf is not None:
        vectorizer.idf_ = idf.numpy()
    return vectorizer


@contextmanager
def quiet_sklearn() -> Iterator[None]:
    """scikit-learn warns that a pattern of words is not used for characters."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


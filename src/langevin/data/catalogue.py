"""Known data sets that may not be shipped: where they are looked for, what they must be, how to get them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from .known_images import IMAGE_SETS, INSTEAD

VARIABLE = "LANGEVIN_DATA"


def data_folder() -> Path:
    """Where data sets are looked for."""
    return Path(os.environ.get(VARIABLE, "data"))


@dataclass(frozen=True)
class File:
    """One file of a data set, as it must be."""

    name: str
    size: int
    sha256: str
    """Empty where it is not known: then the file is taken as it is."""
    holds: str

    @property
    def described(self) -> str:
        return f"{self.size:,} bytes" if self.size else self.holds


@dataclass(frozen=True)
class DataSet:
    """A named data set in a folder below LANGEVIN_DATA: `inside`, or one of the same name."""

    name: str
    what: str
    licence: str
    how_to_get: str
    files: dict[str, File]
    inside: str = ""
    instead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of other files that will do, where people may bring their own."""

    @property
    def folder(self) -> Path:
        return data_folder() / (self.inside or self.name)

    def read(self, key: str) -> bytes:
        """One file, refused with what to do when it is missing or is another one."""
        file = self.files[key]
        path = self.folder / file.name
        if not path.is_file():
            wanted = ", ".join(f"{f.name} ({f.described})" for f in self.files.values())
            raise LangevinError(
                f"{self.name} is not there: looked for {path}; put {wanted} into {self.folder} or set {VARIABLE} to "
                f"the folder that holds {self.folder.name}/. {self.how_to_get}"
            )
        raw = path.read_bytes()
        if file.sha256 and hashlib.sha256(raw).hexdigest() != file.sha256:
            raise LangevinError(
                f"{path} is not the {key} file of {self.name}: expected {file.size:,} bytes ({file.holds}) with sha256 "
                f"{file.sha256[:12]}…, got {len(raw):,} bytes; check that the split files were not swapped or edited"
            )
        return raw

    def has_another(self, key: str) -> bool:
        """Whether one that will do is there instead of this file."""
        return not (self.folder / self.files[key].name).is_file() and any(
            any(self.folder.glob(pattern)) for pattern in self.instead.get(key, ())
        )

    def is_there(self) -> bool:
        """All its files or others that will do, whatever is in them."""
        return all((self.folder / file.name).is_file() or self.has_another(key) for key, file in self.files.items())

    def state(self) -> dict[str, Any]:
        """What `langevin data` tells, JSON-ready."""
        problems = []
        for key in filter(lambda key: not self.has_another(key), self.files):
            try:
                self.read(key)
            except LangevinError as problem:
                problems.append(str(problem))
        whole = all((self.folder / file.name).is_file() for file in self.files.values())
        state = "found" if not problems else "damaged" if whole else "missing"
        return {
            "name": self.name, "state": state, "looked_in": str(self.folder), "what": self.what,
            "licence": self.licence, "how_to_get": self.how_to_get, "problems": problems,
            "files": {key: {"name": f.name, "bytes": f.size, "holds": f.holds} for key, f in self.files.items()},
        }


def sentence_set(name: str, what: str, **files: File) -> DataSet:
    return DataSet(
        name, what, "none stated", "It is among the sentence sets that came with 'skip-thoughts' and Kim's CNN, as "
        "lines of a label, a space and the tokenised text in UTF-8.", files, inside="sentences",
    )


def vector_set(name: str, what: str, licence: str, origin: str, vectors: File, words: File) -> DataSet:
    return DataSet(
        name, what, licence, f"It is {origin}, cut to the words of the data sets, as float16 rows and lines of a word, "
        f"a tab and its row.", {"vectors": vectors, "words": words}, inside="word_vectors",
    )


SENTENCES = (
    sentence_set("mr", "movie reviews, positive or negative", all=File(
        "mr.txt", 1_249_474, "8546714fde32fa2707ae99520c8e058b96c69dc6557803236272e6522a23526d", "10,662 sentences")),
    sentence_set("cr", "customer reviews, positive or negative", all=File(
        "cr.txt", 374_094, "a3839a79bd3285177a07158c6104b49038a7a06ab2abe897734cde5d22e5e325", "3,775 sentences")),
    sentence_set("subj", "subjective or objective sentences", all=File(
        "subj.txt", 1_310_417, "818bd67880e431f5777c0575639ae3fd6d154ec19c7cebd980095e7ce5d1b810", "10,000 sentences")),
    sentence_set("mpqa", "polarity of opinions", all=File(
        "mpqa.txt", 229_933, "66f88feecb50cb30ff766c5220edfde1508579c96a03f68d4dcb4857ea144995", "10,606 phrases")),
    sentence_set(
        "trec", "six types of questions",
        train=File("trec.train.txt", 292_402, "c6e4da56a4ac73536de67f0a6e081c27a872a3279ed7b1262bce123d835a4fd3",
                   "5,452 questions"),
        test=File("trec.test.txt", 19_479, "92a6a3cede5678b447ef5f1d7ec474134fcda211e6590e6fa627b4a2c68e4566",
                  "500 questions"),
    ),
)

VECTORS = (
    vector_set(
        "word2vec_googlenews_300d", "word2vec vectors of Google News", "none stated", "Google's word2vec of 2013",
        File("word2vec_googlenews_300d.npy", 11_941_328,
             "c389c38345f02354d168a15332d91ff9a10f25aafa487cf00f5ae9331128db5b", "300 numbers a word"),
        File("word2vec_googlenews_300d.vocab.tsv", 276_239,
             "b39da3468927e918734d77496bedcccbaac44a1e5ef3959be1d5546dfca60a9c", "words"),
    ),
    vector_set(
        "spacy_en_md_300d", "the vectors of spaCy's en_core_web_md", "MIT", "spaCy's en_core_web_md",
        File("spacy_en_md_300d.npy", 9_301_928,
             "46f606160a1f6468ea4eadde8566f82af9fa52da67fec3bca636830c29e18bd2", "300 numbers a word"),
        File("spacy_en_md_300d.vocab.tsv", 462_723,
             "44689d5cab42e3af4793e944581d65fa3a60f81c9715cd7f143f97e40b3b0838", "words"),
    ),
    vector_set(
        "glove_6b_100d", "GloVe vectors of 6 billion words", "PDDL", "Stanford's GloVe 6B",
        File("glove_6b_100d.npy", 6_933_928,
             "3339e8aaf16defeecf31655b3d8d810d511d2214b536d4e90ad8fca6cbd6223c", "100 numbers a word"),
        File("glove_6b_100d.vocab.tsv", 493_387,
             "98cc74f5d924b2f5734b495bd1416105a88e910b048e89603487f19a74ebb20b", "words"),
    ),
)

DATASETS = {
    **{known.name: known for known in (*SENTENCES, *VECTORS)},
    "ptb": DataSet(
        "ptb",
        "Penn Treebank, Mikolov's split, 10,000 words",
        "derived from LDC text; not to be passed on",
        "It is part of the 'simple-examples' archive of Mikolov's RNNLM toolkit.",
        {
            "train": File(
                "ptb.train.txt", 5_101_618, "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
                "929,589 tokens",
            ),
            "valid": File(
                "ptb.valid.txt", 399_782, "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
                "73,760 tokens",
            ),
            "test": File(
                "ptb.test.txt", 449_945, "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
                "82,430 tokens",
            ),
        },
    ),
}
DATASETS |= {
    name: DataSet(*about, {key: File(*file) for key, file in files.items()}, instead=INSTEAD.get(name, {}))
    for name, (about, files) in IMAGE_SETS.items()
}

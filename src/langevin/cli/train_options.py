"""The options of `train` by what they are about, and the settings of a recipe that they stand
for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LangevinError
from ..recipe.load import toml_value
from ..recipe.sentences import default_recipe
from ..training.engines import LOCAL
from .app import Gpus, Jobs, On


@dataclass(frozen=True)
class TextOptions:
    """A text of the user's own, and how it is cut into tokens."""

    text: Annotated[Path | None, typer.Option(help="train on this text file")] = None
    level: Annotated[str | None, typer.Option(help="byte, char or word")] = None
    min_count: Annotated[
        int | None, typer.Option(help="words seen less often become <unk>")
    ] = None
    max_vocab: Annotated[
        int | None, typer.Option(help="keep so many of the most frequent words")
    ] = None
    running: Annotated[
        bool, typer.Option("--running", help="words: a line end is no end of a sentence")
    ] = False

    def settings(self) -> list[str]:
        return [
            *([f"corpus={self.text.resolve()}"] if self.text else []),
            *([f"level={self.level}"] if self.level else []),
            *(["running=true"] if self.running else []),
            *numbers(min_count=self.min_count, max_vocab=self.max_vocab),
        ]


@dataclass(frozen=True)
class SentenceOptions:
    """Labelled sentences of the user's own, and what is known of words before training."""

    labelled: Annotated[
        Path | None, typer.Option("--train", help="labelled sentences: CSV, TSV, JSONL, lines")
    ] = None
    valid: Annotated[Path | None, typer.Option(help="labelled sentences for validation")] = None
    test: Annotated[Path | None, typer.Option(help="labelled sentences for the test")] = None
    text_column: Annotated[
        str | None, typer.Option(help="column of the texts (default: text)")
    ] = None
    label_column: Annotated[
        str | None, typer.Option(help="column of the labels (default: label)")
    ] = None
    class_weight: Annotated[
        str | None, typer.Option(help="balanced: every class counts alike, however rare")
    ] = None
    encoder: Annotated[
        str | None, typer.Option(help="read labelled sentences by this encoder: a folder or a name")
    ] = None
    vectors: Annotated[
        list[str] | None, typer.Option(help="word vectors, by name or file; may be repeated")
    ] = None
    refit: Annotated[
        bool, typer.Option("--refit", help="fit linear parts to validation too; then no promises")
    ] = False

    @property
    def recipe(self) -> str:
        return default_recipe(self.vectors, self.encoder)

    def settings(self) -> list[str]:
        """Names are quoted, as they may look like numbers."""
        files = {"corpus": self.labelled, "valid_file": self.valid, "test_file": self.test}
        values: dict[str, object] = {
            key: str(path.resolve()) for key, path in files.items() if path is not None
        }
        columns = {"text_column": self.text_column, "label_column": self.label_column}
        values |= {key: name for key, name in columns.items() if name is not None}
        one = self.vectors[0] if self.vectors and len(self.vectors) == 1 else self.vectors
        known = {"encoder": self.encoder, "vectors": one, "class_weight": self.class_weight}
        values |= {key: value for key, value in known.items() if value}
        values |= {"refit": True} if self.refit else {}
        return [f"{key}={toml_value(value)}" for key, value in values.items()]


@dataclass(frozen=True)
class BudgetOptions:
    """How long, and on which device."""

    epochs: Annotated[float | None, typer.Option(help="passes over the data")] = None
    minutes: Annotated[float | None, typer.Option(help="of training at most")] = None
    device: Annotated[
        str | None, typer.Option(help="torch device, such as cpu or cuda")
    ] = None

    def settings(self) -> list[str]:
        return numbers(**asdict(self))


@dataclass(frozen=True)
class ChainOptions:
    """Several chains at once, and where they run."""

    chains: Annotated[
        int | None, typer.Option(min=1, help="run K chains from different seeds side by side")
    ] = None
    jobs: Jobs = None
    on: On = LOCAL
    cpus: Annotated[
        int, typer.Option("--cpus-per-chain", min=1, help="threads of each chain")
    ] = 1
    gpus: Gpus = None

    def check(self) -> None:
        refuse_without_chains(self.chains is not None, self.on, self.cpus, self.gpus)


def refuse_without_chains(several: bool, on: str, cpus: int = 1, gpus: float | None = None) -> None:
    """One run alone is trained by this process, on the threads of its recipe."""
    if not several and (on != LOCAL or cpus != 1 or gpus is not None):
        raise LangevinError("expected chains for --on, --cpus-per-chain and --gpus-per-chain, got "
                            "one run, which trains in this process; ask for some by --chains")


def numbers(**values: float | str | None) -> list[str]:
    return [f"{key}={value}" for key, value in values.items() if value is not None]

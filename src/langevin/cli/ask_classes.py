"""The command that answers with labels: classify."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.text import Text

from ..data.prediction_files import AnswerFile, answer_file, refuse_answers_target
from ..data.tables import Rows
from ..errors import LangevinError
from ..posterior.risk import DecisionRule
from ..posterior.selection import Selection
from ..predict.answers import (
    Tally,
    answer_row,
    columns_of_file,
    file_texts,
    given_texts,
    predict_blocks,
    tell,
)
from ..predict.classification import ClassificationPosterior
from ..predict.decision import RiskTarget
from ..predict.load import open_as
from ..predict.results import Prediction
from ..process import Progress
from ..report.progress import Bars
from ..report.sentences import answer_table, answers_in_words
from ..report.terminal import messages, screen
from .app import (
    Confidence,
    Coverage,
    Folder,
    Json,
    Overwrite,
    Quiet,
    Risk,
    Statistic,
    command_group,
    example,
    takes_selection,
)

app = command_group()

SHOWN = 40
"""Answers in a table on the screen."""


@dataclass(frozen=True)
class Source:
    """Where texts come from, by the options of the command."""

    texts: list[str]
    file: Path | None
    text_column: str | None
    label_column: str | None
    labelled: bool
    out: Path | None

    def __post_init__(self) -> None:
        if (self.file is None) == (not self.texts):
            raise LangevinError("expected either texts or --file FILE, got "
                                + ("both" if self.texts else "neither"))  # fmt: skip
        if self.file is None and (self.labelled or self.text_column or self.label_column):
            raise LangevinError(
                "columns and labels are those of a file, got texts; leave --labelled, "
                "--text-column and --label-column out, or pass --file FILE"
            )

    def blocks(self, posterior: ClassificationPosterior) -> Iterator[Rows]:
        if self.file is None:
            return given_texts(self.texts)
        return file_texts(
            posterior, self.file, self.text_column, self.label_column, labelled=self.labelled,
            to_write=self.out is not None,
        )  # fmt: skip

    @contextlib.contextmanager
    def target(self, posterior: ClassificationPosterior) -> Iterator[AnswerFile | None]:
        """The file that the answers go to."""
        if self.out is None:
            yield None
            return
        columns = None
        if self.file is not None and self.out.suffix.lower() != ".jsonl":
            columns = columns_of_file(self.file, self.blocks(posterior))
        with answer_file(self.out, columns) as target:
            yield target


@app.command(epilog=example("langevin classify runs/mine --file new.csv --out answers.csv"))
@takes_selection
def classify(
    folder: Folder,
    selection: Selection,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="texts, each in quotes")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="texts: CSV, TSV, JSONL, or one a line")] = None,
    out: Annotated[
        Path | None, typer.Option(help="write all answers here (.csv, .tsv, .jsonl)")
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="column of the texts (default: as in training)")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(help="column of true labels, to count errors")
    ] = None,
    labelled: Annotated[
        bool, typer.Option("--labelled", help="the lines of the file are 'label text'")
    ] = False,
    risk: Risk = None,
    coverage: Coverage = None,
    confidence: Confidence = None,
    statistic: Statistic = "auto",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Labels of texts, how sure they are, and which to accept or to send to a person."""
    source = Source(texts or [], file, text_column, label_column, labelled, out)
    if out is not None:
        refuse_answers_target(out, overwrite=overwrite)
    target = RiskTarget.parse(risk, coverage, confidence, statistic)
    with Bars(quiet or as_json) as progress:
        posterior = open_as(ClassificationPosterior, folder, selection, progress)
        answer(posterior, source, target, progress, as_json)


def answer(
    posterior: ClassificationPosterior, source: Source, target: RiskTarget | None,
    progress: Progress, as_json: bool,
) -> None:
    """Predict block by block; all that is kept of a block is on disk, or among the first shown."""
    blocks = source.blocks(posterior)
    blocks = chain([next(blocks)], blocks)  # a file that cannot be read is refused before all else
    rule = rule_or_none(posterior, target, progress)
    tally, shown = Tally(posterior.labels), Shown(as_json)
    with shown:
        with source.target(posterior) as file:
            advance = progress.begin(0, "blocks of texts")
            for rows, found in predict_blocks(posterior, blocks, rule, tally):
                if file is not None:
                    file.write([answer_row(row, one)
                                for row, one in zip(rows.columns, found, strict=True)])
                shown.add(found)
                advance()
        told = tell(posterior, tally, rule, source.out)
        say(told.skipped, told.notes, [told.caution] if told.caution else [])
        if source.file is not None and tally.looks_labelled:
            say([], [f"every line of {source.file} begins with a label; if they are 'label text', "
                     f"pass --labelled"])
        if as_json:
            shown.print_json(json.dumps(told.to_dict()))
            return
    if source.out is None:
        names = dict(zip(posterior.labels, posterior.label_names, strict=True))
        screen.print(answer_table(shown.first, rule, told.samples, names))
        if told.items > SHOWN:
            screen.print(f"and {told.items - SHOWN} more; --out FILE keeps them all")
    screen.print(answers_in_words(told), end="")


@dataclass
class Shown:
    """The first predictions, and all as JSON in a file of its own until the numbers are known."""

    as_json: bool
    first: list[Prediction] = field(default_factory=list)
    spool: IO[str] | None = None
    count: int = 0

    def __enter__(self) -> Shown:
        if self.as_json:
            self.spool = tempfile.TemporaryFile("w+", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self.spool is not None:
            self.spool.close()

    def add(self, found: list[Prediction]) -> None:
        self.first += found[: max(0, SHOWN - len(self.first))]
        if self.spool is not None:
            for one in found:
                self.spool.write(", " if self.count else "")
                self.spool.write(json.dumps(one.to_dict()))
                self.count += 1

    def print_json(self, head: str) -> None:
        """The numbers with all predictions as `texts`."""
        assert self.spool is not None
        self.spool.seek(0)
        sys.stdout.write(head[:-1] + ', "texts": [')
        shutil.copyfileobj(self.spool, sys.stdout)
        sys.stdout.write("]}\n")


def say(skipped: tuple[str, ...] | list[str], *notes: tuple[str, ...] | list[str]) -> None:
    lines = [*(f"skipped: {problem}" for problem in skipped), *chain.from_iterable(notes)]
    for line in lines:
        messages.print(Text(line, style="yellow"), soft_wrap=True)


def rule_or_none(
    posterior: ClassificationPosterior, target: RiskTarget | None, progress: Progress
) -> DecisionRule | None:
    """A rule that nobody asked for may fail with the validation data; any other may not."""
    try:
        return posterior.rule_for(target, progress)
    except LangevinError as error:
        if target is not None:
            raise
        say([], [f"no decisions: {error}"])
        return None

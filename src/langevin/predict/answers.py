"""Many texts, block after block: their predictions, and what is told of all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..data.formats import kind_of_table
from ..data.prediction_files import COLUMNS, columns_in
from ..data.tables import Rows, read_blocks, refuse_half_signs
from ..models.reading import StateReader
from ..posterior.risk import DecisionRule
from ..posterior.scores import Result
from .classification import ClassificationPosterior
from .encoded import make_predictions
from .results import Prediction

ACCEPT, PERSON = "accept", "send to a person"


@dataclass(frozen=True)
class Answers(Result):
    """What is told of many texts beside the prediction of each."""

    run: str
    samples: int
    items: int
    accepted: int | None
    """None without a rule."""
    rule: DecisionRule | None
    caution: str | None
    """Why the promise of the rule is not exact."""
    notes: tuple[str, ...]
    """What a reader of the predictions should know about the texts."""
    labelled: int | None = None
    """Texts with a label that training had; None where the file has no labels."""
    wrong: int | None = None
    out: str | None = None
    skipped: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"rule": self.rule.to_dict() if self.rule else None}


@dataclass
class Tally:
    """Counts what is told of all texts while their blocks go by."""

    labels: Sequence[str]
    items: int = 0
    accepted: int = 0
    empty: int = 0
    cut: int = 0
    has_labels: bool = False
    wrong: int = 0
    known: int = 0
    strange: Counter[str] = field(default_factory=Counter)
    begin_with_labels: bool = True
    words: bool = False

    def add(self, rows: Rows, found: Sequence[Prediction]) -> None:
        self.items += len(found)
        self.accepted += sum(bool(one.accepted) for one in found)
        self.empty += sum(one.empty for one in found)
        self.cut += sum(one.cut for one in found)
        known = set(self.labels)
        if rows.labels is None:
            firsts = [text.split(maxsplit=1)[0] for text in rows.texts if text]
            self.begin_with_labels &= known.issuperset(firsts)
            self.words |= bool(firsts)
            return
        self.has_labels = True
        pairs = [(one, label) for one, label in zip(found, rows.labels, strict=True)
                 if label in known]
        self.known += len(pairs)
        self.wrong += sum(one.label != label for one, label in pairs)
        self.strange.update(label for label in rows.labels if label and label not in known)

    @property
    def looks_labelled(self) -> bool:
        """Every text begins with a label, as if the lines were 'label text'."""
        return self.words and self.begin_with_labels and not self.has_labels

    def notes(self, limit: str) -> list[str]:
        """What was out of the ordinary, in words."""
        notes = []
        if self.empty:
            notes.append(f"empty texts: {self.empty}, answered with the shares of the classes in "
                         f"training")
        if self.cut:
            notes.append(f"texts cut after {limit}: {self.cut}")
        if self.strange:
            shown = ", ".join(repr(label) for label in sorted(self.strange)[:5])
            notes.append(f"labels that training never had: {shown} on {self.strange.total()} of "
                         f"{self.items} texts; those are answered but not counted as right or "
                         f"wrong")
        return notes


def given_texts(texts: Sequence[str]) -> Iterator[Rows]:
    """Texts of a command line, as one block."""
    for text in texts:
        refuse_half_signs(text, "a text of the command line")
    yield Rows(list(texts), [{"text": text} for text in texts], None, free=True)


def file_texts(
    posterior: ClassificationPosterior, file: Path, text_column: str | None,
    label_column: str | None, *, labelled: bool, to_write: bool,
) -> Iterator[Rows]:
    """The texts of a file, whose columns are named as in training."""
    data = posterior.settings
    return read_blocks(
        file, text_column or data.text_column, label_column, usual_label=data.label_column,
        labelled=labelled, reserved=COLUMNS if to_write else (),
    )


def columns_of_file(file: Path, blocks: Iterator[Rows]) -> list[str] | None:
    """The columns of all rows, where they may differ from row to row; None: as in the first."""
    if kind_of_table(str(file)) != "json":
        return None
    names: dict[str, None] = {}
    for block in blocks:
        names |= dict.fromkeys(columns_in(block.columns))
    return [*names, *COLUMNS]


def predict_blocks(
    posterior: ClassificationPosterior, blocks: Iterator[Rows], rule: DecisionRule | None,
    tally: Tally,
) -> Iterator[tuple[Rows, list[Prediction]]]:
    """Predictions block by block; the tally has seen what was given out."""
    sets = posterior.set_rule
    for rows in blocks:
        encoded = posterior.encode(rows.texts, free=rows.free)
        found = make_predictions(
            posterior.labels, encoded, posterior.predictive(encoded), rule, sets
        )
        tally.add(rows, found)
        yield rows, found


def answer_row(columns: dict[str, Any], one: Prediction) -> dict[str, Any]:
    """A row of a file with its answer."""
    numbers = (one.p[one.label], one.std[one.label], one.entropy, one.mutual_information)
    decision = {None: "", True: ACCEPT, False: PERSON}[one.accepted]
    note = "empty" if one.empty else "cut" if one.cut else ""
    answer = (one.label, *(round(number, 6) for number in numbers), decision, note)
    return columns | dict(zip(COLUMNS, answer, strict=True))


def limit_of(posterior: ClassificationPosterior) -> str:
    """How much of a text is read, in words."""
    if isinstance(posterior.reader, StateReader):
        return f"{posterior.reader.encoder.limit} tokens, as many as the encoder reads"
    return f"{posterior.settings.max_words} words (max_words of the run)"


def tell(
    posterior: ClassificationPosterior, tally: Tally, rule: DecisionRule | None, out: Path | None
) -> Answers:
    """All together."""
    return Answers(
        run=str(posterior.path), samples=len(posterior), items=tally.items,
        accepted=tally.accepted if rule else None, rule=rule,
        caution=posterior.caution(rule) if rule else None,
        notes=tuple(tally.notes(limit_of(posterior))),
        labelled=tally.known if tally.has_labels else None,
        wrong=tally.wrong if tally.has_labels else None, out=str(out) if out else None,
        skipped=tuple(posterior.opened.chosen.skipped),
    )  # fmt: skip

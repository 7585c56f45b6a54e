"""The command that answers with labels: classify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from ..data.prediction_files import COLUMNS, check_target, write_answers
from ..data.tables import Rows, read_rows, refuse_half_signs
from ..errors import LangevinError
from ..posterior.risk import DecisionRule
from ..predict.classification import Classifier, answers, remarks
from ..predict.decision import Target, caution, decisions, rule_for
from ..report.progress import Bars
from ..report.sentences import answer_table, rule_in_words
from ..report.terminal import messages, screen
from ..posterior.selection import Selection
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
from ..process import Progress

app = command_group()

SHOWN = 40
"""Answers in a table on the screen."""


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
    if (file is None) == (not texts):
        raise LangevinError(
            "expected either texts or --file FILE, got " + ("both" if texts else "neither")
        )
    if out is not None:
        check_target(out, overwrite=overwrite)
    target = Target.asked(risk, coverage, confidence, statistic)
    run = Classifier(folder, selection)
    rows = rows_to_answer(
        run, texts, file, text_column, label_column, labelled, to_write=out is not None
    )
    with Bars(quiet or as_json) as progress:
        rule = the_rule(run, target, progress)
        encoded = run.encode(rows.texts, free=rows.free)
        given = run.predict({"texts": encoded.sentences}, progress.begin(len(run.samples)))["texts"]
    decided = decisions(rule, given, encoded) if rule else [None] * len(rows.texts)
    answered = [
        a | {"decision": d}
        for a, d in zip(answers(run, rows.texts, encoded, given), decided, strict=True)
    ]
    if out is not None:
        write_answers(out, rows.columns, answered)
    scored, doubt = error_of(run, rows, answered), caution(run, rule) if rule else None
    for said in [
        *(f"skipped: {problem}" for problem in run.skipped),
        *remarks(run, encoded),
        *scored.pop("said", []),
        *([doubt] if doubt else []),
    ]:
        messages.print(Text(said, style="yellow"), soft_wrap=True)
    if as_json:
        told = json.loads(rule.to_json()) if rule else None
        print(
            json.dumps(
                {
                    "run": str(folder),
                    "samples": len(run.samples),
                    "skipped": run.skipped,
                    "rule": told,
                    "caution": doubt,
                    "out": str(out) if out else None,
                    **scored,
                    "texts": answered,
                }
            )
        )
    else:
        show_answers(answered, rule, len(run.samples), out, scored)


def rows_to_answer(
    run: Classifier,
    texts: list[str] | None,
    file: Path | None,
    text_column: str | None,
    label_column: str | None,
    labelled: bool,
    *,
    to_write: bool,
) -> Rows:
    """Texts of the command line or of a file, whose columns are named as in training."""
    if file is None:
        if labelled or text_column or label_column:
            raise LangevinError(
                "columns and labels are those of a file, got texts; leave --labelled, "
                "--text-column and --label-column out, or pass --file FILE"
            )
        for text in texts or []:
            refuse_half_signs(text, "a text of the command line")
        return Rows(list(texts or []), [{"text": text} for text in texts or []], None, free=True)
    rows = read_rows(
        file,
        text_column or run.data.text_column,
        label_column,
        usual_label=run.data.label_column,
        labelled=labelled,
        reserved=COLUMNS if to_write else (),
    )
    if rows.labels is None and not labelled and looks_labelled(rows.texts, run.labels):
        messages.print(
            f"every line of {file} begins with a label; if they are 'label text', pass --labelled",
            style="yellow",
            soft_wrap=True,
        )
    return rows


def looks_labelled(texts: list[str], labels: list[str]) -> bool:
    return all(text.split(maxsplit=1)[0] in labels for text in texts if text) and any(texts)


def the_rule(run: Classifier, target: Target | None, progress: Progress) -> DecisionRule | None:
    """A rule that nobody asked for may fail with the validation data; any other may not."""
    try:
        return rule_for(run, target, progress)
    except LangevinError as error:
        if target is not None:
            raise
        messages.print(Text(f"no decisions: {error}", style="yellow"), soft_wrap=True)
        return None


def error_of(run: Classifier, rows: Rows, answered: list[dict[str, Any]]) -> dict[str, Any]:
    """How many answers are wrong, where the file has labels; unknown labels are left out."""
    if rows.labels is None:
        return {}
    strange = sorted({label for label in rows.labels if label and label not in run.labels})
    known = [
        (a, label) for a, label in zip(answered, rows.labels, strict=True) if label in run.labels
    ]
    said = []
    if strange:
        many = sum(label in strange for label in rows.labels)
        shown = ", ".join(repr(label) for label in strange[:5])
        said.append(
            f"labels that training never had: {shown} on {many} of {len(rows.labels)} texts; "
            f"those are answered but not counted as right or wrong"
        )
    wrong = sum(a["label"] != label for a, label in known)
    return {"labelled": len(known), "wrong": wrong, "said": said}


def show_answers(
    answered: list[dict[str, Any]],
    rule: DecisionRule | None,
    samples: int,
    out: Path | None,
    scored: dict[str, Any],
) -> None:
    if out is None:
        screen.print(answer_table(answered[:SHOWN], rule, samples))
        if len(answered) > SHOWN:
            screen.print(f"and {len(answered) - SHOWN} more; --out FILE keeps them all")
    else:
        accepted = sum(a["decision"] == "accept" for a in answered)
        decided = f", {accepted} of them accepted: {rule_in_words(rule)}" if rule else ""
        screen.print(Text(f"{len(answered)} answers in {out}{decided}"))
    if scored.get("labelled"):
        screen.print(
            f"wrong: {scored['wrong']} of {scored['labelled']} "
            f"({scored['wrong'] / scored['labelled']:.2%})"
        )

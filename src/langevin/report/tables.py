"""A result as a table: title, columns, rows. The terminal and the page draw it each in its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..posterior.scores import Scores
from ..predict.results import Evaluation, ModelScores
from ..predict.twin import TwinGain
from ..store.samples import name_of_last

HEADINGS = {
    "nll": "nll (nats)", "perplexity": "perplexity", "bits_per_byte": "bits per byte",
    "error": "error (%)", "brier": "Brier score", "ece": "ECE", "unknown_share": "unknown (%)",
    "items": "items",
}  # fmt: skip
"""The numbers of a model in their order, with their units."""
SHARES = ("error", "unknown_share")
"""Fractions that tables give in per cent."""
MANY = 6
"""Metrics that stand beside each other on 80 columns."""
COUNTS = 16
"""Of the scores by number of samples, so many are shown."""



@dataclass(frozen=True)
class Shade:
    """A piece of a text on a colour as strong as its share, 0 to 1."""

    text: str
    share: float = 0.0
    note: str = ""
    """What the page tells who points at it."""
    marked: bool = False
    """The one that the row is about."""


Passage = tuple[Shade, ...]
Cells = tuple[str | Passage, ...]
Models = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class ResultTable:
    """What is told of a result; the first column names the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Cells, ...]
    words: bool = False
    """Words stand left, numbers right."""
    named: bool = False
    """Names in the first column are never cut, so that no two look alike."""


def evaluation_tables(result: Evaluation) -> list[ResultTable]:
    """A line for each model; of many metrics a line for each, which fits a terminal."""
    heat = "" if result.temperature is None else f", temperature {result.temperature:g}"
    title = f"{result.run} on {result.split}, {result.why}{heat}"
    models, chains = models_of(result), chains_of_result(result)
    if result.compared:
        return [compared_table(title, result, chains)]
    names = metrics_of(models)
    if len(names) <= MANY:
        *alone, whole = models.items()
        return [models_by_metrics(title, dict(alone) | chains | dict([whole]))]
    rows = tuple((heading(name, result.unit), *(cell(m, name) for m in models.values()))
                 for name in names)  # fmt: skip
    table = ResultTable(title, ("metric", *models), rows)
    return [table, models_by_metrics("chain by chain", chains)] if chains else [table]


def models_of(result: Evaluation) -> dict[str, dict[str, float]]:
    """What an evaluation compares, the average last; captions add their metrics."""
    words = result.captions
    found: dict[str, Scores | None] = {name_of_last(result.how): result.last,
                                       "best single sample": result.best_single}
    found |= result.members
    whole = f"average of {result.samples}" + (" masks" if result.masks else "")
    found |= {"adapted": result.adapted, "pooled": result.pooled, whole: result.averaged}
    shown = {label: scores.present() for label, scores in found.items() if scores is not None}
    if words:
        shown[name_of_last(result.how)] |= words.last
        shown[whole] |= words.averaged
    return shown


def compared_table(title: str, result: Evaluation, chains: Models) -> ResultTable:
    """The members of a pool and the pool, each with its gain over one network."""
    last = name_of_last(result.how)
    lines = {last: result.last.present(), **chains}
    lines |= {line.name: line.scores.present() for line in result.compared}
    names = metrics_of(lines)
    gains = {line.name: signed(line.gain, line.gain_error) for line in result.compared}
    rows = tuple((label, *(cell(numbers, name) for name in names), gains.get(label, ""))
                 for label, numbers in lines.items())  # fmt: skip
    first = result.compared[0].name
    columns = ("model", *(heading(name, result.unit) for name in names), f"gain over {first} (nats)")
    return ResultTable(title, columns, rows)


def signed(gain: float | None, error: float | None) -> str:
    """Nats, above 0 where it is better, with the standard error."""
    if gain is None:
        return ""
    return f"{gain:+.4f}" + ("" if error is None else f" ± {error:.4f}")


def chains_of_result(result: Evaluation) -> dict[str, dict[str, float]]:
    return {f"chain {c.chain}, average of {c.samples}": c.scores.present() for c in result.chains}


def metrics_of(models: Models) -> list[str]:
    """Those that any of the models has, ours first."""
    every = dict.fromkeys(name for numbers in models.values() for name in numbers)
    return [*(name for name in HEADINGS if name in every),
            *(name for name in every if name not in HEADINGS)]  # fmt: skip


def models_by_metrics(title: str, models: Models) -> ResultTable:
    names = metrics_of(models)
    rows = tuple((label, *(cell(numbers, name) for name in names))
                 for label, numbers in models.items())  # fmt: skip
    return ResultTable(title, ("model", *map(heading, names)), rows)


def heading(name: str, unit: str = "item") -> str:
    return f"{unit}s" if name == "items" else HEADINGS.get(name, name)


def cell(numbers: Mapping[str, float], name: str) -> str:
    """A number that a model does not have is left blank."""
    return shown_number(name, numbers[name]) if name in numbers else ""


def shown_number(name: str, value: float) -> str:
    """As tables give it: counts whole, shares in per cent."""
    if isinstance(value, int) and name == "items":
        return f"{value:,}"
    return f"{100 * value:.2f}" if name in SHARES else f"{value:.4f}"


def in_table_units(name: str, values: Sequence[float]) -> list[float]:
    """The same for figures."""
    return [100 * value if name in SHARES else value for value in values]


def curve_table(curves: Mapping[str, Sequence[float]], score: str) -> ResultTable:
    """The score of each collection against the number of samples."""
    total = len(curves["forward"])
    counts = sorted({round(1 + i * (total - 1) / (COUNTS - 1)) for i in range(COUNTS)})
    rows = tuple((str(n), *(shown_number(score, curve[n - 1]) for curve in curves.values()))
                 for n in counts)  # fmt: skip
    return ResultTable(f"{heading(score)} by number of samples", ("samples", *curves), rows)


def models_table(rows: Sequence[ModelScores]) -> ResultTable:
    """Models beside each other: scores, what they cost, how much of the average they keep."""
    names = [name for name in metrics_of({r.model: r.scores.present() for r in rows})
             if name != "items"]  # fmt: skip
    body = tuple(
        (row.model, *(cell(row.scores.present(), n) for n in names), str(row.passes),
         "" if row.seconds is None else f"{1000 * row.seconds:.4f}",
         "" if row.gap_closed is None else f"{row.gap_closed:.0%}")
        for row in rows
    )  # fmt: skip
    columns = ("model", *map(heading, names), "forward passes", "ms an item", "nll gap closed")
    return ResultTable("side by side", columns, body)


def gain_in_words(result: Evaluation) -> str:
    """Did sampling help? The average against the best single sample and against the last."""
    if len(result.each) < 2:
        return "One sample: there is nothing to average."
    rivals = [("the last", result.gain_over_last, result.gain_over_last_error)]
    if result.best_single is not None:
        chosen = "chosen on this split" if result.split == "valid" else "chosen by validation"
        best = f"the best single sample, {chosen},"
        rivals.insert(0, (best, result.gain, result.gain_error))
    sentences = [compared(gain, error, name, result.unit) for name, gain, error in rivals
            if gain is not None]  # fmt: skip
    if not sentences:
        return ""
    return f"On {result.split}, the average of {result.samples} samples is {' and '.join(sentences)}."


def twin_in_words(result: TwinGain) -> str:
    """What sampling was worth: the average of a run against one network of its optimiser."""
    rival = f"the best network of {result.optimiser}, chosen on this split,"
    said = compared(result.gain, result.gain_error, rival, result.unit)
    many = result.samples > 1
    ours = f"the average of {result.samples} samples" if many else "the one sample that is used"
    return (f"On {result.split}, {ours} is {said}. Training took {result.steps} "
            f"steps and {result.seconds:.0f} s; that of {result.optimiser}, in {result.twin}, "
            f"{result.twin_steps} steps and {result.twin_seconds:.0f} s.")


def compared(gain: float, error: float | None, other: str, unit: str) -> str:
    """In words, with the standard error of the difference."""
    side = "better" if gain > 0 else "worse"
    if error is None:
        return f"{side} than {other} by {abs(gain):.4f} nats per {unit} (too few for an error bar)"
    bar = f"{abs(gain):.4f} ± {error:.4f} nats per {unit}"
    if abs(gain) <= 1.96 * error or gain == 0:
        return f"as good as {other} to within the error ({side} by {bar})"
    return f"{side} than {other} by {bar}"


def unfinished_in_words(result: Evaluation) -> str | None:
    """Of a run that was interrupted."""
    if result.finished:
        return None
    return (f"{result.run} is not finished: it stands at step {result.steps}; "
            f"go on with: langevin resume {result.run}")  # fmt: skip

"""The parts of the page about a run, each from what was gathered."""

from __future__ import annotations

from typing import Any

from ..predict.draws import Draws
from ..store.folder import RunFolder
from .components import Html, element, figure, html_table, parts, captioned_table
from .diagnosis import diagnosis_tables, thinning_in_words
from .figures import Line, draw_collections, draw_learning_curves, draw_lines, draw_reliability, finish
from .story import ReportData
from .summary import run_summary
from .tables import evaluation_tables, gain_in_words, heading, in_table_units, shown_number
from .terminal import duration
from .uncertain import parts_table, item_scores_table

SAID = {"nll": "a mean nll of {} nats", "error": "an error of {} %"}
NONE_YET = "No samples were kept yet: the run has not passed its burn-in."


def overview(story: ReportData) -> Html:
    """What the run is and, in one sentence, what came out."""
    facts = run_summary(story.folder)["facts"]
    return parts(headline(story), captioned_table(
        "The run", ("", ""), [(key, str(value)) for key, value in facts.items()], words=True,
    ))


def headline(story: ReportData) -> Html:
    """The last sample beside the average, the better one in bold, and what is certain about it."""
    result = story.evaluation
    if result is None:
        return element("p", NONE_YET)
    score = result.score
    single, averaged = result.last.present()[score], result.averaged.present()[score]
    better = "strong" if averaged <= single else "span"
    other = "span" if averaged <= single else "strong"
    return element(
        "p", f"On the {story.split} split the average of {result.samples} samples has ",
        element(better, said(score, averaged)), "; the last sample alone has ",
        element(other, said(score, single)), f". {gain_in_words(result)}{by_validation(story)}",
        class_="headline",
    )


def said(score: str, value: float) -> str:
    return SAID[score].format(shown_number(score, value))


def by_validation(story: ReportData) -> str:
    """The score of the collection that validation chose, which commands average; the page: all."""
    result, choice = story.evaluation, story.collection
    if result is None or result.curve is None or choice is None:
        return ""
    if story.split == "valid":  # chosen there: too good
        return ""
    value = said(result.score, result.curve[choice.how][choice.samples - 1])
    each = " of each chain" if story.folder.chains else ""
    return (f" The {choice.how} collection of {choice.samples}{each}, which validation chose and "
            f"other commands average, has {value}.")


def learning(story: ReportData) -> Html:
    """Validation scores and training loss against epochs."""
    history = story.progress.lines() if story.progress else []
    if not history:
        return parts(element("p", "Nothing was recorded yet."))
    scores = ["nll"] if "nll" in history[0]["valid"] else []
    scores += [story.task.score] if story.task.score not in scores else []
    size = (6.4, 3.8) if len(scores) == 1 else (4.9, 3.6)
    figures = [learning_figure(history, score, story.folder.recipe.run.first_sample, size) for score in scores]
    return parts(element("div", *figures, class_="figures"))


def learning_figure(
    history: list[dict[str, Any]], score: str, burn_in: float, size: tuple[float, float]
) -> Html:
    return figure(
        lambda axes: draw_learning_curves(axes, learning_lines(history, score), burn_in, heading(score)),
        f"{heading(score)} on validation against epochs of training; no sample is kept in the shaded burn-in of "
        f"{burn_in:g} epochs.", size,
    )


def learning_lines(history: list[dict[str, Any]], score: str) -> dict[str, Line]:
    """Training loss, each sample and the running average, of each chain."""
    lines: dict[str, Line] = {}
    chains = sorted({line.get("chain", 0) for line in history})
    for chain in chains:
        record_lines = [line for line in history if line.get("chain", 0) == chain]
        suffix = f", chain {chain}" if len(chains) > 1 else ""
        if score == "nll":
            lines[f"training loss{suffix}"] = [x["epoch"] for x in record_lines], [x["train_loss"] for x in record_lines]
        lines[f"weights at that time{suffix}"] = [x["epoch"] for x in record_lines], in_table_units(score, [x["valid"][score] for x in record_lines])
        later = [x for x in record_lines if "average" in x]
        if later:
            lines[f"running average{suffix}"] = [x["epoch"] for x in later], in_table_units(score, [x["average"][score] for x in later])
    return lines


def collections(story: ReportData) -> Html:
    """The scores, and the score by the number of samples, forward, backward and thinned."""
    result = story.evaluation
    if result is None or result.curve is None:
        return parts(element("p", NONE_YET))
    curve, single = result.curve, result.last.present()[result.score]
    drawn = figure(
        lambda axes: draw_collections(
            axes, {how: in_table_units(result.score, line) for how, line in curve.items()},
            heading(result.score), in_table_units(result.score, [single])[0]),
        f"{heading(result.score)} on {story.split} of the average of 1, 2, … samples: the first "
        f"ones (forward), the last ones (backward), or evenly spaced ones (thinned).",
    )  # fmt: skip
    return parts(*map(html_table, evaluation_tables(result)), drawn)


def calibration(story: ReportData) -> Html:
    """Reliability of the last sample and of the average, and the parts of the uncertainty."""
    if story.ranked is None:
        return parts(element("p", NONE_YET))
    result, made = story.ranked.result, story.ranked.predictions
    bins = {"last sample": made.last.reliability(),
            f"average of {result.samples}": made.averaged.reliability()}  # fmt: skip
    drawn = figure(
        lambda axes: draw_reliability(axes, bins),
        f"Reliability on {story.split}: the share of right answers among those given with a "
        f"certain confidence. On the diagonal a probability means what it says; ECE "
        f"{result.last.ece:.3f} for the last sample, {result.averaged.ece:.3f} for the average.",
        (5.0, 4.2),
    )
    return parts(html_table(item_scores_table(result)), html_table(parts_table(result)), drawn)


def diagnostics(story: ReportData) -> Html:
    """The verdict first, then what it rests on."""
    if not isinstance(story.diagnosis, tuple):
        return parts(element("p", f"No diagnosis: {story.diagnosis}" if story.diagnosis else NONE_YET))
    found, draws = story.diagnosis
    verdict = element("ul", *(
        element("li", element("strong", finding.code), f": {finding.words}")
        for finding in found.verdict
    ))
    thinning = [element("p", line) for line in thinning_in_words(found)]
    return parts(verdict, trace(draws, found.split), *map(html_table, diagnosis_tables(found)),
                 *thinning)


def trace(draws: Draws, split: str) -> Html:
    """The held-out log-likelihood of each sample, chain by chain."""

    def draw(axes: Any) -> None:
        draw_lines(axes, {f"chain {chain}": (range(1, len(line) + 1), line.tolist())
                          for chain, line in enumerate(draws.held_out)})
        axes.set(xlabel="sample", ylabel="log-likelihood (nats per item)")
        axes.locator_params(axis="x", integer=True)
        finish(axes)

    return figure(draw, f"Mean log-likelihood of the {split} split under each sample, in the order they were drawn.",
                  (6.4, 2.8))


def cost(story: ReportData) -> Html:
    """Time, steps, samples and disk."""
    progress, folder = story.progress, story.folder
    seconds, steps = (progress.seconds, progress.step) if progress else (0.0, 0)
    samples = len(folder.store())
    rows = [
        ("training time", duration(seconds) + (f", summed over {len(folder.chains)} chains" if folder.chains else "")),
        ("steps", f"{steps:,}" + (f" ({steps / seconds:.1f} per second)" if seconds else "")),
        ("weights", f"{story.weights:,}" if story.weights else "—"),
        ("samples", str(samples)),
        ("size on disk", f"{disk_size(folder) / 1e6:,.1f} MB"),
    ]
    if samples:
        rows.append(("time at prediction", f"{samples} × that of one network, when all samples are used"))
    return parts(captioned_table("What it took", ("", ""), rows, words=True))


def disk_size(folder: RunFolder) -> int:
    """Bytes of recipe, vocabulary, checkpoint and samples."""
    return sum(path.stat().st_size for path in folder.path.rglob("*") if path.is_file() and path.suffix != ".html")


def recipe(story: ReportData) -> Html:
    """The whole recipe, and where and with what the run was made."""
    origin = story.folder.origin
    flat = {"commit": origin.commit or "unknown", **origin.versions, **origin.machine.model_dump(), **origin.data}
    if origin.teacher:
        flat["teacher"] = f"{len(origin.teacher.samples)} samples of {origin.teacher.run}"
    rows = [(key, str(value)) for key, value in flat.items()]
    return parts(
        element("pre", element("code", story.folder.recipe.to_toml()), tabindex="0"),
        captioned_table("Made with, on, and from", ("", ""), rows, words=True),
    )

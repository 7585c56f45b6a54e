"""The same numbers four times: tables in the terminal, JSON, markdown for docs/speed.md, a
figure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .verdicts import FORMS, fastest

Lines = list[tuple[str, ...]]
Section = tuple[str, tuple[str, ...], Lines]
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def sections(results: Mapping[str, Any]) -> list[Section]:
    """Title, columns and lines of every table."""
    columns = ("ratio", "measured", "quartiles", "by parts", "must", "goal", "verdict")
    made = [("Required ratios", columns, ratio_lines(results))]
    for shape, measured in results["steps"].items():
        columns = ("step", "ms", "quartiles", "of GEMM ceiling", "its update, ms")
        lines = [
            (*line, f"{1e3 * measured[line[0]]['update']:.2f}" if "update" in measured[line[0]] else "")
            for line in time_lines(measured, "of_gemm")
        ]
        made.append((f"Full training step, {shape}", columns, lines))
    for weights, measured in results["updates"].items():
        title = f"The update alone, {int(weights) / 1e6:g} M weights"
        columns = ("update", "ms", "quartiles", "of bandwidth")
        made.append((title, columns, time_lines(measured, "of_bandwidth")))
    rows = [line[:3] for line in time_lines(results["rows"])]
    made.append(("Embedding part of an SGLD step, lazy rows, 640 tokens", ("rows", "ms", "quartiles"), rows))
    columns = ("step", "ms with", "ms without", "page faults with", "without", "peak MB with", "without")
    made.append(("Start-up care, a training step of SGLD in fresh processes", columns, startup_lines(results)))
    return made


def ratio_lines(results: Mapping[str, Any]) -> Lines:
    lines = []
    for r in results["ratios"]:
        must, goal = (f"{r['sign']} {r[key]:.2f}" if r[key] is not None else "" for key in ("must", "goal"))
        measured, spread = ("", "") if r["ratio"] is None else (f"{r['ratio']:.3f}", f"{r['q1']:.3f}–{r['q3']:.3f}")
        parts = f"{r['by_parts']:.3f}" if r.get("by_parts") else ""
        lines.append((r["what"], measured, spread, parts, must, goal, r["verdict"]))
    return lines


def time_lines(measured: Mapping[str, Any], share: str | None = None) -> Lines:
    lines = []
    for name, s in sorted(measured.items(), key=lambda item: float(item[1]["median"])):
        median, spread = f"{1e3 * s['median']:.2f}", f"{1e3 * s['q1']:.2f}–{1e3 * s['q3']:.2f}"
        part = s.get(share) if share else None
        lines.append((name, median, spread, "" if part is None else f"{100 * part:.0f}%"))
    return lines


def startup_lines(results: Mapping[str, Any]) -> Lines:
    lines = []
    for shape, pair in results["startup"].items():
        both = (pair["with"], pair["without"])
        lines.append((
            shape, *(f"{1e3 * s['median']:.2f}" for s in both),
            *(f"{s['last']['page_faults_per_step']:.0f}" for s in both),
            *(f"{peak:.0f}" if (peak := s["last"].get("peak_resident_megabytes")) else "" for s in both),
        ))  # fmt: skip
    return lines


def provenance(results: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    machine = results["machine"]
    best = results["ceilings"]
    gflops, gbytes = (", ".join(f"{v:.0f}" for v in best[unit].values()) for unit in ("gflops", "gbytes"))
    return (
        f"{machine['processor']}, {results['threads']} threads; {versions}; commit {results['commit']}; "
        f"{results['rounds']} rounds, {results['minutes']:.0f} minutes; load of other processes at the start "
        f"{machine['load']:.1f}; peers: {results['peers']}. Ceilings, taken between the steps of each network and the "
        f"updates of each size: {gflops} GFLOP/s in float32, {gbytes} GB/s."
    )


def show(results: Mapping[str, Any], console: Console) -> None:
    colours = {"missed": "red", "met": "green", "goal": "bold green"}
    for title, columns, lines in sections(results):
        table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
        for number, column in enumerate(columns):
            table.add_column(column, justify="right" if number else "left")
        for line in lines:
            table.add_row(*line, style=colours.get(line[-1]))
        console.print(table)
    console.print(provenance(results))


def markdown(results: Mapping[str, Any]) -> str:
    """All tables, for docs/speed.md."""
    parts = [provenance(results)]
    for title, columns, lines in sections(results):
        rule = "|---" + "|---:" * (len(columns) - 1) + "|"
        parts.append("\n".join([f"### {title}", "", bar(columns), rule, *map(bar, lines)]))
    return "\n\n".join(parts)


def bar(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def between_markers(page: str) -> str:
    """What a page has between the two markers."""
    return page.split(BEGIN)[1].split(END)[0].strip()


def write_page(path: Path, results: Mapping[str, Any]) -> None:
    """Put the tables between the markers of a page."""
    block = f"{BEGIN}\n{markdown(results)}\n{END}"
    path.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: block, path.read_text(), flags=re.DOTALL))


BARS = (
    "torch SGD", "torch RMSprop", "torch momentum", "torch Adam", "SGLD", "SGLD lazy rows", "PSGLD", "PSGLD lazy rows",
    "SGHMC", "SGNHT", "Santa", "posteriors SGLD", "posteriors SGHMC", "blackjax SGLD",
)  # fmt: skip


def draw(path: Path, results: Mapping[str, Any]) -> None:
    """Step times in units of torch's SGD step, one panel for each network."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    steps = results["steps"]
    figure, panels = pyplot.subplots(1, len(steps), figsize=(3.2 * len(steps) + 1.2, 4), sharey=True, squeeze=False)
    for panel, (shape, measured) in zip(panels[0], steps.items(), strict=True):
        found = {name: fastest(measured, [name + form for form in FORMS]) for name in BARS}
        unit = measured[found["torch SGD"]]["median"]
        heights = [measured[found[name]]["median"] / unit if found[name] else 0.0 for name in BARS]
        colours = ["0.6" if n.startswith("torch") else "C3" if n.split()[0].islower() else "C0" for n in BARS]
        panel.barh(range(len(BARS)), heights, color=colours)
        panel.bar_label(panel.containers[0], [f"{h:.2f}" if h else "" for h in heights], padding=2, fontsize=8)
        panel.set(title=shape, xlim=(0, 1.2 * max(heights)), yticks=range(len(BARS)), yticklabels=BARS)
        panel.axvline(1, color="0.3", linewidth=0.8)
    panels[0][0].invert_yaxis()
    figure.supxlabel("time of a training step : torch SGD's")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)

"""How foreign a text is, in the terminal: one line of verdict, and where."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from ..predict.results import Foreignness
from .explanation import excerpt
from .terminal import table


UNKNOWN = 0.15
"""Share of unknown words above which surprise says nothing: <unk> after <unk> surprises nobody."""


def foreign_page(result: Foreignness) -> Group:
    """The text as a whole, then the windows that surprise most."""
    low, middle, high = result.held_out[1:4]
    read = "" if result.tokens >= result.available else f" of {result.available:,} (more by --tokens)"
    lines = [
        Text(f"{result.source}: {foreign_in_words(result)}", style="bold"),
        Text(f"surprise {result.nll:.3f} nats a token; windows of the {result.split} split: {middle:.3f}, "
             f"90 % of them from {low:.3f} to {high:.3f}"),
        Text(f"{result.tokens:,} tokens{read} in windows of {result.window}; {100 * result.beyond:.0f} % of these "
             f"surprise more than 95 % of the held-out ones do"),
        Text(f"unknown: {100 * result.unknown_share:.1f} %; disagreement (mutual information), nats a token: "
             f"{result.between_members:.4f} between members + {result.within_samples:.4f} within samples"
             + (" (one sample has none)" if result.samples == 1 else "")),
    ]  # fmt: skip
    columns = ("beginning", "line", "token", "nll (nats)", "percentile", "disagreement (nats)", "unknown (%)")
    rows = [
        (excerpt(item.text, 30), "" if item.line is None else str(item.line), str(item.place), f"{item.nll:.3f}",
         f"{100 * item.quantile:.0f}", f"{item.mutual_information:.4f}", f"{100 * item.unknown_share:.0f}")
        for item in result.top
    ]  # fmt: skip
    return Group(*lines, *([table("where it is most foreign", columns, rows)] if rows else []))


def foreign_in_words(result: Foreignness) -> str:
    """The verdict, by how many windows are out of the ordinary."""
    percentile = f"percentile {100 * result.quantile:.0f} of the {result.split} split"
    if result.unknown_share > UNKNOWN:
        return f"foreign, as {100 * result.unknown_share:.0f} % of it are unknown words, which count as <unk> ({percentile})"
    if result.beyond <= 0.1:
        return f"at home ({percentile})"
    return f"{'foreign' if result.beyond > 0.5 else 'foreign in parts'} ({percentile})"

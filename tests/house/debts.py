"""What does not yet keep the rules: a list that may only shrink."""

import tomllib
from pathlib import Path

from tests.house.rules import RULES

DEBTS = Path(__file__).parents[1] / "house_debts.toml"
HEAD = """# What does not yet keep the rules of the house. It only shrinks: who mends something runs
# python -m tests.house, which takes its line out. Nothing is added.
"""


def listed() -> dict[str, list[str]]:
    return tomllib.loads(DEBTS.read_text("utf-8"))


def split_debts(rule: str, broken: set[str]) -> tuple[list[str], list[str], list[str]]:
    """What is listed and still broken, broken and not listed, listed and mended."""
    debts = set(listed().get(rule, []))
    named = {line.partition(" (")[0]: line for line in broken}
    new = [named[name] for name in named.keys() - debts]
    return sorted(debts & named.keys()), sorted(new), sorted(debts - named.keys())


def prune() -> None:
    """Take out what is mended."""
    text = HEAD
    for rule, (_, find) in RULES.items():
        if left := split_debts(rule, find())[0]:
            text += "\n".join(["", f"{rule} = [", *(f'  "{line}",' for line in left), "]", ""])
    DEBTS.write_text(text, "utf-8")

"""The map of the house, which README and CONTRIBUTING print, made from the disk."""

import ast
from pathlib import Path

from tests.house.rooms import ORDER, PACKAGE, ROOT

PAGES = ("README.md", "CONTRIBUTING.md")
BEGIN, END = "<!-- tree:begin -->\n", "<!-- tree:end -->\n"
BESIDE = {
    "paper": "python -m paper: the tables and figures of the paper, ours beside theirs; not in the wheel",
    "recipes": "settings that come with langevin, as TOML",
    "benchmarks": "how fast and how good, each a ratio within one run",
    "examples": "programs that use the samplers alone",
    "docs": "guides, findings, and the log of what was tried",
    "tests": "the same rooms once more; `house` keeps this plan",
    "results": "recorded numbers, from which all tables are made",
}
"""What stands beside the package."""
WIDTH = 16


def tree() -> str:
    """One line for each room and for each file beside them, in the order of imports."""
    rooms = [room for rooms in ORDER for room in rooms.split()]
    lines = ["src/langevin/"]
    for room in rooms:
        if (PACKAGE / room).is_dir():
            lines.append(line(f"  {room}/", PACKAGE / room / "__init__.py"))
            inner = sorted(path for path in (PACKAGE / room).glob("*/__init__.py"))
            lines += [line(f"    {path.parent.name}/", path) for path in inner]
        elif (PACKAGE / f"{room}.py").is_file():
            lines.append(line(f"  {room}.py", PACKAGE / f"{room}.py"))
    lines += [f"{name + '/':{WIDTH}}{words}" for name, words in BESIDE.items()]
    return "\n".join(lines)


def line(name: str, path: Path) -> str:
    """Its name and the first sentence of its docstring."""
    words = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return f"{name:{WIDTH}}{words.splitlines()[0].removesuffix('.')}"


def printed(page: str) -> str:
    """What stands between the marks of a page."""
    return page.partition(BEGIN)[2].partition(END)[0]


def block() -> str:
    return f"```\n{tree()}\n```\n"


def write_trees() -> None:
    """Make the map of both pages anew."""
    for name in PAGES:
        page = (ROOT / name).read_text("utf-8")
        before, _, rest = page.partition(BEGIN)
        after = rest.partition(END)[2]
        (ROOT / name).write_text(f"{before}{BEGIN}{block()}{END}{after}", "utf-8")

"""The rules of the house: each finds what breaks it, 'what' or 'what (where)'."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.house.rooms import PACKAGE, RANK, ROOT, STRANGERS, edges, modules, room

FILE, FUNCTION = 300, 45
ALONE = {"errors", "files", "process", "estimator", "__init__", "__main__"}
"""What lies beside the rooms."""
BESIDE = {"house", "fixtures", "paper", "examples", "docs", "fuzz", "crash"}
"""Folders of tests for what is not in the package."""
SINGLE = ALONE | {"readme", "old_folders", "benchmarks"}
"""What is tested beside the folders of tests."""

Graph = dict[str, set[str]]


def against_the_order(graph: Graph) -> set[str]:
    """Edges from a room to one on its right, or to a stranger: 'tasks.base -> predict.load'."""
    return {
        f"{module} -> {other}"
        for module, others in graph.items()
        for other in others
        if RANK[room(module)] < RANK[room(other)] or (room(module), room(other)) in STRANGERS
    }


def cycles(graph: Graph) -> set[str]:
    """Modules that import each other, at whatever distance: 'data.a, data.b'."""
    reach = {module: set(others) for module, others in graph.items()}
    for middle in graph:
        for module in graph:
            if middle in reach[module]:
                reach[module] |= reach[middle]
    rings = {frozenset({b for b in reach[a] if a in reach[b]}) for a in graph if a in reach[a]}
    return {", ".join(sorted(ring)) for ring in rings}


def flat() -> set[str]:
    return {path.stem for path in PACKAGE.glob("*.py")} - ALONE


def python_files() -> Iterator[Path]:
    for folder in ("src", "paper", "benchmarks", "examples", "tests"):
        yield from (ROOT / folder).rglob("*.py")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def long_files() -> set[str]:
    return {name_of(p) for p in python_files() if len(p.read_text("utf-8").splitlines()) > FILE}


def functions(source: str) -> dict[str, int]:
    """The lines of each function, its decorators apart; of several of one name the most."""
    lines: dict[str, int] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            lines[node.name] = max(length, lines.get(node.name, 0))
    return lines


def long_functions() -> set[str]:
    return {
        f"{name} ({name_of(path)})"
        for path in python_files()
        for name, lines in functions(path.read_text("utf-8")).items()
        if lines > FUNCTION
    }


def public(source: str) -> set[str]:
    """The classes and functions of a module."""
    return {
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }


def defined_twice(files: dict[str, Path]) -> dict[str, list[str]]:
    """The modules of each public name of several. Commands are called as what they call."""
    places = defaultdict(list)
    for module, path in files.items():
        if room(module) != "cli":
            for name in public(path.read_text("utf-8")):
                places[name].append(module)
    return {name: found for name, found in places.items() if len(found) > 1}


def names_of_two() -> set[str]:
    return {f"{name} ({', '.join(found)})" for name, found in defined_twice(modules()).items()}


def homeless() -> set[str]:
    """Files of tests that stand in no folder of a room."""
    tests = ROOT / "tests"
    rooms = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*/")} | BESIDE
    within = {p for p in tests.glob("*/**/test_*.py") if name_of(p.parent)[6:] not in rooms}
    beside = {
        path
        for path in tests.glob("test_*.py")
        if not any(path.stem[5:].startswith(module) for module in SINGLE)
    }
    return {name_of(path) for path in within | beside}


RULES: dict[str, tuple[str, Callable[[], set[str]]]] = {
    "order": ("imports against the order of rooms", lambda: against_the_order(edges())),
    "cycles": ("modules that import each other", lambda: cycles(edges())),
    "flat": ("modules that lie beside the rooms", flat),
    "files": (f"files of more than {FILE} lines", long_files),
    "functions": (f"functions of more than {FUNCTION} lines", long_functions),
    "names": ("public names with two definitions", names_of_two),
    "tests": ("tests that stand in no folder of a room", homeless),
}

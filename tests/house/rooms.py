"""The rooms of the package, their order, and the imports of each of its modules."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "langevin"

ORDER = [
    "errors files process", "samplers", "data", "models", "recipe", "store", "posterior", "tasks",
    "predict training", "report", "serve estimator integrations demo", "cli", "__init__ __main__",
]
"""What stands further left may be imported by what stands further right."""

RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms.split()}
STRANGERS = {("predict", "training"), ("training", "predict")}
"""Rooms of one rank that do not import each other."""


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """The files by the names of their modules, without that of the package: 'data.text'."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)] = path
    return found


def room(module: str) -> str:
    return module.partition(".")[0]


def imports(module: str, path: Path, known: set[str]) -> set[str]:
    """The modules that a file imports, in functions and for types too; the version is none."""
    found = set()
    at = ["langevin", *module.split(".")] if module != "__init__" else ["langevin"]
    here = at if path.name == "__init__.py" else at[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            names = {alias.name for alias in node.names} - {"__version__"}
            found |= {".".join([*base, name]) for name in names}
    return {nearest(name, known) for name in found if name.split(".")[0] == "langevin"} - {module}


def nearest(name: str, known: set[str]) -> str:
    """The module that `langevin.data.text.Text` names: 'data.text'; the package is '__init__'."""
    inner = name.split(".")[1:]
    while inner and ".".join(inner) not in known:
        inner.pop()
    return ".".join(inner) or "__init__"


def edges(package: Path = PACKAGE) -> dict[str, set[str]]:
    files = modules(package)
    return {module: imports(module, path, set(files)) for module, path in files.items()}

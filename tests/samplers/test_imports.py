"""The folder can be lifted out: it knows torch, numpy, numba and itself."""

import ast
import sys
from pathlib import Path

import pytest

from langevin import samplers

ROOT = Path(samplers.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
OTHERS = {"torch", "numpy", "numba", "llvmlite"}
"""numba is made on llvmlite and has its types for intrinsics."""


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(ROOT).as_posix() for path in FILES])
def test_nothing_else_is_imported(path):
    depth = len(path.relative_to(ROOT).parts)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level <= depth
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            roots = {name.split(".")[0] for name in names}
            assert roots <= OTHERS | sys.stdlib_module_names

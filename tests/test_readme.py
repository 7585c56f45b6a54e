"""What the README tells works: its Python runs, its commands run, its links lead somewhere."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import torch

import langevin
from tests.docs.commands import blocks, run_page
from tests.docs.paragraphs import LINK, shown_length

__all__ = ["run_page"]

README = (Path(__file__).parents[1] / "README.md").read_text()
@pytest.mark.parametrize("code", blocks(README, "python"))
def test_python_runs(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert "±" in capsys.readouterr().out


def test_commands_run(run_page, tmp_path):
    """In the order of the README, in one folder, with training cut down to the size of a test."""
    assert run_page(README, tmp_path) >= 8


@pytest.mark.parametrize("name", [m.name for m in pkgutil.walk_packages(langevin.__path__, "langevin.")])
def test_docstring_examples(name, tmp_path):
    module = importlib.import_module(name)
    names = vars(module) | {"torch": torch, "model": torch.nn.Linear(2, 2), "folder": tmp_path}
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, globs=names):
        result = doctest.DocTestRunner().run(test)
        assert not result.failed, test.name


def test_make_targets_named_in_the_readme_exist():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    for target in re.findall(r"^make (\S+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_lines_are_short_and_the_table_is_small():
    prose = [line for line in README.splitlines() if not line.startswith(("|", "```"))]
    assert max(map(shown_length, prose)) <= 400
    first, *_ = re.findall(r"(?:^\|.*\n)+", README, flags=re.MULTILINE)
    assert len(first.splitlines()) <= 2 + 6


def test_links_lead_somewhere():
    for target in LINK.findall(README):
        assert (Path(__file__).parents[1] / target).exists(), target

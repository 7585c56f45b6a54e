"""What the README tells works: its Python runs, its commands run, its table is made from results/."""

import doctest
import importlib
import pkgutil
import re
import shlex
from pathlib import Path

import pytest
import torch

import langevin
from tests.conftest import TINY
from tests.sentences import TINY_CLASSIFIER, questions, write_questions
from tests.tiny_captions import SHORT, write_tiny

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line.removeprefix("$ ")
    for kind, block in BLOCKS
    if kind == "console"
    for line in block.splitlines()
    if line
]


@pytest.mark.parametrize("code", [block for kind, block in BLOCKS if kind == "python"])
def test_python_runs(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert "±" in capsys.readouterr().out


def test_python_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide, names = (Path(__file__).parents[1] / "docs" / "python.md").read_text(), {}
    for code in re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL):
        exec(compile(code, "python.md", "exec"), names)


CUT = {
    "text": [*TINY, "corpus=my.txt", "epochs=3"],
    "classify": [*TINY_CLASSIFIER, "valid_share=0.3", "test_share=0.2"],
    "captions": [*SHORT, "corpus=tiny.token.txt", "features=features.npy"],
}
"""What makes the training of each kind as small as a test needs it."""


def cut_down(arguments):
    """The same command, its training made small."""
    if arguments[0] == "train":
        kind = "classify" if "classify" in arguments else "captions" if "flickr8k-psgld" in arguments else "text"
        return arguments + [a for override in CUT[kind] for a in ("--set", override)]
    if arguments[0] == "evaluate" and "--samples" in arguments:
        arguments[arguments.index("--samples") + 1] = "2"
    return arguments


def test_commands_run(cli, paper, tmp_path, monkeypatch, text_file):
    """In the order of the README, in one folder, with training cut down to the size of a test."""
    monkeypatch.chdir(tmp_path)
    Path("my.txt").write_text(text_file.read_text() + "Once upon a time. " * 20)
    write_questions(Path("my.csv"), questions(200, 0))
    write_questions(Path("new.csv"), questions(9, 1))
    write_tiny(tmp_path)
    assert len(COMMANDS) >= 20
    for command in COMMANDS:
        program, _, arguments = command.partition(" ")
        if program == "langevin":
            code, _, messages = cli(*cut_down(shlex.split(arguments)))
        else:
            assert arguments.startswith("-m paper"), command
            code, _, messages = paper(*shlex.split(arguments.removeprefix("-m paper")))
        assert code == 0, f"{command}: {messages}"


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


def test_results_table_is_made_from_the_results():
    """`python -m paper tables` would change nothing."""
    from paper.scores import refresh

    assert refresh(README, Path(__file__).parents[1] / "results") == README

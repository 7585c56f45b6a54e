"""Shared fixtures: a tiny text, a tiny recipe, a finished tiny run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer import Typer

from langevin.cli import run
from langevin.cli.menu import app
from langevin.recipe import Recipe, load_recipe
from langevin.report.terminal import messages, screen
from langevin.training.session import start
from paper.__main__ import app as paper_app
from tests.classifier_runs import classifier_run
from tests.own_data import write_own_data

__all__ = ["classifier_run"]

torch.set_num_threads(1)

SENTENCE = (
    "The French were near. It was a clear night, and the snow lay deep on the road to Bogucharovo. "
)
TINY = [
    "hidden=8",
    "layers=1",
    "batch_size=4",
    "window=10",
    "epochs=2",
    "burn_in=1",
    "sample_every=0.25",
    "patience=none",
    "threads=1",
    "parts=[80,10,10]",
    "split=contiguous",
    "burn_in_temperature=none",
    "lr_schedule=constant",
    "sample=last",
    "by_size=false",
    "temperature=0.05",
    "prior_var=1.0",
]
SET = [argument for override in TINY for argument in ("--set", override)]
"""The same on the command line."""


@pytest.fixture(scope="session")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "night.txt"
    path.write_text(SENTENCE * 30)
    return path


@pytest.fixture
def tiny(text_file: Path):
    """Builds a small recipe; arguments override its keys."""

    def build(*overrides: str) -> Recipe:
        return load_recipe("text", [f"corpus={text_file}", *TINY, *overrides])

    return build


@pytest.fixture(scope="session")
def finished_run(text_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with four samples; tests that damage it must copy it first."""
    out = tmp_path_factory.mktemp("runs") / "night"
    trainer = start(load_recipe("text", [f"corpus={text_file}", *TINY]), out)
    trainer.run()
    return out


@pytest.fixture(scope="session")
def word_run(text_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of words, line by line, with dropout."""
    path = tmp_path_factory.mktemp("words")
    lines = path / "lines.txt"
    lines.write_text(text_file.read_text().replace(". ", " .\n"))
    recipe = load_recipe("text", [f"corpus={lines}", "level=word", "dropout=0.5", *TINY])
    start(recipe, path / "run").run()
    return path / "run"


def in_process(monkeypatch, capsys, commands: Typer):
    """Runs commands in this process: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["langevin", *map(str, arguments)])
        for console in (screen, messages):
            monkeypatch.setattr(
                console, "_width", 200
            )  # test processes may come with a narrow terminal
        capsys.readouterr()
        code: object = 0
        try:
            run(commands)
        except SystemExit as leaving:
            code = leaving.code or 0
        captured = capsys.readouterr()
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return call


@pytest.fixture
def cli(monkeypatch, capsys):
    """Runs `langevin` in this process."""
    return in_process(monkeypatch, capsys, app)


@pytest.fixture
def paper(monkeypatch, capsys):
    """Runs `python -m paper` in this process."""
    return in_process(monkeypatch, capsys, paper_app)


def own_process(module: str):
    """Runs a module in a process of its own, on one thread."""

    def call(
        *arguments: object, timeout: float = 120, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"} | environment
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)

    return call


@pytest.fixture
def langevin():
    """Runs `langevin` in a process of its own."""
    return own_process("langevin")


@pytest.fixture
def paper_process():
    """Runs `python -m paper` in a process of its own."""
    return own_process("paper")


@pytest.fixture
def real_data(monkeypatch) -> Path:
    """Data sets that may not be shipped: LANGEVIN_DATA, or `shared/data` beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LANGEVIN_DATA", beside))
    if not folder.is_dir():
        pytest.skip("the data sets are not there; set LANGEVIN_DATA")
    monkeypatch.setenv("LANGEVIN_DATA", str(folder))
    return folder


@pytest.fixture
def own_data(tmp_path, monkeypatch) -> Path:
    """Texts, questions and vectors of our own in the place of Penn Treebank, TREC, word2vec."""
    folder = tmp_path / "own_data"
    folder.mkdir()
    write_own_data(folder, monkeypatch)
    return folder

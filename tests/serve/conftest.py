from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from langevin.process import SILENT
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.tasks.members import add_linear_members
from langevin.training.members import add_members
from langevin.training.session import start
from tests.conftest import TINY
from tests.serve.running import Client, served

FIXTURES = Path(__file__).parent.parent / "fixtures"


def train_counted(folder: Path) -> None:
    """Bytes with counts beside, of a text that is long enough for held-out windows."""
    passage = Path("data/passage.txt").read_text()
    Path("data/long.txt").write_text(passage * 6)
    settings = [*TINY, "corpus=data/long.txt", "level=byte", "window=50", "parts=[70,25,5]",
                "pool=counts"]  # fmt: skip
    start(load_recipe("text", settings), folder).run()
    add_members(RunFolder(folder), SILENT)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs and exported folders of all three tasks, two of them with members beside the samples."""
    place = Path(shutil.copytree(FIXTURES, tmp_path_factory.mktemp("served") / "fixtures"))
    with chdir(place):  # recipes name their data from there
        train_counted(Path("counted"))
        shutil.copytree("questions", "joined")
        add_linear_members(RunFolder(Path("joined")))
    return place


@pytest.fixture(scope="session")
def client(folders: Path) -> Iterator[Client]:
    """Of a server with a language model, a classifier and a captioner."""
    names = ("bytes", "words-shared", "chains", "counted", "questions", "questions-shared",
             "joined", "captions")  # fmt: skip
    with served(*names, cwd=folders) as (client, _):
        yield client

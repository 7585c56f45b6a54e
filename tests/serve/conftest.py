from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.running import Client, served

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs and exported folders of all three tasks."""
    return Path(shutil.copytree(FIXTURES, tmp_path_factory.mktemp("served") / "fixtures"))


@pytest.fixture(scope="session")
def client(folders: Path) -> Iterator[Client]:
    """Of a server with a language model, a classifier and a captioner."""
    names = ("bytes", "words-shared", "questions", "captions", "chains")
    with served(*names, cwd=folders) as (client, _):
        yield client

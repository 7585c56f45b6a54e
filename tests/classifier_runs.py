"""A finished small classifier with dropout, shared by the tests of what uses one."""

from __future__ import annotations

from pathlib import Path

import pytest

from langevin.recipe import load_recipe
from langevin.training.session import start
from tests.sentences import TINY_CLASSIFIER, questions, write_questions


def mixed(count: int = 200, seed: int = 0) -> list[tuple[str, str]]:
    """Questions of which every ninth has the wrong label and one has no words: something to be
    uncertain about."""
    asked = enumerate(questions(count, seed))
    pairs = [(text, "thing" if number % 9 == 0 else label) for number, (text, label) in asked]
    return [*pairs[:-1], ("", "place")]


@pytest.fixture(scope="session")
def classifier_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with four samples; tests that write into it must copy it first."""
    root = tmp_path_factory.mktemp("classifier")
    files = {name: write_questions(root / f"{name}.csv", mixed(count, seed))
             for seed, (name, count) in enumerate({"corpus": 200, "valid_file": 120, "test_file": 90}.items())}
    settings = [f"{key}={path}" for key, path in files.items()]
    recipe = load_recipe("classify", [*TINY_CLASSIFIER, "dropout=0.2", "max_words=12", *settings])
    start(recipe, root / "run").run()
    return root / "run"

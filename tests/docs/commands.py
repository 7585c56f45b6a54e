"""The code of a page: what a reader copies runs, with training cut down to the size of a test."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import TINY
from tests.sentences import TINY_CLASSIFIER, questions, write_questions
from tests.tiny_captions import SHORT, write_tiny

CUT = {
    "text": [*TINY, "corpus=my.txt", "epochs=3"],
    "classify": [*TINY_CLASSIFIER, "valid_share=0.3", "test_share=0.2"],
    "captions": [*SHORT, "corpus=tiny.token.txt", "features=features.npy"],
    "own captions": ["hidden=16", "epochs=2", "batch_size=8", "threads=1"],
}
"""What makes the training of each kind as small as a test needs it."""


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines() if line]
    return [line.removeprefix("$ ") for line in lines]


def without_pictures(arguments: list[str]) -> list[str]:
    """Features in the place of pictures: no image network is at hand."""
    if "photo.jpg" in arguments:
        return [*(a for a in arguments if a != "photo.jpg"), "--features", "features.npy"]
    found = list(arguments)
    for option, instead in {"--images": "--features", "--extractor": None}.items():
        if option in found:
            at = found.index(option)
            found[at : at + 2] = [instead, "features.npy"] if instead else []
    return found


def kind_of(arguments: list[str]) -> str:
    """Which of `CUT` a training is."""
    for kind, word in {"classify": "classify", "own captions": "caption"}.items():
        if word in arguments:
            return kind
    return "captions" if "flickr8k-psgld" in arguments else "text"


def cut_down(arguments: list[str]) -> list[str]:
    """The same command, its training made small."""
    arguments = without_pictures(arguments)
    if arguments[0] == "train":
        return arguments + [a for override in CUT[kind_of(arguments)] for a in ("--set", override)]
    if arguments[0] == "evaluate" and "--samples" in arguments:
        arguments[arguments.index("--samples") + 1] = "2"
    return arguments


@pytest.fixture
def run_page(cli, paper, monkeypatch, text_file) -> Callable[[str, Path], int]:
    """Runs the commands of a page in their order; how many there were."""

    def run(page: str, folder: Path) -> int:
        monkeypatch.chdir(folder)
        Path("my.txt").write_text(text_file.read_text() + "Once upon a time. " * 20)
        Path("other.txt").write_text("Rien ne va plus, messieurs. " * 20)
        write_questions(Path("my.csv"), questions(700, 0))
        write_questions(Path("new.csv"), questions(9, 1))
        tokens = write_tiny(folder).read_text().splitlines()
        rows = (line.replace(",", "").replace("\t", "#").split("#") for line in tokens)
        Path("captions.csv").write_text(
            "image,caption\n" + "".join(f"{image},{caption}\n" for image, _, caption in rows)
        )
        for command in commands(page):
            program, _, arguments = command.partition(" ")
            if program == "langevin":
                code, _, messages = cli(*cut_down(shlex.split(arguments)))
            else:
                assert arguments.startswith("-m paper"), command
                code, _, messages = paper(*shlex.split(arguments.removeprefix("-m paper")))
            assert code == 0, f"{command}: {messages}"
        return len(commands(page))

    return run

"""The demo on tiny texts: every number is measured, and a second call makes nothing anew."""

import csv
import io
import json
import lzma
from pathlib import Path

import pytest

from langevin.demo import foreign
from langevin.demo.course import PAGE, PICTURE, QUICK, SENTENCES, TEXT
from langevin.demo.definitions import write_definitions
from langevin.demo.stages import Stages
from tests.conftest import TINY
from tests.sentences import TINY_CLASSIFIER, questions, write_questions


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> tuple[Path, Path]:
    """A text of 24,000 bytes, and questions that are easy enough to promise something."""
    folder = tmp_path_factory.mktemp("corpora")
    text = folder / "night.txt"
    text.write_text("".join(f"On night {n} the snow lay deep on the road.\n" for n in range(500)))
    return text, write_questions(folder / "questions.csv", questions(1000))


@pytest.fixture
def tiny(monkeypatch, corpora):
    """What --quick stands for, on these."""
    text, sentences = corpora
    small = ["lr_schedule=constant", "sample=last", "by_size=false"]
    monkeypatch.setattr(foreign, "TOKENS", 4000)
    monkeypatch.setitem(QUICK, TEXT, [*TINY, "batch_size=16", "window=40", f"corpus={text}"])
    monkeypatch.setitem(QUICK, SENTENCES, [*TINY_CLASSIFIER, *small, f"corpus={sentences}"])


def test_all_is_measured_and_shown_and_nothing_made_twice(cli, tiny, tmp_path):
    out = tmp_path / "demo"
    code, printed, said = cli("demo", "--quick", "--out", out, "--json")
    assert code == 0, said
    found = json.loads(printed)
    assert {"one network", "counts", "pool", "pool, reading on"} <= {
        line["name"] for line in found["text"]["compared"]
    }
    kinds = {kind["name"]: kind for kind in found["foreign"]["kinds"]}
    assert kinds["French"]["surprise_auroc"] > 0.9
    assert kinds["unseen Tolstoy"]["surprise_auroc"] is None
    assert len(kinds["French"]["surprises"]) == kinds["French"]["windows"]
    rival, ours = found["sentences"]["classifiers"]
    assert (rival["name"], ours["name"]) == ("TF-IDF + logistic regression", "langevin, the pool")
    assert ours["promise"]["errors"] <= ours["promise"]["accepted"]

    code, printed, said = cli("demo", "--quick", "--out", out)
    assert code == 0, said
    shown = f"{found['text']['pooled']['nll']:.4f}"
    assert shown in printed
    assert "%" not in said.partition("reading unseen")[0].partition("counting")[0][40:]
    assert printed.rstrip().endswith(str(out / PAGE))
    page = (out / PAGE).read_text()
    assert shown in page
    assert "<script" not in page
    assert page.count("<svg") == 2
    assert (out / PICTURE).read_text().startswith("<svg")


def test_the_definitions_are_as_they_are_described(tmp_path):
    path = write_definitions(tmp_path / "new" / "definitions.csv")
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    labels = [row["label"] for row in rows]
    assert {label: labels.count(label) for label in set(labels)} == dict.fromkeys(set(labels), 750)
    assert len(set(labels)) == 8
    assert all(4 <= len(row["text"].split()) <= 30 and row["text"].isascii() for row in rows)
    packed = Path("src/langevin/demo/definitions.csv.xz")
    if packed.exists():
        assert packed.stat().st_size < 300_000
        assert lzma.decompress(packed.read_bytes()) == path.read_bytes()


def test_shuffled_words_are_the_same_words():
    text = "one two  three\nfour five six seven\n"
    shuffled = foreign.shuffle_words(text)
    assert shuffled != text
    assert sorted(shuffled.split()) == sorted(text.split())
    assert shuffled.count("\n") == 2


def test_the_line_of_progress_never_goes_back_and_ends_at_all():
    stages = Stages({"first": 30.0, "second": 10.0}, quiet=True)
    stages.enter("first")
    seen = []
    for total in (2, 4):
        advance = stages.begin(total)
        for _ in range(total):
            advance()
            seen.append(stages.share)
    assert seen == sorted(seen)
    assert seen[-1] == 0.75
    stages.enter("second")
    stages.at(0.5)
    assert stages.share == 0.875
    assert stages.left


def test_what_was_done_on_another_day_foretells_nothing():
    stages = Stages({"first": 90.0, "second": 10.0}, quiet=True)
    stages.enter("first")
    stages.leap(1.0)
    assert stages.share == 0.9
    assert stages.left == ""

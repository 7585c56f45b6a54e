"""The COCO metrics against numbers by hand and against COCO's own pipeline; Java missing, broken
and hanging."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import pytest

from langevin.errors import LangevinError
from langevin.predict import java as coco_java
from langevin.predict.coco import METRICS, evaluate_captions, plain_tokens, write_coco_results

pytest.importorskip("pycocoevalcap")

REFERENCES = {
    "a": ["a black dog runs over the grass .", "the dog is running"],
    "b": ["two men sit on a bench .", "two people on a bench outside"],
    "c": ["a child climbs a red slide", "the child plays on a playground"],
}
PERFECT = {name: told[0] for name, told in REFERENCES.items()}


def java_works() -> bool:
    try:
        return subprocess.run(["java", "-version"], capture_output=True).returncode == 0
    except OSError:
        return False


needs_java = pytest.mark.skipif(not java_works(), reason="no Java on this machine")


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def fake_java(monkeypatch, folder: Path, script: str) -> None:
    folder.mkdir()
    java = folder / "java"
    java.write_text(script)
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def tokenising_java(monkeypatch, folder: Path, fate: str) -> None:
    """A Java that tokenises; what it does as METEOR is told."""
    echo = 'case "$*" in *meteor*) ' + fate + ";; *) while read -r line; do echo \"$line\"; done;; esac"
    fake_java(monkeypatch, folder, f"#!/bin/sh\nPATH=/bin:/usr/bin\n{echo}\n")


@pytest.mark.usefixtures("no_java")
def test_bleu_and_rouge_by_hand():
    # 5 of 6 words found; 6 words against a reference of 5: no penalty. Two-word groups found: "a
    # dog", "on the", "the grass": 3 of 5. ROUGE-L: longest common subsequence 5, precision 5/6,
    # recall 5/5, β = 1.2
    scores = evaluate_captions({1: ["a dog on the grass"]}, {1: "a dog runs on the grass"}).metrics
    assert scores["bleu_1"] == pytest.approx(5 / 6)
    assert scores["bleu_2"] == pytest.approx(math.sqrt(5 / 6 * 3 / 5))
    assert scores["rouge_l"] == pytest.approx(2.44 * (5 / 6) / (1 + 1.44 * 5 / 6))
    # 2 of 2 words found, 2 words against 4: the penalty is exp(1 - 4/2)
    short = evaluate_captions({1: ["a dog on grass"]}, {1: "a dog"}).metrics
    assert short["bleu_1"] == pytest.approx(math.exp(-1))


@pytest.mark.usefixtures("no_java")
def test_perfect_captions_and_hopeless_ones():
    best = evaluate_captions(REFERENCES, PERFECT).metrics
    assert [best[f"bleu_{n}"] for n in (1, 2, 3, 4)] == pytest.approx([1, 1, 1, 1])
    assert best["rouge_l"] == pytest.approx(1)
    for caption in ("", "zebra"):
        worst = evaluate_captions(REFERENCES, dict.fromkeys(REFERENCES, caption)).metrics
        assert list(worst.values()) == pytest.approx([0] * 6, abs=1e-6)
    assert best["cider"] > 3


def test_plain_tokens():
    marks = frozenset({".", ","})
    assert plain_tokens([["A  Dog , running .", ""], ["x"]], marks) == [["a dog running", ""], ["x"]]


def check_without_java(words: str) -> None:
    scores = evaluate_captions(REFERENCES, PERFECT)
    assert set(scores.metrics) == set(METRICS) - {"meteor"}
    assert list(scores.missing) == ["meteor"]
    assert words in scores.missing["meteor"]
    assert "apt install default-jre-headless" in scores.missing["meteor"]
    assert scores.tokenizer == "plain"
    assert "plain tokeniser" in scores.notes[0]


@pytest.mark.usefixtures("no_java")
def test_without_java_the_rest_is_given():
    check_without_java("no `java` on the PATH")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho 'no runtime present' >&2\nexit 1\n", "ended with code 1: no runtime present"),
        ("#!/bin/sh\necho one line\n", "gave 1 lines for 6"),
        ("#!/nowhere/at/all\n", "does not start"),
        ("#!/bin/sh\nkill -9 $$\n", "ended with code -9"),
    ],
    ids=["exits with 1", "talks nonsense", "does not start", "is killed"],
)
def test_with_a_broken_java_the_rest_is_given(monkeypatch, tmp_path, script, words):
    fake_java(monkeypatch, tmp_path / "bin", script)
    check_without_java(words)


@pytest.mark.parametrize("fate", ["exit 1", "read line; echo 1 2 3; exit 3", "echo oops >&2; exit 2"])
def test_meteor_alone_broken(monkeypatch, tmp_path, fate):
    """A Java that tokenises and then fails METEOR: everything else stands, nothing hangs."""
    tokenising_java(monkeypatch, tmp_path / "bin", fate)
    scores = evaluate_captions(REFERENCES, PERFECT)
    assert set(scores.metrics) == set(METRICS) - {"meteor"}
    assert "Java runs, but METEOR does not" in scores.missing["meteor"]
    assert scores.tokenizer == "ptb"


METEOR = (
    "while read -r line; do case $line in SCORE*) echo some;; "
    "*) for n in 1 2 3; do echo 0.5; done; echo 0.25;; esac; done"
)
"""Gives each of three images 0.5 and all 0.25."""


def test_java_may_be_found_by_a_relative_path(monkeypatch, tmp_path):
    tokenising_java(monkeypatch, tmp_path / "bin", METEOR)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "bin")
    assert evaluate_captions(REFERENCES, PERFECT).metrics["meteor"] == 0.25


def test_a_meteor_that_does_not_start_is_told(monkeypatch, tmp_path):
    fake_java(monkeypatch, tmp_path / "bin", "#!/nowhere/at/all\n")
    scorer = importlib.import_module("pycocoevalcap.meteor.meteor").Meteor
    with pytest.raises(coco_java.JavaFailed, match="does not start"):
        coco_java.meteor_score(scorer, [["a dog"]], [["a dog"]])


def test_a_java_that_hangs_is_given_up(monkeypatch, tmp_path):
    """It and what it started, which holds its pipes."""
    monkeypatch.setattr(coco_java, "JAVA_SECONDS", 0.3)
    fake_java(monkeypatch, tmp_path / "bin", "#!/bin/sh\n/bin/sleep 60\necho late\n")
    began = time.monotonic()
    check_without_java("gave no answer within 0.3 s")
    assert time.monotonic() - began < 30


def test_a_meteor_that_hangs_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(coco_java, "JAVA_SECONDS", 3.0)
    tokenising_java(monkeypatch, tmp_path / "bin", "read line; sleep 60; echo late")
    began = time.monotonic()
    scores = evaluate_captions(REFERENCES, PERFECT)
    assert time.monotonic() - began < 30
    assert set(scores.metrics) == set(METRICS) - {"meteor"}
    assert "METEOR does not: it gave no answer within 3 s" in scores.missing["meteor"]


@needs_java
def test_with_java_everything_is_there_and_nothing_is_left_behind(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    package = Path(importlib.import_module("pycocoevalcap.bleu.bleu").__file__).parents[1]
    before = {path for path in package.rglob("*") if "__pycache__" not in path.parts}
    scores = evaluate_captions(
        # METEOR's own separator, and no words at all
        REFERENCES | {"d": ["a ||| b", "a b"]}, PERFECT | {"d": ""}
    )
    assert list(scores.metrics) == list(METRICS)
    assert scores.missing == {}
    assert scores.notes == ()
    assert scores.tokenizer == "ptb"
    assert 0.3 < scores.metrics["meteor"] < 1
    assert {path for path in package.rglob("*") if "__pycache__" not in path.parts} == before
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@needs_java
def test_ptb_tokens_split_and_keep_lines_apart():
    tokens = coco_java.ptb_tokens([["A dog's ball .", "", "Don't\u2028go, café"], ["(two)"]], frozenset({".", ","}))
    assert tokens == [["a dog 's ball", "", "do n't go café"], ["-lrb- two -rrb-"]]


@needs_java
@pytest.mark.data
def test_real_captions_score_as_with_the_pipeline_of_coco(real_data):
    """First caption of 20 images against the other four. The numbers are those of COCO's own
    wrapper and scorers."""
    captions: dict[str, list[str]] = {}
    for line in (real_data / "flickr8k" / "Flickr8k.token.txt").read_text().splitlines():
        key, caption = line.split("\t")
        captions.setdefault(key.split("#")[0], []).append(caption)
    names = (real_data / "flickr8k" / "Flickr_8k.testImages.txt").read_text().split()[:20]
    expected = {
        "bleu_1": 0.5968379446616726, "bleu_2": 0.4173541236596402, "bleu_3": 0.2873046162731802,
        "bleu_4": 0.19174135719724816, "meteor": 0.24577065495708098, "rouge_l": 0.48489765300117094,
        "cider": 0.8934929138956391,
    }
    scores = evaluate_captions({n: captions[n][1:] for n in names}, {n: captions[n][0] for n in names})
    assert scores.metrics == pytest.approx(expected, abs=1e-9)


def test_the_results_file(tmp_path):
    path = tmp_path / "new" / "captions.json"
    write_coco_results(path, {"one.jpg": "a café", 2: ""})
    expected = [{"image_id": "one.jpg", "caption": "a café"}, {"image_id": 2, "caption": ""}]
    assert json.loads(path.read_bytes()) == expected
    assert [p.name for p in path.parent.iterdir()] == ["captions.json"]
    with pytest.raises(LangevinError, match="cannot write"):
        write_coco_results(path / "below", {1: "x"})


@pytest.mark.parametrize(
    ("references", "captions", "words"),
    [
        ({}, {}, "at least one image"),
        ({1: ["a"], 2: ["b"]}, {1: "a"}, "1 images that have no caption .one is 2"),
        ({1: ["a"]}, {1: "a", 3: "x"}, "no references .one is 3"),
        ({1: ["a"], 2: []}, {1: "a", 2: "b"}, "empty list of references"),
        ({1: ["", " . "]}, {1: "a"}, "none but empty"),
    ],
)
@pytest.mark.usefixtures("no_java")
def test_what_cannot_be_scored_is_refused(references, captions, words):
    with pytest.raises(LangevinError, match=words):
        evaluate_captions(references, captions)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycocoevalcap.bleu.bleu", None)
    scores = evaluate_captions(REFERENCES, PERFECT)
    assert (scores.metrics, scores.tokenizer, list(scores.missing)) == ({}, "none", list(METRICS))
    assert all('pip install "langevin[caption]"' in why for why in scores.missing.values())

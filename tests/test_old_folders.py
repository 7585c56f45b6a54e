"""Folders of old open at the door and by the commands, and answer as they did when they were made.

`fixtures/` has a run and an exported folder of each task, and `fixtures/expected.json` what the
version that made them answered, in its units and under its names. PLACES and `ask_the_door` say
where the same number stands today.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import langevin
from langevin.data.features import ImageFeatures
from langevin.predict.captioning import BeamSettings

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text("utf-8"))
CLOSE = {"rel": 1e-5, "abs": 1e-6}
"""Processors round sums differently."""

TEXT = "The Mason said that the man"
TEXTS = ["where is Rome ?", "", "who was Homer ?", "what is so very very iron and what is it of ?"]
PICTURES = ["test0.jpg", "test4.jpg"]

LOOK = {"evaluate": ["evaluate"], "show": ["show"], "uncertainty": ["uncertainty", "--top", "3"]}
READ = {
    "explain": ["explain", TEXT, "--select", "thinned"],
    "generate": ["generate", "--prompt", "The ", "--length", "12", "--temperature", "0"],
}
SORT = {
    "classify": ["classify", *TEXTS, "--coverage", "0.8"],
    "decide": ["decide", "--risk", "0.3"],
    "calibrate": ["calibrate", "--mc-dropout", "0"],
    "uncertain": ["uncertainty", "--by", "standard_deviation", "--top", "3"],
}
FEATURES = "data/features.npy"
DESCRIBE = {"caption": ["caption", "--features", FEATURES, *PICTURES, "--beam", "3", "--top", "2",
                        "--length-power", "0"]}
COMMANDS: dict[str, dict[str, list[str]]] = {
    "bytes": LOOK | READ,
    "words": LOOK | READ | {"curve": ["evaluate", "--curve"]},
    "student": LOOK | READ,
    "chains": LOOK | READ | {"diagnose": ["diagnose", "--batches", "0"]},
    "questions": LOOK | SORT,
    "captions": LOOK | DESCRIBE,
}
"""The folder comes after the name of the command, --json at the end."""

ONE = {
    "nll": ("nll", 1.0), "perplexity": ("perplexity", 1.0), "error": ("error", 0.01),
    "ece": ("ece", 1.0),
}
MODELS = {f"{then}/{old}": (f"{now}/{new}", factor)
          for then, now in (("single", "last"), ("averaged", "averaged"))
          for old, (new, factor) in ONE.items()}
PLACES: dict[str, dict[str, tuple[str, float]]] = {
    "evaluate": MODELS | {
        "samples": ("samples", 1.0), "temperature": ("temperature", 1.0),
        "each/*/nll": ("each/*/scores/nll", 1.0),
        "chains/*/averaged/nll": ("chains/*/scores/nll", 1.0),
    },
    "show": {
        "finished": ("finished", 1.0), "step": ("step", 1.0), "samples": ("samples", 1.0),
        "history/*/train_loss": ("history/*/train_loss", 1.0),
        "average/nll": ("average/nll", 1.0),
    },
    "uncertainty": MODELS | {
        "items": ("items", 1.0), "top/*/score": ("top/*/score", 1.0),
        "uncertainty/total": ("entropy", 1.0),
        "uncertainty/epistemic": ("mutual_information", 1.0),
        "uncertainty/disagreement": ("disagreement", 1.0),
    },
    "explain": {
        "nll": ("nll", 1.0), "tokens/*": ("tokens/*/token", 1.0),
        "averaged/*": ("tokens/*/p", 1.0), "std/*": ("tokens/*/std", 1.0),
        "each/*/*": ("^tokens/*/parts", 1.0),
    },
    "generate": {"text": ("text", 1.0), "samples": ("samples", 1.0)},
    "curve": {f"curve/{how}/*": (f"curve/{how}/*", 1.0) for how in (
        "forward", "backward", "thinned")},
    "diagnose": {"distance_growth": ("distance_growth", 1.0)},  # R-hat, ESS: others since
    "classify": {
        **{f"texts/*/{key}": (f"texts/*/{key}", 1.0) for key in (
            "label", "entropy", "mutual_information", "empty", "cut")},
        "texts/*/probability": ("texts/*/p/LABEL", 1.0),
        "texts/*/std": ("texts/*/std/LABEL", 1.0),
        "texts/*/decision": ("texts/*/accepted", 1.0),
        "texts/*/probabilities/place": ("texts/*/p/place", 1.0),
        "rule/threshold": ("rule/threshold", 1.0), "rule/coverage": ("rule/coverage", 1.0),
    },
    "decide": {
        "rule/accepted": ("rule/accepted", 1.0), "rule/errors": ("rule/errors", 1.0),
        "rule/risk_bound": ("rule/risk_bound", 1.0), "test/coverage": ("promise/coverage", 1.0),
        "test/risk": ("promise/risk", 1.0), "test/held": ("promise/held", 1.0),
        "test/aurc/entropy": ("test/aurc/entropy", 1.0),
    },
    "calibrate": {
        **{f"methods/average of 4/{key}": (f"methods/average of 4/{key}", 1.0) for key in (
            "nll", "brier", "ece", "ece_equal_mass", "error")},
        "sentences": ("items", 1.0),
    },
    "uncertain": {
        "sentences/*/score": ("top/*/score", 1.0),
        "sentences/*/true_mean": ("top/*/p", 1.0),
        "sentences/*/predicted_std": ("top/*/confidence_std", 1.0),
        "statistic": ("by", 1.0),
    },
    "caption": {
        f"images/*/captions/*/{old}": (f"images/*/captions/*/{new}", 1.0)
        for old, new in {"caption": "caption", "log_prob": "log_p", "score": "score",
                         "log_prob_std": "log_p_std", "words/*/probability": "words/*/p"}.items()
    },
}
"""Of each command: where its answer had a number, where it has it today, and the factor between.

Not every task has all of them; `*` is all items of a list, LABEL the label of the item, `^` turns a
table by its diagonal.
"""
WORDS = {"accept": True, "send to a person": False}
"""What was said in words, and is now told as a truth value."""


def find(answer: Any, path: str) -> Any:
    """What stands at a path such as `each/*/nll`; a list for each `*`."""
    if path.startswith("^"):
        return [list(row) for row in zip(*find(answer, path[1:]), strict=True)]
    head, _, rest = path.partition("/")
    if not head:
        return answer
    if head == "*":
        return [find(item, rest.replace("LABEL", str(item.get("label")))
                     if isinstance(item, dict) else rest) for item in answer]
    return find(answer[head], rest)


def assert_same(found: Any, expected: Any, factor: float, where: str) -> None:
    """Numbers to rounding, everything else exactly, lists item by item."""
    if isinstance(expected, list):
        assert isinstance(found, list), where
        assert len(found) == len(expected), where
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, factor, f"{where}[{number}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected * factor, **CLOSE), where
    elif isinstance(expected, str):
        assert found == WORDS.get(expected, expected), where
    else:
        assert found == expected, where


def ask_the_door(folder: str) -> dict[str, Any]:
    """What the object that `langevin.load` gives answers, under the names of old."""
    model = langevin.load(folder)
    answers: dict[str, Any] = {"samples": len(model), "vocabulary": len(model.vocabulary)}
    if hasattr(model, "score"):
        score, following = model.score(TEXT), model.next(TEXT, top=3)
        return answers | {
            "nll": score.nll, "perplexity": score.perplexity,
            "tokens": [t.token for t in score.tokens],
            "probability": [t.p for t in score.tokens],
            "std": [t.std for t in score.tokens],
            "next": [t.token for t in following],
            "next_probability": [t.p for t in following],
            "generated": "".join(model.generate("The ", 12, softmax_temperature=0)),
        }
    if hasattr(model, "predict"):
        found = model.predict(TEXTS)
        return answers | {
            "label": [d.label for d in found], "probability": [d.p[d.label] for d in found],
            "probabilities": [list(d.p.values()) for d in found],
            "std": [list(d.std.values()) for d in found], "total": [d.entropy for d in found],
            "epistemic": [d.mutual_information for d in found],
            "empty": [d.empty for d in found], "cut": [d.cut for d in found],
        }
    rows = np.load(FEATURES)[[27, 31]].astype(np.float32)
    images = ImageFeatures(["one", "other"], torch.from_numpy(rows), "two rows")
    found = model.describe(images, BeamSettings(beam=3, top=2, length_power=0.0))
    captions = [caption for picture in found for caption in picture.captions]
    return answers | {
        "caption": [c.caption for c in captions], "log_prob": [c.log_p for c in captions],
        "log_prob_std": [c.log_p_std for c in captions],
        "word_probability": [[word.p for word in c.words] for c in captions],
    }


@pytest.fixture
def beside_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a copy of the fixtures: recipes name their data from there, and commands may write."""
    shutil.copytree(FIXTURES, tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path / "fixtures")


@pytest.mark.parametrize("folder", list(EXPECTED))
def test_answers_as_when_it_was_made(folder: str, beside_the_data: None, cli: Any) -> None:
    expected = EXPECTED[folder]
    assert set(expected) == {"door", *COMMANDS.get(folder, {})}
    answers = ask_the_door(folder)
    assert set(answers) == set(expected["door"])
    for name, value in expected["door"].items():
        assert_same(answers[name], value, 1.0, f"{folder} at the door: {name}")
    for label, (command, *words) in COMMANDS.get(folder, {}).items():
        code, printed, said = cli(command, folder, *words, "--json")
        assert code == 0, said
        answer = json.loads(printed)
        for old, value in expected[label].items():
            new, factor = PLACES[label][old]
            assert_same(find(answer, new), value, factor, f"{folder}, {command}: {old}")


def test_without_its_data_a_run_answers_at_the_door(
    beside_the_data: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that a run learned from need not be there to ask it."""
    for folder in ("bytes", "questions"):
        shutil.copytree(folder, tmp_path / "away" / folder)
    monkeypatch.chdir(tmp_path / "away")
    for folder in ("bytes", "questions"):
        answers = ask_the_door(folder)
        for name, value in EXPECTED[folder]["door"].items():
            assert_same(answers[name], value, 1.0, f"{folder} without its data: {name}")


def test_a_finished_run_of_old_is_known_as_finished(beside_the_data: None, cli: Any) -> None:
    for folder in ("words", "chains", "questions", "captions", "student"):
        code, _, said = cli("resume", folder)
        assert code == 0, said
        assert "finished already" in said

"""A few hundred cases of `make fuzz`, and that the law can be broken.

LANGEVIN_FUZZ_CASES and LANGEVIN_FUZZ_SEED choose others.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from langevin.store.records import Record
from langevin.store.samples import Sample
from tests.fuzz.folders import make_folders
from tests.fuzz.law import COMMANDS, Case, Court

CASES = int(os.environ.get("LANGEVIN_FUZZ_CASES", "250"))
SEED = int(os.environ.get("LANGEVIN_FUZZ_SEED", "20261119"))
PARTS = 5


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Court:
    place = tmp_path_factory.mktemp("fuzz")
    make_folders(place / "sound")
    return Court(place / "sound", SEED)


@pytest.mark.parametrize("part", range(PARTS))
def test_refused_or_the_same(court: Court, part: int) -> None:
    for number in range(part, CASES, PARTS):
        case = court.case(number)
        outcome = court.judge(case)
        assert outcome.lawful, f"{case}: {outcome.verdict}\n{outcome.detail}"


def test_sound_folders_answer_the_same_twice(court: Court) -> None:
    for folder, command in (("bytes", "resume"), ("questions", "decide"), ("chains", "report")):
        known = court.sound(folder, command)
        del court.known[folder, command]
        assert court.sound(folder, command) == known
    assert set(COMMANDS) == {path.name for path in court.root.iterdir()} - {"data"}


def test_a_reader_that_compares_no_sums_is_caught(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = sorted((court.root / "bytes" / "samples").glob("*.safetensors"))
    file = str(samples[-1].relative_to(court.root / "bytes"))
    monkeypatch.setattr(Sample, "altered", lambda sample: "")
    verdicts = {court.judge(Case(n, "bytes", file, "flip_bits", "explain")).verdict
                for n in range(8)}
    assert "different" in verdicts


def test_a_reader_that_does_not_look_at_types_is_caught(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    believe = classmethod(lambda cls, raw: cls.model_construct(**json.loads(raw)))
    monkeypatch.setattr(Record, "model_validate_json", believe)
    verdicts = {court.judge(Case(n, "bytes", "origin.json", "forge_json", "show")).verdict
                for n in range(12)}
    assert "crashed" in verdicts


def test_what_writes_outside_is_caught(court: Court, monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(sample: Sample) -> str:
        Path("precious.txt").write_text("mine")
        return ""

    monkeypatch.setattr(Sample, "altered", careless)
    case = Case(0, "bytes", "recipe.toml", "join_strangers", "explain")
    assert court.judge(case).verdict == "wrote"

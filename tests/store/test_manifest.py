"""What a run remembers is read as what it is, or refused by file and key."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from langevin.errors import LangevinError
from langevin.store.folder import read_vocabulary
from langevin.store.manifest import (
    Chains,
    Choice,
    Origin,
    RunProgress,
    joint_progress,
    processor_name,
)
from langevin.store.records import read_record, read_sealed, write_record, write_sealed

FIXTURES = Path(__file__).parents[1] / "fixtures"
CHOICE = {"how": "thinned", "samples": 2, "score": 1.5, "of": ["0:ab"]}
PROGRESS = {
    "step": 3, "total": 9, "recorded": 3, "finished": False, "stopped_early": False, "clipped": 0,
    "clip_asked": 3, "averaged": 1, "groups": [{"lr": 0.1, "prior_var": None}], "losses": [1.5],
    "history": [{"step": 3, "epoch": 1.0, "lr": 0.1, "temperature": 0.0, "train_loss": 2.0,
                 "valid": {"nll": 1.0, "tokens": 7}}],
    "seconds": 2.0, "num_data": 40,
}


def test_the_processor_has_a_name_where_the_system_tells_none(monkeypatch):
    assert processor_name()
    path = "langevin.store.manifest.Path.read_text"
    monkeypatch.setattr(path, lambda path: "flags : none")
    assert processor_name() == platform.machine()


def test_a_record_comes_back(tmp_path):
    choice = Choice.model_validate_json(json.dumps(CHOICE))
    write_record(tmp_path / "c.json", choice)
    assert read_record(tmp_path / "c.json", Choice) == choice
    assert "sha256" in json.loads((tmp_path / "c.json").read_text())


BROKEN = {
    "a type": ({"samples": "2"}, r"samples in .*c\.json to be a valid integer, got '2'; bring"),
    "a truth": ({"samples": True}, r"samples in .*c\.json to be a valid integer, got True"),
    "a range": ({"samples": 0}, r"samples in .*c\.json to be greater than or equal to 1, got 0"),
    "a word": ({"how": "sideways"}, r"how in .*c\.json to be .*got 'sideways'"),
    "a list": ({"of": "0:ab"}, r"of in .*c\.json to be a valid array, got '0:ab'"),
    "an item": ({"of": ["a", 7]}, r"of\.1 in .*c\.json to be a valid string, got 7"),
    "a key": ({"best": 1}, r"expected no 'best' in .*c\.json"),
    "nothing": ({"how": None}, r"how in .*c\.json to be a valid string, got None"),
    "a newer format": ({"format": 7}, r"format 2 or older in .*c\.json, got format 7"),
    "no number of a format": ({"format": "new"}, r"number of a format for format in .*c\.json"),
    "a checksum": ({"sha256": "0" * 64}, r"c\.json was changed after it was written"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_does_not_fit_is_refused_by_file_and_key(tmp_path, kind):
    change, said = BROKEN[kind]
    (tmp_path / "c.json").write_text(json.dumps(CHOICE | change))
    with pytest.raises(LangevinError, match=said) as refused:
        read_record(tmp_path / "c.json", Choice)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "\xff", "[" * 10**5, '{"of":' * 300 + "1" + "}" * 300])
def test_what_is_no_object_is_refused(tmp_path, text):
    (tmp_path / "c.json").write_bytes(text.encode("latin-1"))
    for read in (lambda path: read_record(path, Choice), read_sealed):
        with pytest.raises(LangevinError, match=r"c\.json"):
            read(tmp_path / "c.json")


def test_a_missing_key_is_named(tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({k: v for k, v in CHOICE.items() if k != "of"}))
    with pytest.raises(LangevinError, match=r"expected of in .*c\.json, found none"):
        read_record(tmp_path / "c.json", Choice)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_what_is_no_number_is_no_share_of_the_data(tmp_path, number):
    origin = json.loads((FIXTURES / "student" / "origin.json").read_text())
    text = json.dumps(origin).replace('"data_weight": 0.0', f'"data_weight": {number}')
    (tmp_path / "origin.json").write_text(text)
    with pytest.raises(LangevinError, match=r"teacher\.data_weight in .*origin\.json"):
        read_record(tmp_path / "origin.json", Origin)


def test_what_was_measured_may_be_beyond_all_bounds():
    line = PROGRESS["history"][0] | {"valid": {"perplexity": float("inf"), "tokens": 7}}
    progress = RunProgress.model_validate_json(json.dumps(PROGRESS | {"history": [line]}))
    assert json.dumps(progress.to_dict()["history"]) == json.dumps([line])
    assert progress.to_dict()["groups"] == PROGRESS["groups"]


@pytest.mark.parametrize("folder", ["bytes", "words", "questions", "captions", "chains", "student"])
def test_the_origin_of_old_runs_opens_and_is_the_same_when_written_anew(tmp_path, folder):
    old = json.loads((FIXTURES / folder / "origin.json").read_text())
    origin = read_record(FIXTURES / folder / "origin.json", Origin)
    assert origin.data["data_sha256"] == old["data_sha256"]
    assert not {"versions", "commit", "machine", "teacher"} & origin.data.keys()
    assert origin.flat() == old
    write_record(tmp_path / "origin.json", origin)
    assert read_record(tmp_path / "origin.json", Origin) == origin


def test_a_new_origin_cannot_lose_its_checksum(tmp_path):
    write_record(tmp_path / "o.json", read_record(FIXTURES / "bytes" / "origin.json", Origin))
    text = (tmp_path / "o.json").read_text()
    for changed in (text.replace('"sha256"', '"sha257"'), text.replace("2716", "2717")):
        assert changed != text
        (tmp_path / "o.json").write_text(changed)
        with pytest.raises(LangevinError, match=r"o\.json"):
            read_record(tmp_path / "o.json", Origin)


def test_every_bit_of_a_sealed_file_is_noticed_or_changes_nothing(tmp_path):
    path = tmp_path / "decision.json"
    content = {"format": 1, "rules": [{"threshold": 0.025024451569937156, "label": "é"}]}
    write_sealed(path, content)
    raw, noticed = path.read_bytes(), 0
    for bit in range(0, 8 * len(raw), 3):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            found = read_sealed(path)
        except LangevinError:
            noticed += 1
        else:  # white space, or the name of the checksum, which is then one more key
            assert {key: found[key] for key in content} == content
    assert noticed > 2 * len(raw)


def test_chains_are_summed_and_their_lines_numbered():
    one = RunProgress.model_validate_json(json.dumps(PROGRESS))
    both = joint_progress([None, one])
    assert (both.step, both.total, both.finished, both.num_data) == (3, 18, False, 40)
    assert [line.chain for line in both.history] == [1]
    assert joint_progress([None, None]) is None


def test_a_folder_of_chains_has_some(tmp_path):
    (tmp_path / "chains.json").write_text('{"format": 1, "chains": []}')
    with pytest.raises(LangevinError, match=r"chains in .*chains\.json"):
        read_record(tmp_path / "chains.json", Chains)


@pytest.mark.parametrize(("content", "said"), [
    ("{}", "expected level in .*, found none"),
    ('{"level": "byte", "tokens": [1]}', r"tokens\.0 in"),
    ('{"level": "byte", "tokens": ["a", "a"]}', r"vocabulary\.json holds no vocabulary"),
    ('{"level": "runes", "tokens": ["a"]}', r"vocabulary\.json holds no vocabulary"),
    ('{"level": "byte", "tokens": ["a"], "more": 1}', "expected no 'more'"),
])
def test_a_vocabulary_that_is_none_is_refused(tmp_path, content, said):
    (tmp_path / "vocabulary.json").write_text(content)
    with pytest.raises(LangevinError, match=said):
        read_vocabulary(tmp_path / "vocabulary.json")


def test_errors_of_older_formats_were_per_cent(tmp_path):
    old = {"error": 25.0, "nll": 0.5, "sentences": 8}
    line = PROGRESS["history"][0] | {"valid": old, "average": old | {"error": 12.5}}
    upgraded = RunProgress.upgrade(PROGRESS | {"format": 2, "history": [line]})
    progress = RunProgress.model_validate_json(json.dumps(upgraded))
    assert progress.history[0].valid == {"error": 0.25, "nll": 0.5, "items": 8}
    assert progress.history[0].average["error"] == 0.125
    assert RunProgress.upgrade(progress.to_dict()) == progress.to_dict()
    (tmp_path / "c.json").write_text(json.dumps(CHOICE))
    assert read_record(tmp_path / "c.json", Choice).format == 1

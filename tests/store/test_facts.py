"""What a run remembers of its data is refused by key where its task could not go on from it."""

from pathlib import Path

import pytest

from langevin.errors import LangevinError
from langevin.store.facts import check_facts

SENTENCES = {
    "data_sha256": "0" * 64, "num_data": 7, "split_sha256": "1" * 64, "labels": ["a", "b"],
    "label_names": ["a", "b"], "split_sizes": {"train": 7}, "tokens": "words", "embed": 4,
    "coverage": {"types": 0.5, "tokens": 0.75, "found": 3}, "classes": ["of the estimator"],
}

ENCODER = {"name": "e", "sha256": "2" * 64, "config_sha256": "3" * 64, "layers": [-1, -4],
           "width": 768}


def test_sound_facts_come_back_as_they_are():
    assert check_facts(SENTENCES, "classify", Path("origin.json")) == SENTENCES
    encoded = SENTENCES | {"embed": 0, "encoder": ENCODER}
    assert check_facts(encoded, "classify", Path("origin.json")) == encoded
    text = {"data_sha256": "0" * 64, "num_data": 7, "more": [1]}
    assert check_facts(text, "language-model", Path("origin.json")) == text


@pytest.mark.parametrize(("key", "value"), [
    ("num_data", 0), ("num_data", True), ("labels", []), ("labels", [1]), ("embed", 10**9),
    ("coverage", {"types": float("nan"), "tokens": 1.0}), ("split_sizes", {"train": -1}),
    ("tokens", None), ("embed", -1), ("frozen", -1), ("encoder", ENCODER | {"width": 0}),
    ("encoder", ENCODER | {"layers": [1]}), ("encoder", {"name": "e"}),
])
def test_others_are_refused_by_key(key, value):
    with pytest.raises(LangevinError, match=rf"expected {key}.* in origin.json"):
        check_facts(SENTENCES | {key: value}, "classify", Path("origin.json"))


def test_what_is_missing_is_named():
    with pytest.raises(LangevinError, match=r"expected feature_width in origin\.json, found none"):
        check_facts({"data_sha256": "", "num_data": 1}, "caption", Path("origin.json"))

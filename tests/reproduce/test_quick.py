"""No target rots: the quick version of each runs from end to end on the real data.

Targets of one kind of data share a folder, so that what one has run the next finds there.
"""

import json

import pytest

from langevin.reproduce.targets import TARGETS

PNG = b"\x89PNG"
ABSENT = {"flickr30k"}
"""Not to be had; the same code as Flickr8k with another name."""
Steps = list[tuple[str, tuple[str, ...], int]]
"""Target, cells (none: all of them), seeds."""
WORDS: Steps = [
    ("ptb", ("ptb-small-random-sgld",), 2), ("samples", (), 1), ("ablation", ("ptb-small-random-sgld",), 1),
    ("words", (), 1), ("temperature-ptb", ("ptb-small-successive-sgld.T0.1",), 1),
    ("alternatives-ptb", ("ptb-small-successive-sgld",), 1),
]
SENTENCES: Steps = [
    ("sentences", ("trec-psgld",), 2), ("sentences", ("cr-psgld-dropout",), 2),
    ("ablation", ("trec-rmsprop", "trec-psgld"), 1), ("learning-curves", (), 1), ("uncertainty", (), 1),
    ("temperature-trec", ("trec-psgld.T2overN",), 1), ("vectors", ("cr-psgld-dropout.spacy",), 1),
    ("chains", ("trec-psgld-dropout.full",), 1), ("auto", ("classify.auto",), 1),
    ("alternatives-trec", ("trec-rmsprop-dropout.four", "trec-rmsprop-dropout.full"), 1),
]
CAPTIONS: Steps = [("captions", (), 1), ("flickr8k", ("flickr8k-psgld",), 1), ("time", ("flickr8k-psgld",), 1),
                   ("noise", ("flickr8k-psgld",), 1)]


def reproduce(langevin, steps, folder):
    """Run one target after another; returns the folder of their results."""
    for target, cells, seeds in steps:
        chosen = ["--cells", ",".join(cells)] if cells else []
        done = langevin("reproduce", target, "--quick", *chosen, "--seeds", seeds, "--out", folder / "runs", "--jobs",
                        1, timeout=600)
        assert done.returncode == 0, (target, done.stderr)
        assert "QUICK" in done.stdout
        if TARGETS[target].figure:
            assert (folder / "runs-quick" / "figures" / f"{target}.quick.png").read_bytes().startswith(PNG)
    return folder / "runs-quick"


def test_every_target_is_run():
    run = {target for steps in (WORDS, SENTENCES, CAPTIONS) for target, _, _ in steps}
    assert run | {"wp"} | ABSENT == set(TARGETS)  # War and Peace: test_runs.py


@pytest.mark.data
def test_targets_of_penn_treebank(langevin, real_data, tmp_path):
    results = reproduce(langevin, WORDS, tmp_path)
    assert len(list(results.glob("*.json"))) == 4


@pytest.mark.data
def test_targets_of_sentences(langevin, real_data, tmp_path):
    results = reproduce(langevin, SENTENCES, tmp_path)
    four = json.loads((results / "trec-rmsprop-dropout.four.json").read_text())
    assert sorted({each["chain"] for each in four["test"]["each"]}) == [0, 1, 2, 3]
    assert "weight_averaged" not in four["test"]
    choice = json.loads((results / "classify.auto.json").read_text())
    assert choice["temperature"] == choice["temperature_choice"]["chosen"]["temperature"]
    full = json.loads((results / "trec-rmsprop-dropout.full.json").read_text())
    assert 0 <= full["test"]["weight_averaged"]["error"] <= 100
    assert full["test"]["mc_dropout"]["nll"] > 0
    assert 0 <= min(full["rejection"]["aurc"].values()) <= max(full["rejection"]["aurc"].values()) <= 1
    assert "refused" in full["rejection"] or full["rejection"]["held"] in (True, False)


@pytest.mark.data
def test_targets_of_captions(langevin, real_data, tmp_path):
    results = reproduce(langevin, CAPTIONS, tmp_path)
    scores = json.loads((results / "flickr8k-psgld.json").read_text())["test"]["averaged"]
    assert scores["perplexity"] > 1
    assert 0 <= scores["bleu_4"] <= 1

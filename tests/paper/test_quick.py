"""No target rots: the quick version of each runs from end to end on the real data.

Targets of one kind of data share a folder, so that what one has run the next finds there.
"""

import json

import pytest

from paper.targets import TARGETS

PNG = b"\x89PNG"
ABSENT = {"flickr30k"}
"""Not to be had; the same code as Flickr8k with another name."""
Steps = list[tuple[str, tuple[str, ...]]]
"""Target, cells (none: all of them). Tables have two seeds or folds of each cell, figures one."""
WORDS: Steps = [
    ("ptb", ("ptb-small-random-sgld",)), ("samples", ()), ("ablation", ("ptb-small-random-sgld",)), ("words", ()),
    ("temperature-ptb", ("ptb-small-successive-sgld.T0.1",)), ("alternatives-ptb", ("ptb-small-successive-sgld",)),
    ("cycles", ("text.words-cyclical",)),
]
SENTENCES: Steps = [
    ("sentences", ("trec-psgld",)), ("sentences", ("cr-psgld-dropout",)), ("ablation", ("trec-rmsprop", "trec-psgld")),
    ("learning-curves", ()), ("uncertainty", ()), ("temperature-trec", ("trec-psgld.T2overN",)),
    ("vectors", ("cr-psgld-dropout.spacy",)), ("chains", ("trec-psgld-dropout.full",)),
    ("own-sentences", ("classify",)),
    ("alternatives-trec", ("trec-rmsprop-dropout.four", "trec-rmsprop-dropout.full")),
]
CAPTIONS: Steps = [("captions", ()), ("flickr8k", ("flickr8k-psgld",)), ("time", ("flickr8k-psgld",)),
                   ("noise", ("flickr8k-psgld",))]


def reproduce(paper, steps, folder):
    """Run one target after another; returns the folder of their results."""
    for target, cells in steps:
        chosen = ["--cells", ",".join(cells)] if cells else []
        code, printed, errors = paper("reproduce", target, "--quick", *chosen, "--out", folder / "runs", "--jobs", 1)
        assert code == 0, (target, errors)
        assert "QUICK" in printed
        if TARGETS[target].figure:
            assert (folder / "runs-quick" / "figures" / f"{target}.quick.png").read_bytes().startswith(PNG)
    return folder / "runs-quick"


def test_every_target_is_run():
    run = {target for steps in (WORDS, SENTENCES, CAPTIONS) for target, _ in steps}
    assert run | {"wp"} | ABSENT == set(TARGETS)  # War and Peace: test_runs.py


@pytest.mark.data
def test_targets_of_penn_treebank(paper, real_data, tmp_path):
    results = reproduce(paper, WORDS, tmp_path)
    assert {path.stem.removesuffix(".seed1") for path in results.glob("*.json")} == {
        "ptb-small-random-sgld", "ptb-small-successive-sgld", "ptb-small-successive-sgld.T0.1",
        "text.words-cyclical",
    }
    assert len(list(results.glob("*.seed1.json"))) == 4


@pytest.mark.data
def test_targets_of_sentences(paper, real_data, tmp_path):
    results = reproduce(paper, SENTENCES, tmp_path)
    four = json.loads((results / "trec-rmsprop-dropout.four.json").read_text())
    assert sorted({each["chain"] for each in four["test"]["each"]}) == [0, 1, 2, 3]
    assert "weight_averaged" not in four["test"]
    assert json.loads((results / "classify.json").read_text())["temperature"] == 0.01
    full = json.loads((results / "trec-rmsprop-dropout.full.json").read_text())
    assert 0 <= full["test"]["weight_averaged"]["error"] <= 100
    assert full["test"]["mc_dropout"]["nll"] > 0
    assert 0 <= min(full["rejection"]["aurc"].values()) <= max(full["rejection"]["aurc"].values()) <= 1
    assert "refused" in full["rejection"] or full["rejection"]["held"] in (True, False)


@pytest.mark.data
def test_targets_of_captions(paper, real_data, tmp_path):
    results = reproduce(paper, CAPTIONS, tmp_path)
    scores = json.loads((results / "flickr8k-psgld.json").read_text())["test"]["averaged"]
    assert scores["perplexity"] > 1
    assert 0 <= scores["bleu_4"] <= 1

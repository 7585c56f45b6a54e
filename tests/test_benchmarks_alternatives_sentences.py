"""The rivals of a classifier run from end to end on tiny sentences; pages are made from records."""

import json
import math
from pathlib import Path

import pytest
import torch

from benchmarks.alternatives import adam_classifier, fine_tuned, sentences
from benchmarks.alternatives.__main__ import main
from benchmarks.alternatives.class_scores import Said, score_classes
from benchmarks.alternatives.linear_rivals import ngram_rival
from benchmarks.alternatives.records import Records
from benchmarks.alternatives.sentence_sets import SentenceSet, open_sentences
from benchmarks.alternatives.tables import page, paired, text_table, unfolded
from langevin.errors import LangevinError
from tests.sentences import TINY_CLASSIFIER, questions, write_questions

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_questions(tmp_path / "a.txt", questions(80))
    other = write_questions(tmp_path / "b.txt", questions(30, seed=1))
    more = tuple(one for one in TINY_CLASSIFIER if not one.startswith("fold"))
    return SentenceSet(str(path), str(other), more=more)


def test_all_arms_of_sentences_and_then_nothing_is_left_to_do(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(adam_classifier.adam_run, "__defaults__", (2,))
    monkeypatch.setattr(fine_tuned.fine_tune, "__defaults__", (1,))
    monkeypatch.setattr(sentences, "RATES", (1e-3, 4e-3))
    arms = [arm for arm in sentences.CLASS_ARMS if arm not in ("ours-vectors", "ours-encoder")]
    sentences.run_sentences([tiny], [0], arms, Records(tmp_path / "told.json"))
    by = {line["arm"]: line for line in json.loads((tmp_path / "told.json").read_text())}
    assert set(by) == set(arms)
    assert all(0 < line["nll"] < 3 and line["seconds"] > 0 and line["peak_bytes"] for line in by.values())
    assert by["tfidf"]["error"] == 0
    assert len(by["adam"]["trials"]) == 2
    assert by["mc-dropout"]["networks"] == adam_classifier.MASKS
    assert {"entropy", "mutual_information"} == set(by["mc-dropout"]["foreign"])
    pool = by["linear-pooled"]
    assert pool["valid_nll"] < max(by["tfidf"]["valid_nll"], by["encoder-linear"]["valid_nll"])
    assert by["ours"]["nll"] == pytest.approx(by["ours"]["recipe"]["evaluate"]["pooled"], rel=1e-3)
    capsys.readouterr()
    sentences.run_sentences([tiny], [0], arms, Records(tmp_path / "told.json"))
    assert capsys.readouterr().err == ""


def test_seeds_are_folds_and_parts_do_not_meet(tiny):
    one, two = (open_sentences(tiny, seed) for seed in (0, 1))
    assert len(one.texts["test"]) == len(two.texts["test"]) == 8
    assert sum(len(one.texts[part]) for part in ("train", "valid", "test")) == 80
    assert one.targets["test"].tolist() != []
    assert one.classes == ("person", "place", "thing")


def test_scores_of_classes_by_hand():
    draws = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.6, 0.4]]]).log()
    truth = {"valid": torch.tensor([0, 1]), "test": torch.tensor([0, 0])}
    told = score_classes(Said(draws, draws, draws), truth)
    assert told["error"] == 0.5
    assert told["nll"] == pytest.approx(-(math.log(0.8) + math.log(0.4)) / 2)
    assert told["wrong"] == "01"
    assert told["aurc"] == pytest.approx((0 + 0.5) / 2)
    assert told["foreign"]["entropy"]["auroc"] == 0.5
    assert told["networks"] == 2


def test_the_linear_rival_takes_the_c_that_validation_prefers():
    texts, labels = zip(*questions(60), strict=True)
    numbers = torch.tensor([sorted(set(labels)).index(label) for label in labels])
    rival = ngram_rival()
    rival.choose(texts[:40], numbers[:40], texts[40:], numbers[40:])
    best = min(rival.trials, key=lambda trial: trial["valid_nll"])
    assert len(rival.trials) == 4
    assert rival.c == best["C"]
    found = -rival.log_probs(texts[40:])[0].gather(1, numbers[40:, None]).mean()
    assert float(found) == pytest.approx(best["valid_nll"], rel=1e-4)


def record(arm, seed, nll, blocks, **more):
    return {"set": "s", "seed": seed, "arm": arm, "nll": nll, "blocks": blocks, "trials": [], "seconds": 1.0,
            "networks": 1} | more  # fmt: skip


def test_differences_are_paired_over_seeds_or_over_blocks():
    ours = [record("ours", seed, 1.0 + seed, [1.0, 2.0]) for seed in range(3)]
    theirs = [record("x", seed, 1.1 + seed, [1.5, 2.1]) for seed in range(3)]
    gap, p = paired(theirs, ours, "blocks")
    assert gap.startswith("+0.1000 ± 0.0000")
    gap, p = paired(theirs[:1], ours[:1], "blocks")
    assert gap == "+0.3000 ± 0.2000"
    assert p == "0.37"
    assert paired(theirs[:1], ours[1:], "blocks") == ("", "")


def test_one_test_of_several_seeds_counts_once_and_folds_add_up():
    for name, error in {"trec": "0.2000", "cr": "0.1155"}.items():
        ours, theirs = ([{"set": name, "seed": seed, "nll": 1.0, "each": each} for seed in (0, 1)]
                        for each in ([1.0, 2.0], [1.5, 2.1]))  # fmt: skip
        assert paired(theirs, ours, "each")[0] == f"+0.3000 ± {error}"


def test_what_an_arm_also_says_is_a_row():
    one = record("ours", 0, 1.0, [1.0, 1.0], also={"reading on": {"nll": 0.5, "blocks": [0.5, 0.5]}})
    rows = unfolded([one])
    assert [row["arm"] for row in rows] == ["ours", "ours, reading on"]
    table = text_table({row["arm"]: [row] for row in rows})
    assert "| ours, reading on | 1 | 0.5000 |" in table
    counts = record("counts-reading-on", 0, 0.75, [0.7, 0.8])
    table = text_table({row["arm"]: [row] for row in [*rows, counts]})
    assert "+0.2500 ± 0.0500" in table


def test_the_page_is_made_from_records_alone(tmp_path):
    records = Records(tmp_path / "alternatives-texts.json")
    records.put(record("counts", 0, 1.25, [1.25, 1.25], perplexity=3.49))
    main(["tables", "--results", str(tmp_path), "--docs", str(tmp_path / "page.md")])
    told = (tmp_path / "page.md").read_text()
    assert "### s (1 seed)" in told
    assert "| counts | 1 | 1.2500 | 3.49 |" in told
    assert "## Sentences" not in told


def test_the_page_is_that_of_the_records():
    held = [Records(ROOT / "results" / f"alternatives-{kind}.json").held.values()
            for kind in ("texts", "sentences")]  # fmt: skip
    told = (ROOT / "docs" / "alternatives.md").read_text("utf-8")
    assert told == page(*held), "run python -m benchmarks.alternatives tables"


def test_unknown_names_are_refused():
    with pytest.raises(LangevinError, match=r"expected sets among war-and-peace, .*got 'wrong'"):
        main(["texts", "--sets", "wrong"])

"""The rivals run from end to end on a tiny text, what they say is scored right, and records
stay."""

import dataclasses
import json
import math

import pytest
import torch

from benchmarks.alternatives import text_sets, transformer
from benchmarks.alternatives.counted import CountsPredictor, ppmd_nll
from benchmarks.alternatives.foreseeing import facts, fit_temperature, observed
from benchmarks.alternatives.one_network import NetworksPredictor, Plan, schedule_of, train
from benchmarks.alternatives.pooled import PooledPredictor, read_on, weigh
from benchmarks.alternatives.records import Records
from benchmarks.alternatives.text_scores import fpr95, last_of
from benchmarks.alternatives.text_sets import SETS, docstrings, open_set
from benchmarks.alternatives.texts import ARMS, run_texts
from benchmarks.alternatives.transformer import Transformer, TransformerPredictor
from langevin.data.corpora import read_war_and_peace
from langevin.models.counts import Counts
from langevin.tasks.counting import crossed_log_probs


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "tiny.txt"
    path.write_bytes(read_war_and_peace()[:20_000])
    rates = {"adam": (1e-2, 2e-2), "rmsprop": (1e-2,), "sgd": (0.5,), "transformer": (4e-3,)}
    return dataclasses.replace(
        SETS["docstrings"], name="tiny", corpus=lambda: str(path), parts=(80, 10, 10), hidden=8,
        rows=10, window=20, epochs=0.4, extent=50, orders=(2, 4), rates=rates,
    )  # fmt: skip


@pytest.fixture(scope="module")
def data(tiny):
    return open_set(tiny, 0)


@pytest.fixture(scope="module")
def trained(data):
    return train(data.task, Plan("adam", "plateau", 1e-2, 40, 0))


def test_all_arms_of_a_text_and_then_nothing_is_left_to_do(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(text_sets, "FOREIGN", 1000)
    monkeypatch.setattr(transformer, "TRIED", 1)
    monkeypatch.setattr(transformer, "FEWEST", 2)
    records = Records(tmp_path / "told.json")
    rivals = [arm for arm in ARMS if arm != "ours"]
    run_texts([tiny], [0, 1], rivals, records)
    told = json.loads((tmp_path / "told.json").read_text())
    assert {(line["seed"], line["arm"]) for line in told} == {(s, a) for s in (0, 1) for a in rivals}
    assert all(0.5 < line["nll"] < math.log(256) and line["commit"] for line in told)
    by = {(line["seed"], line["arm"]): line for line in told}
    assert len(by[0, "adam-cosine"]["trials"]) == 2
    assert by[1, "adam-cosine"]["recipe"]["rate"] == by[0, "adam-cosine"]["recipe"]["rate"]
    assert by[1, "adam-cosine"]["trials"] == []
    pooled = by[0, "best-pooled"]
    assert pooled["recipe"]["of"] in ARMS
    assert pooled["nll"] < by[0, pooled["recipe"]["of"]]["nll"]
    capsys.readouterr()
    run_texts([tiny], [0, 1], rivals, Records(tmp_path / "told.json"))
    assert capsys.readouterr().err == ""


def test_ours_is_what_the_commands_make(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(text_sets, "FOREIGN", 1000)
    records = Records(tmp_path / "told.json")
    run_texts([dataclasses.replace(tiny, epochs=5)], [0], ["ours"], records)
    ours = records.find("tiny", 0, "ours")
    alone, told = ours["also"]["alone"], ours["recipe"]["evaluate"]
    assert ours["nll"] <= alone["nll"]
    assert ours["also"]["reading on"]["nll"] < ours["nll"]
    assert told["averaged"] == pytest.approx(alone["nll"], abs=0.05)
    assert ours["networks"] == alone["networks"] + 1
    assert ours["seconds"] > 0


def test_a_text_in_rows_is_foreseen_as_in_one_piece(data, trained):
    predictor = NetworksPredictor(data.task, [trained.end, trained.snapshots[0]])
    start = data.vocabulary.start
    inputs = torch.cat([torch.tensor([start]), data.valid[:-1]])[None]
    with torch.no_grad():
        whole = torch.stack([torch.log_softmax(model(inputs)[0][0], -1) for model in predictor.models])
    expected = whole.gather(-1, data.valid.expand(2, -1)[..., None])[..., 0]
    found = observed(predictor, data.valid, start)
    assert torch.allclose(found, expected.double(), atol=1e-3)
    assert not torch.allclose(found[0], found[1], atol=1e-2)


def test_counts_in_rows_are_the_counts(data):
    counts = Counts.learn(data.train, data.size, 4, start=[data.vocabulary.start])
    found = observed(CountsPredictor(counts), data.valid, data.vocabulary.start)[0]
    assert torch.allclose(found[1:], counts.log_probs(data.valid).double()[1:], atol=1e-6)


def test_a_transformer_sees_no_token_before_it_is_foreseen(data):
    torch.manual_seed(0)
    predictor = TransformerPredictor(Transformer(data.size), data.vocabulary.start)
    changed = data.valid.clone()
    changed[50:] = changed[50:].flip(0)
    one, two = (observed(predictor, text[:150], data.vocabulary.start)[0] for text in (data.valid, changed))
    assert torch.equal(one[:50], two[:50])
    assert not torch.allclose(one[50:], two[50:])


def test_facts_are_those_of_the_average(data, trained):
    predictor = NetworksPredictor(data.task, [trained.end, trained.snapshots[0]])
    start, text = data.vocabulary.start, data.valid[:500]
    told = facts(predictor, text, start, 1.0)
    average = observed(predictor, text, start).logsumexp(0) - math.log(2)
    assert torch.allclose(told.nll, -average, atol=1e-6)
    assert torch.allclose(told.tempered, told.nll, atol=1e-6)
    assert (told.mutual_information > 0).any()
    temperature = fit_temperature(predictor, text, start)
    assert facts(predictor, text, start, temperature).tempered.mean() <= told.nll.mean()


def test_pool_is_weighed_as_ours_and_reading_on_learns(data, trained):
    network = NetworksPredictor(data.task, [trained.end])
    counts = Counts.learn(data.train, data.size, 4, start=[data.vocabulary.start])
    weights = weigh(network, counts, data)
    share = torch.tensor([weights.network, 1 - weights.network])
    crossed = crossed_log_probs(data.task, 4, counts.memory)
    own = observed(network, data.valid, data.vocabulary.start)[0, 1:]
    together = (torch.stack([own, crossed]) + share.log()[:, None]).logsumexp(0).mean()
    assert together >= max(own.mean(), crossed.mean()) - 1e-5
    pooled = PooledPredictor(network, counts, weights.network)
    static = observed(pooled, data.test, data.vocabulary.start)
    mixed = (static + share.log()[:, None]).logsumexp(0)
    assert read_on(network, counts, weights, data).mean() < -mixed.mean()


def test_schedules_end_at_zero_and_plateau_is_flat():
    cosine, flat = (schedule_of(Plan("adam", name, 1.0, 1000, 0)) for name in ("cosine", "plateau"))
    assert cosine(500) == pytest.approx(0.5)
    assert flat(749) == 1
    assert flat(875) == pytest.approx(0.5)
    assert max(cosine(1000), flat(1000)) == pytest.approx(0)


def test_ppmd_needs_little_for_what_it_has_read():
    text = docstrings()[:4000]
    assert ppmd_nll(text, text, 8) < 0.3 < 2 < ppmd_nll(b"", text, 8)


def test_small_scores_by_hand():
    assert fpr95(torch.arange(100.0), torch.tensor([4.0, 5.0, 200.0, 1.0])) == 0.5
    better, worse = torch.full((3,), -1.0), torch.full((3,), -9.0)
    assert last_of(torch.stack([worse, better, better + 0.5])) == 1
    assert last_of(torch.stack([worse, better, better])) in (1, 2)

"""Members over a split: each against its formula, the pool, reading on, and the sentence."""

import json
import math
import random
import shutil
from dataclasses import replace

import pytest
import torch

import langevin
from langevin.data.batching import SuccessiveBatches
from langevin.errors import LangevinError
from langevin.posterior.pool import Pool
from langevin.predict.pooled import PooledTokens, follow_parts, say_better
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.store.members import read_members
from langevin.training.members import add_members
from langevin.training.session import start
from tests.conftest import TINY

PARTS = ["ba", "gar", "den", "hou", "se", "ti", "me", "ro"]


@pytest.fixture(scope="module")
def pooled(finished_run, tmp_path_factory):
    """A finished run with counts whose weights are not equal."""
    out = tmp_path_factory.mktemp("pooled") / "night"
    shutil.copytree(finished_run, out)
    add_members(RunFolder(out))
    return out


def test_numbers_are_those_of_their_formulas(pooled):
    posterior, each = langevin.load(pooled), []
    result = posterior.evaluate("test", see=each.append)
    weights = result.weights
    task = posterior.data
    tokens = torch.cat([task.evaluated["test"].sequence, task.evaluated["test"].tail]).long()
    counts = read_members(pooled, posterior.vocabulary).counts
    reader = counts.reader()
    reader.begin(1)
    counted = torch.stack([reader.read(token.view(1, 1))[0, 0, 0] for token in tokens])[1:].exp()
    network = torch.stack(each).double().exp().mean(0)
    mixed = weights["network"] * network + weights["counts"] * counted

    def nll(p):
        return -p.log().mean().item()

    assert result.members["network"] == result.averaged
    assert result.members["counts"].nll == pytest.approx(nll(counted), abs=1e-12)
    assert result.pooled.nll == pytest.approx(nll(mixed), abs=1e-7)
    assert result.pooled.bits_per_byte == pytest.approx(nll(mixed) / math.log(2), abs=1e-7)
    names = ["one network", "average of 4", "counts", "pool", "counts, reading on",
             "pool, reading on"]
    assert [line.name for line in result.compared] == names
    one = result.compared[0].scores
    assert one == result.best_single
    for line in result.compared[1:]:
        assert line.gain == pytest.approx(one.nll - line.scores.nll, abs=1e-7)
    assert result.adapted.nll < result.pooled.nll
    assert result.verdict.startswith("Counts alone foresee better than the pool, by ")


def test_weights_follow_as_the_switching_prior_says():
    generator = torch.Generator().manual_seed(2)
    each = [torch.rand(300, generator=generator).log().double() for _ in range(3)]
    prior = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    now, expected = prior.clone(), []
    for p in torch.stack(each).exp().T:
        expected.append((now * p).sum().log())
        now = 0.98 * now * p / (now * p).sum() + 0.02 * prior
    for at_once in (7, 1 << 16):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("langevin.predict.pooled.AT_ONCE", at_once)
            found = follow_parts(each, prior, 0.02)
        assert torch.allclose(found, torch.stack(expected), atol=1e-12)


def test_validation_is_foreseen_by_counts_that_have_not_seen_it(pooled):
    record = read_members(pooled, RunFolder(pooled).vocabulary).record
    result = langevin.load(pooled).evaluate("valid")
    for name, nll in record.nll.items():
        found = result.pooled if name == "pool" else result.members[name]
        assert found.nll == pytest.approx(nll, abs=1e-6)


def test_what_was_learnt_by_heart_is_not_foreseen(pooled):
    result = langevin.load(pooled).evaluate("train")
    assert result.pooled is None
    assert result.compared == ()
    assert result.verdict is None


def test_a_text_of_ones_own_and_a_run_without_counts(pooled, finished_run, text_file):
    result = langevin.load(pooled).evaluate(text=text_file)
    assert result.members["counts"].nll < result.averaged.nll, "it is what they were learnt from"
    assert langevin.load(finished_run).evaluate("test").pooled is None


def test_an_export_knows_no_best_sample(pooled, cli, tmp_path, text_file):
    out = tmp_path / "whole"
    assert cli("export", pooled, out, "--with-counts", "--no-evaluate")[0] == 0
    tokens = langevin.load(out).score("The French")
    assert tokens.labels[-1] == "counts"
    assert tokens == langevin.load(pooled).score("The French")


def fixed(network, counts, pool):
    """All tokens with the same log p, but for a little noise that all share."""
    noise = torch.rand(4000, generator=torch.Generator().manual_seed(1)).double()
    each = {name: value - noise for name, value in
            {"network": network, "counts": counts, "pooled": pool}.items()}
    return PooledTokens(**each, counts_reading_on=noise, adapted=noise, weights={})


def test_the_sentence():
    assert say_better(fixed(-2.0, -1.5, -1.4)) == (
        "The pool foresees better than its best member alone, counts, by "
        "0.1000 ± 0.0000 nats a token.")
    assert say_better(fixed(-1.0, -1.5, -1.2)) == (
        "The average of the samples alone foresees better than the pool, by "
        "0.2000 ± 0.0000 nats a token.")
    assert say_better(fixed(-2.0, -1.5, -1.5)).startswith(
        "The pool foresees no better than counts alone")
    far = fixed(-2.0, -1.5, -1.5)
    wide = replace(far, pooled=far.pooled + torch.randn(
        4000, generator=torch.Generator().manual_seed(0)).double())
    assert say_better(wide).startswith("The pool foresees no better than counts alone")


def test_commands_show_the_pool(cli, pooled):
    code, said, _ = cli("evaluate", pooled, "--quiet")
    assert code == 0
    for expected in ("gain over one network", "pool, reading on", "nats a token"):
        assert expected in said
    code, said, _ = cli("evaluate", pooled, "--json")
    told = json.loads(said)
    assert {"network", "counts"} == set(told["members"]) == set(told["weights"])
    assert told["pooled"]["nll"] == pytest.approx(told["compared"][3]["scores"]["nll"])
    code, said, _ = cli("explain", pooled, "The snow")
    assert code == 0
    for expected in ("counts", "pool", "average of 4", "between the members"):
        assert expected in said


def test_counts_join_the_samples_at_the_door(pooled):
    posterior = langevin.load(pooled)
    network, counts = posterior.members()
    weights = read_members(pooled, posterior.vocabulary).record.weights
    assert {network.name: network.weight, counts.name: counts.weight} == weights
    assert isinstance(posterior.reader(), Pool)
    score = posterior.score("The French were")
    for token in score.tokens:
        mean = sum(token.parts[:4]) / 4
        expected = weights["network"] * mean + weights["counts"] * token.parts[4]
        assert token.p == pytest.approx(expected, rel=1e-6)
        assert 0 <= token.between_members <= token.mutual_information + 1e-12
    assert sum(token.between_members for token in score.tokens) > 0.01
    text = "The French were near. " * 8
    assert posterior.score(text, adapt=True).nll < posterior.score(text).nll
    again = posterior.score(text)
    assert again == posterior.score(text), "static answers do not depend on order"


def test_damaged_counts_are_one_line(cli, pooled, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(pooled, out)
    path = out / "members" / "counts.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    code, _, said = cli("evaluate", out, "--quiet")
    assert code == 2
    assert "its checksum differs" in said
    assert "Traceback" not in said
    with pytest.raises(LangevinError, match="langevin pool RUN"):
        langevin.load(out).score("The")


def test_streams_that_do_not_follow_one_another_are_texts_of_their_own():
    tokens = torch.arange(41)
    joined = SuccessiveBatches.of(tokens, 4, 5)
    (whole,) = joined.texts
    assert torch.equal(whole, tokens)
    apart = SuccessiveBatches(joined.streams[:, :6], 5, tokens[:0])
    assert [text.tolist() for text in apart.texts] == [
        list(range(start, start + 6)) for start in (0, 10, 20, 30)]


@pytest.fixture(scope="module")
def wordy(tmp_path_factory):
    """A run over words, of which many were seen once; its counts, and how the others are spelt."""
    drawn, folder = random.Random(5), tmp_path_factory.mktemp("wordy")
    rare = [f"{a}{b}{c}" for a in PARTS for b in PARTS for c in PARTS]
    drawn.shuffle(rare)
    lines = [f"the snow on {word} and the road {word[:2]}x{number}"
             for number, word in enumerate(rare)]
    path = folder / "words.txt"
    path.write_text("\n".join(lines) + "\n")
    recipe = load_recipe("text", [f"corpus={path}", *TINY, "level=word", "min_count=2"])
    trainer = start(recipe, folder / "run")
    trainer.run()
    add_members(trainer.folder)
    return folder / "run"


def test_unknown_words_are_spelt_so_that_bytes_are_told(wordy):
    posterior = langevin.load(wordy)
    text = "the snow on bagarse and the tigarden\n"
    found, score = posterior.measure(text), posterior.score(text)
    assert found.unknown_share == pytest.approx(2 / 7)
    spelt = posterior.beside.spelling.log_p(["bagarse", "tigarden"])
    bits = (found.nll * found.items - spelt) / math.log(2) / len(text.encode())
    assert found.bits_per_byte == pytest.approx(bits)
    assert score.bits_per_byte == pytest.approx(bits)
    strange = posterior.measure(text.replace("bagarse", "xqzvkjw"))
    assert strange.bits_per_byte > found.bits_per_byte
    for lossy in ("the  bagarse\n", "the <unk>\n", "\tthe bagarse\n"):
        assert posterior.measure(lossy).bits_per_byte is None


def test_an_export_spells_as_the_run_does(wordy, cli, tmp_path):
    out = tmp_path / "whole"
    assert cli("export", wordy, out, "--with-counts", "--no-evaluate")[0] == 0
    text = "the snow on bagarse\n"
    assert langevin.load(out).measure(text) == langevin.load(wordy).measure(text)

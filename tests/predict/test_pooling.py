"""Posteriors, counts and readers pooled by hand."""

import shutil

import pytest
import torch

import langevin
from langevin.errors import LangevinError
from langevin.models.counts import Counts
from langevin.store.folder import RunFolder
from langevin.training.members import add_members
from langevin.training.session import start

TEXT = "The snow lay deep, and the French were near. " * 20


@pytest.fixture(scope="module")
def counts(finished_run):
    vocabulary = RunFolder(finished_run).vocabulary
    tokens = vocabulary.spell(TEXT).tokens
    return Counts.learn(tokens[1:], len(vocabulary), 4, start=tokens[:1].tolist())


def test_a_pool_is_the_mixture_of_its_members(finished_run, counts):
    posterior = langevin.load(finished_run)
    tokens = posterior.vocabulary.spell("The snow").tokens[1:]
    pool = langevin.pool({"network": posterior, "n-grams": counts}, [3.0, 1.0])
    assert pool.names == ["network", "n-grams"]
    network = torch.tensor([token.p for token in posterior.score("The snow").tokens]).double()
    counted = counts.log_probs(tokens).exp()
    assert torch.allclose(pool.score(tokens[None])[0].exp(), 0.75 * network + 0.25 * counted,
                          atol=1e-6)
    equal = langevin.pool([posterior.reader(), counts])
    assert equal.shares == [0.5, 0.5]


def test_weights_are_those_of_a_held_out_text(finished_run, counts):
    posterior = langevin.load(finished_run)
    pool = langevin.pool([posterior, counts], text=TEXT)
    assert pool.shares[1] > 0.99, "the counts know it by heart"
    tokens = posterior.vocabulary.spell(TEXT).tokens[1:]
    assert langevin.pool([posterior, counts], text=tokens).shares == pool.shares
    assert langevin.pool([posterior, counts], text="The snow").shares == [0.5, 0.5]
    with pytest.raises(LangevinError, match="pass a tensor"):
        langevin.pool([counts], text=TEXT)


def test_a_posterior_with_counts_is_two_members(finished_run, counts, tmp_path):
    out = tmp_path / "night"
    shutil.copytree(finished_run, out)
    add_members(RunFolder(out))
    pool = langevin.pool([langevin.load(out), langevin.load(finished_run)], [1.0, 3.0])
    assert pool.names == ["night 1: network", "night 1: counts", "night 2"]
    assert pool.shares == pytest.approx([0.125, 0.125, 0.75])


def test_reading_on(finished_run, counts):
    tokens = langevin.load(finished_run).vocabulary.spell("over and over " * 30).tokens[1:]
    static = langevin.pool([langevin.load(finished_run), counts]).score(tokens[None])
    adapted = langevin.pool([langevin.load(finished_run), counts], adapt=True).score(tokens[None])
    assert adapted.mean() > static.mean() + 0.5


def test_what_does_not_foresee_the_same_is_refused(finished_run, classifier_run, tiny, tmp_path):
    letters = start(tiny("level=char"), tmp_path / "letters")
    letters.run()
    night = langevin.load(finished_run)
    for members, weights, expected in [
        ([night, langevin.load(tmp_path / "letters")], None, "members over the same tokens, got"),
        ([night, Counts(7, 2)], None, "Counts over 7"),
        ([Counts(7, 2).reader(), Counts(8, 2).reader()], None, "CountsReader 2 over 8"),
        ([night, langevin.load(classifier_run)], None, "expected what foresees texts"),
        ([night], [1.0, 2.0], "a weight for each of 1 members, got 2"),
        ([night], [-1.0], "weights of zero or more"),
        ([], None, "members of different names"),
    ]:
        with pytest.raises(LangevinError, match=expected):
            langevin.pool(members, weights)

"""Passes over the samples of many chains: their averages, in memory that does not grow with the
chains."""

import math
from functools import reduce
from pathlib import Path

import pytest
import torch

from langevin.posterior.average import LogMean
from langevin.recipe import load_recipe
from langevin.store.samples import Sample, choose
from langevin.tasks import open_task
from langevin.tasks.scoring import Pass, collection_means, score_chain, score_samples
from tests.conftest import SENTENCE, TINY


@pytest.fixture(scope="module")
def long_task(tmp_path_factory):
    """Its validation split has 500,000 tokens, so that log-probabilities take 2 MB."""
    path = tmp_path_factory.mktemp("long") / "text.txt"
    path.write_text(SENTENCE * 5400)
    return open_task(load_recipe("text", [f"corpus={path}", *TINY, "parts=[1,98,1]"]))


def drawn(chains, each):
    return [Sample(Path("none"), step, "", {}, chain) for chain in range(chains) for step in range(each)]



def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def scored_by_seed(task, samples, tokens, on_sample=lambda: None, **options):
    def kept(sample):
        generator = torch.Generator().manual_seed(1000 * sample.chain + sample.step)
        return -torch.rand(tokens, generator=generator)

    return score_samples(task, torch.nn.Identity(), samples, "valid", on_sample, kept_by=kept, **options)


def test_memory_does_not_grow_with_the_chains(long_task):
    """64 chains of 2 samples: an average of each chain alone would take 130 MB, all that is said
    twice that."""
    tokens, used = 500_000, []
    found = scored_by_seed(long_task, drawn(64, 2), tokens, lambda: used.append(resident()), curve=True)
    assert (len(found.each), len(found.chains)) == (128, 64)
    assert max(used[64:]) - max(used[:64]) < 20e6


def test_chains_joined_in_any_tree_give_the_same_average(long_task):
    def one(chain):
        samples = [s for s in drawn(5, 3) if s.chain == chain]
        return score_chain(long_task, torch.nn.Identity(), samples, "valid", curve=True, kept_by=kept)

    def kept(sample):
        return -torch.rand(1000, generator=torch.Generator().manual_seed(1000 * sample.chain + sample.step))

    row = reduce(Pass.join, [one(chain) for chain in range(5)])
    tree = one(0).join(one(1)).join(one(2).join(one(3))).join(one(4))
    direct = torch.stack([kept(sample) for sample in drawn(5, 3)]).double().exp().mean(0).log()
    for found in (row, tree):
        torch.testing.assert_close(found.mean.value().double(), direct, rtol=0, atol=1e-6)
        assert found.mean.count == 15
        assert [(e.chain, e.step) for e in found.each] == [(c, s) for c in range(5) for s in range(3)]
        assert [e.chain for e in found.chains] == list(range(5))
        assert [mean.count for mean in found.sums.means["thinned"]] == [5, 10, 15]


def test_thinned_collections_of_many_samples_take_no_sum_for_each_pair(monkeypatch):
    """807 samples would take 326,028 of them. The averages are those of the samples that are
    chosen."""
    generator = torch.Generator().manual_seed(0)
    kept = [10 * torch.randn(5, generator=generator).abs().neg() - 300 * (n % 2) for n in range(70)]
    monkeypatch.setattr(LogMean, "add", None)
    found = [mean.value() for mean in collection_means(kept, "thinned")]
    for n, value in enumerate(found, 1):
        plain = torch.stack(choose(kept, "thinned", n)).double().logsumexp(0) - math.log(n)
        assert torch.allclose(value.double(), plain, rtol=1e-5)

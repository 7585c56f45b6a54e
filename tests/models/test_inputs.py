"""Frozen vectors, characters and states, by hand; a classifier on them learns and is averaged."""

import pytest
import torch

from langevin.data.buckets import pad
from langevin.data.characters import beside_grams
from langevin.errors import LangevinError
from langevin.models.classifier import SentenceClassifier
from langevin.models.initial import initialise
from langevin.models.inputs import EncoderStates, FrozenVectors, HashedCharacters
from langevin.posterior.ensemble import Ensemble

SETTINGS = {"cell": "gru", "hidden": 5, "layers": 1, "readout": ("max", "mean", "input")}


def test_frozen_vectors_are_projected_and_not_trained():
    frozen = FrozenVectors(3, 4, 2)
    frozen.table[1] = torch.tensor([1.0, -1, 2, 0.5])
    found, known = frozen(torch.tensor([[1, 2]]))
    torch.testing.assert_close(found[0, 0], frozen.project(frozen.table[1].float()))
    assert known.flatten().tolist() == [True, False]
    assert "table" not in dict(frozen.named_parameters())


def test_characters_add_up():
    characters = HashedCharacters(3)
    grams = torch.tensor([[[5, 7, 0, 0], [0, 0, 0, 0]]])
    found = characters(grams)
    expected = (characters.embedding.weight[5] + characters.embedding.weight[7]) / 2**0.5
    torch.testing.assert_close(found[0, 0], expected)
    assert not found[0, 1].any()


def test_states_are_normalised_and_projected():
    states = EncoderStates(8, 3)
    rows = torch.randn(2, 4, 8).half()
    found, whole = states(rows)
    torch.testing.assert_close(whole.mean(-1), torch.zeros(2, 4), atol=1e-5, rtol=0)
    torch.testing.assert_close(whole.var(-1, correction=0), torch.ones(2, 4), atol=1e-3, rtol=0)
    torch.testing.assert_close(found, states.project(whole).tanh())


def words_rows():
    texts = [["snow", "melts"], ["Rome"], [], ["snow", "in", "Rome", "melts"]]
    numbers = {"snow": 1, "melts": 2, "Rome": 3}
    return [beside_grams(torch.tensor([numbers.get(w, 0) for w in own], dtype=torch.long), own)
            for own in texts]  # fmt: skip


def by_words():
    model = SentenceClassifier(4, 2, embed=3, vectors=6, project=4, characters=3, **SETTINGS)
    model.set_table(torch.eye(4, 6) * torch.tensor([0.0, 1, 1, 0])[:, None])  # 0 and 3 have none
    return model, words_rows()


def by_states():
    model = SentenceClassifier(4, 2, embed=0, states=8, project=4, **SETTINGS)
    generator = torch.Generator().manual_seed(1)
    return model, [torch.randn(n, 8, generator=generator).half() for n in (3, 2, 0, 5)]


@pytest.mark.parametrize("build", [by_words, by_states])
def test_padding_changes_nothing_an_empty_text_has_the_prior_and_samples_are_averaged(build):
    model, rows = build()
    initialise(model, "fan", 0.05, 1.0, seed=0)
    model.set_prior(torch.tensor([1, 3]))
    model.eval()
    together = model(*pad(rows)).log_softmax(-1)
    alone = torch.cat([model(*pad([row])).log_softmax(-1) for row in rows])
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(together[2].exp(), torch.tensor([0.25, 0.75]))
    other = build()[0].eval()
    each = torch.stack([together, other(*pad(rows)).log_softmax(-1)])
    for plan in ("auto", "batched", "loop"):
        found = Ensemble(model, [model, other], plan=plan).log_probs(*pad(rows), each=True)
        torch.testing.assert_close(found.each, each, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("build", [by_words, by_states])
def test_every_weight_gets_a_gradient(build):
    model, rows = build()
    initialise(model, "fan", 0.05, 1.0, seed=0)
    torch.nn.functional.cross_entropy(model(*pad(rows)), torch.tensor([0, 1, 1, 0])).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.any(), name


def test_characters_speak_only_for_words_without_a_vector():
    model, rows = by_words()
    vectors, _ = model.inputs(pad(rows)[0])
    assert not vectors[0, 0, 7:].any()  # snow has a vector
    assert vectors[1, 0, 7:].all()  # Rome has none


def test_what_a_classifier_does_not_read_cannot_be_set():
    with pytest.raises(LangevinError, match="got one that does not"):
        by_states()[0].set_table(torch.zeros(4, 6))
    with pytest.raises(LangevinError, match="got one without"):
        by_states()[0].set_vectors(torch.zeros(4, 6), trained=True)

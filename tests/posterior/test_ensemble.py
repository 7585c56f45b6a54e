"""An ensemble equals the loop over its samples, whatever the plan, the chunks and the model."""


import pytest
import torch
from torch import nn

from langevin import Ensemble, LangevinError, SampleStore
from langevin.models.language_model import LanguageModel
from langevin.models.recurrent import CELLS
from langevin.posterior.ensemble import free_memory, split_samples

S, V = 5, 11
PLANS = ["batched", "loop", "auto"]


def language_models(cell="lstm", layers=2, *, tied=False, hidden=7, count=S):
    torch.manual_seed(1)
    sizes = {"cell": cell, "embed": hidden, "hidden": hidden, "layers": layers, "tied": tied, "dropout": 0.5}
    return [LanguageModel(V, **sizes).eval() for _ in range(count)]


def close(got, expected):
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)


def mean_of(each):
    """The average of probabilities, in double precision."""
    return each.double().exp().mean(0).log().float()


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("tied", "hidden"), [(False, 7), (True, 7), (True, 13)])
@torch.no_grad()
def test_language_model_equals_the_loop_and_carries_state(plan, cell, layers, tied, hidden):
    """With 13 features for 11 types the first layer is a table."""
    members = language_models(cell, layers, tied=tied, hidden=hidden)
    ensemble = Ensemble(members[0], members, plan=plan)
    tokens = torch.randint(V, (3, 9))
    expected = torch.stack([m(tokens)[0].log_softmax(-1) for m in members])
    whole = ensemble.log_probs(tokens, each=True)
    close(whole.each, expected)
    close(whole.log_probs, mean_of(expected))
    first = ensemble.log_probs(tokens[:, :4])
    assert first.each is None
    second = ensemble.log_probs(tokens[:, 4:], carry=first.carry)
    close(torch.cat([first.log_probs, second.log_probs], 1), mean_of(expected))
    close(second.carry, whole.carry)


@torch.no_grad()
def test_a_state_may_go_from_one_plan_to_the_other():
    members = language_models()
    one, other = (Ensemble(members[0], members, plan=plan) for plan in ("loop", "batched"))
    tokens = torch.randint(V, (2, 8))
    for first, then in ((one, other), (other, one)):
        carry = first(tokens[:, :5])[1]
        close(then(tokens[:, 5:], carry=carry)[0], one(tokens)[0][:, :, 5:])


@torch.no_grad()
def test_a_state_dict_may_name_tied_weights_twice():
    members, tokens = language_models(tied=True), torch.randint(V, (1, 3))
    assert "output.weight" in members[0].state_dict()
    got = Ensemble(members[0], [m.state_dict() for m in members])(tokens)[0]
    close(got, torch.stack([m(tokens)[0] for m in members]))


@torch.no_grad()
def test_auto_is_batched_for_few_positions_only():
    members = language_models()
    auto, loop, batched = (Ensemble(members[0], members, plan=plan) for plan in ("auto", "loop", "batched"))
    few, many = torch.randint(V, (1, 1)), torch.randint(V, (20, 20))
    assert torch.equal(auto(few)[0], batched(few)[0])
    assert torch.equal(auto(many)[0], loop(many)[0])
    assert not torch.equal(auto(many)[0], batched(many)[0])


@pytest.mark.parametrize("plan", PLANS)
@torch.no_grad()
def test_score_is_the_log_probability_of_the_targets(plan):
    members = language_models()
    tokens, targets = torch.randint(V, (2, 3, 6))
    scored = Ensemble(members[0], members, plan=plan).score(tokens, targets=targets)
    each = torch.stack([m(tokens)[0].log_softmax(-1).gather(-1, targets[..., None])[..., 0] for m in members])
    close(scored.each, each)
    close(scored.log_probs, mean_of(each))


def fill(folder, members):
    store = SampleStore(folder)
    for step, member in enumerate(members, 1):
        store.append(member, step)
    return store


@torch.no_grad()
def test_store_and_selection(tmp_path):
    members = language_models()
    store = fill(tmp_path, members)
    tokens = torch.randint(V, (1, 3))
    expected = torch.stack([m(tokens)[0] for m in members])
    for samples, wanted in (
        (store, [0, 1, 2, 3, 4]),
        (store.read(), [0, 1, 2, 3, 4]),
        ([m.state_dict() for m in members], [0, 1, 2, 3, 4]),
        (store.select("forward", 2), [0, 1]),
        (store.select("backward", 2), [3, 4]),
        (store.select("thinned", 2, discard=1), [2, 4]),
    ):
        ensemble = Ensemble(members[0], samples)
        assert len(ensemble) == len(wanted)
        close(ensemble(tokens)[0], expected[wanted])


@pytest.mark.parametrize("plan", PLANS)
@torch.no_grad()
def test_chunks_that_do_not_fit_are_streamed(tmp_path, plan):
    members = language_models(count=7)
    store, tokens = fill(tmp_path, members), torch.randint(V, (2, 6))
    whole = Ensemble(members[0], store, plan=plan)
    assert whole.chunks == [slice(0, 7)]
    for memory, expected in ((4 * whole.size, [2, 2, 3]), (0, [1] * 7), (8 * whole.size, [7])):
        ensemble = Ensemble(members[0], store, plan=plan, memory=memory)
        assert [part.stop - part.start for part in ensemble.chunks] == expected
        first, all_at_once = ensemble.log_probs(tokens[:, :2], each=True), whole.log_probs(tokens, each=True)
        second = ensemble.log_probs(tokens[:, 2:], carry=first.carry, each=True)
        close(torch.cat([first.log_probs, second.log_probs], 1), all_at_once.log_probs)
        close(torch.cat([first.each, second.each], 2), all_at_once.each)


def test_split_and_free_memory():
    assert split_samples(20, 10, 1000) == [slice(0, 20)]
    # the one that is being read needs room as well
    assert split_samples(20, 10, 209) == [slice(0, 10), slice(10, 20)]
    assert split_samples(3, 10, 0) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert 2**20 < free_memory(nn.Linear(1, 1)) < 2**50


@torch.no_grad()
def test_samples_of_all_chains_are_taken(tmp_path):
    members = language_models(count=8)
    folders = [tmp_path / "first", tmp_path / "second"]
    fill(folders[0], members[:5])
    fill(folders[1], members[5:])
    store = SampleStore.of_chains(tmp_path, [SampleStore(folder) for folder in folders])
    tokens = torch.randint(V, (1, 3))
    expected = torch.stack([m(tokens)[0] for m in members])
    for samples, wanted in (
        (store.select("backward", 2), [3, 4, 6, 7]),
        (store.select("forward", 1), [0, 5]),
        (store.select("thinned", 2), [1, 4, 5, 7]),
        (store, range(8)),
    ):
        close(Ensemble(members[0], samples)(tokens)[0], expected[list(wanted)])
    with pytest.raises(LangevinError, match="between 1 and 3 samples"):
        store.select("backward", 4)


def test_samples_of_different_shapes_are_refused(tmp_path):
    members = language_models(count=2)
    store = fill(tmp_path, [*members, *language_models(hidden=6, count=1)])
    for memory in (None, 0):
        with pytest.raises(LangevinError, match=r"one shape.*embedding.weight is \(11, 6\) in .*000000003.*\(11, 7\)"):
            Ensemble(members[0], store, memory=memory)
    with pytest.raises(LangevinError, match=r"output.bias is absent in sample 0, \(11,\) in the model"):
        Ensemble(members[0], [{n: p for n, p in members[0].named_parameters() if n != "output.bias"}])


def test_too_few_samples_are_refused(tmp_path):
    members = language_models(count=1)
    with pytest.raises(LangevinError, match="no samples"):
        Ensemble(members[0], SampleStore(tmp_path))
    with pytest.raises(LangevinError, match="at least one sample"):
        Ensemble(members[0], [])
    assert len(Ensemble(members[0], fill(tmp_path, members))) == 1


def test_wrong_arguments_are_told():
    members = language_models()
    ensemble = Ensemble(members[0], members)
    carry = ensemble(torch.zeros(1, 1, dtype=torch.long))[1]
    with pytest.raises(LangevinError, match="state of 4 samples"):
        Ensemble(members[0], members[:4])(torch.zeros(1, 1, dtype=torch.long), carry=carry)
    with pytest.raises(LangevinError, match="plan must be one of auto, batched, loop, got 'fast'"):
        Ensemble(members[0], members, plan="fast")


@torch.no_grad()
def test_the_model_keeps_weights_and_mode_and_the_samples_are_copied():
    members = language_models()
    model = language_models(count=1)[0].train()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    ensemble, tokens = Ensemble(model, members), torch.randint(V, (2, 4))
    expected = torch.stack([m(tokens)[0] for m in members])
    for member in members:
        nn.init.zeros_(member.output.weight)
    close(ensemble(tokens)[0], expected)  # in evaluation mode: the dropout of the model is off
    assert model.training
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())

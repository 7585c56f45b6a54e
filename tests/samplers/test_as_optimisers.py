"""Every sampler as a torch optimiser: its twin when cold, groups, schedulers, what is refused."""

import copy
import pydoc
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import CyclicLR, LambdaLR, OneCycleLR

from langevin.samplers import SAMPLERS, schedules
from tests.samplers.targets import (
    CASES,
    CORRELATED,
    assert_z,
    every_dtype,
    every_sampler,
    kernel_and_plain,
    make,
    normal_z,
    parameter,
    run_chains,
)
from tests.samplers.training import LanguageModel, random_gradients, train

TWINS = {
    "sgld": (torch.optim.SGD, {}, {}),
    "psgld": (torch.optim.RMSprop, {"alpha": 0.95, "eps": 1e-8}, {"beta": 0.95}),
    "psgld adagrad": (torch.optim.Adagrad, {"eps": 1e-8}, {"preconditioner": "adagrad"}),
    "sghmc": (torch.optim.SGD, {"momentum": 0.8}, {"friction": 0.2}),
    "sgnht": (torch.optim.SGD, {"momentum": 0.8}, {"friction": 0.2}),
    "santa": (torch.optim.RMSprop, {"alpha": 0.95, "eps": 1e-8, "momentum": 0.8}, {"beta": 0.95, "friction": 0.2}),
}


# ---------------------------------------------------------------- the optimiser twin


@kernel_and_plain
@every_dtype
@pytest.mark.parametrize("twin", TWINS)
def test_cold_and_flat_is_the_torch_optimiser(twin, dtype, fused):
    cls, theirs, ours = TWINS[twin]
    lr = 0.5 if cls is torch.optim.SGD else 0.01
    reference, model = LanguageModel().to(dtype), LanguageModel().to(dtype)
    optimizer = cls(reference.parameters(), lr=lr, **theirs)
    sampler = make(twin.split()[0], model.parameters(), lr=lr, num_data=100, temperature=0.0, fused=fused, **ours)
    before = copy.deepcopy(model.state_dict())
    tolerance = {"rtol": 1e-4, "atol": 2e-6} if dtype == torch.float32 else {"rtol": 1e-11, "atol": 1e-13}
    for i in range(20):
        train(reference, optimizer, steps=1, first=i)
        train(model, sampler, steps=1, first=i)
        for mine, its in zip(model.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(mine, its, **tolerance)
    assert not torch.allclose(model.head.weight, before["head.weight"], atol=1e-2)


@every_sampler
def test_no_gradient_no_prior_no_temperature_no_motion(name):
    theta = torch.nn.Parameter(torch.randn(5, 3))
    before = theta.detach().clone()
    sampler = make(name, [theta], lr=0.1, num_data=10, temperature=0.0)
    for _ in range(5):
        theta.grad = torch.zeros_like(theta)
        sampler.step()
    assert torch.equal(theta, before)


# ---------------------------------------------------------------- as torch users expect


@every_sampler
def test_without_a_seed_noise_follows_torch_s_and_is_not_shared(name):
    def steps(count):
        thetas = [parameter(5) for _ in range(count)]
        for theta in thetas:
            sampler = make(name, [theta], lr=0.1, num_data=10, seed=None)
            for _ in range(3):
                theta.grad = torch.zeros(5)
                sampler.step()
        return [theta.detach() for theta in thetas]

    torch.manual_seed(3)
    one, other = steps(2)
    assert not torch.isclose(one, other).any()
    torch.manual_seed(3)
    assert torch.equal(steps(1)[0], one)


@every_sampler
def test_settings_of_torch_s_optimisers_are_not_swallowed(name):
    groups = [{"params": [parameter(2)]}, {"params": [parameter(3)], "weight_decay": 0.01}]
    with pytest.raises(ValueError, match=r"weight_decay must be left out or 0, got 0.01; .*prior_var"):
        make(name, groups, lr=0.1, num_data=10)
    groups[1] |= {"weight_decay": 0, "name": "head"}  # as libraries that hand in groups do
    make(name, groups, lr=0.1, num_data=10)


@every_sampler
def test_frozen_and_gradientless_parameters_are_left_alone(name):
    frozen = torch.nn.Parameter(torch.randn(3), requires_grad=False)
    unused, used = torch.nn.Parameter(torch.randn(3)), torch.nn.Parameter(torch.randn(3))
    before = [p.detach().clone() for p in (frozen, unused, used)]
    sampler = make(name, [frozen, unused, used], lr=0.1, num_data=10, prior_var=1.0)
    for _ in range(3):
        sampler.zero_grad()
        used.square().sum().backward()
        sampler.step()
    assert torch.equal(frozen, before[0])
    assert torch.equal(unused, before[1])
    assert not sampler.state[unused]
    assert not sampler.state[frozen]
    assert (used != before[2]).all()


@every_sampler
def test_groups_have_their_own_settings(name):
    """A cold flat group beside a warm one moves as it would alone, bit for bit; each prior pulls its own group."""
    alone, cold, warm = parameter(6), parameter(6), parameter(6)
    random_gradients(make(name, [alone], lr=0.1, num_data=10, temperature=0.0), 3)
    sampler = make(
        name, [{"params": [cold], "temperature": 0.0}, {"params": [warm], "prior_var": 0.5}], lr=0.1, num_data=10
    )
    for i in range(3):
        gradient = torch.randn(6, generator=torch.Generator().manual_seed(i))
        cold.grad, warm.grad = gradient.clone(), gradient.clone()
        sampler.step()
    assert torch.equal(cold, alone)
    assert (warm != cold).all()

    pulled = [torch.nn.Parameter(torch.ones(4)) for _ in range(3)]
    groups = [{"params": [p], "prior_var": v} for p, v in zip(pulled, (None, 4.0, 1.0), strict=True)]
    unit_gain = {"eps": 1.0} if CASES[name].preconditioned else {}  # G = 1 where there is no gradient
    sampler = make(name, groups, lr=0.1, num_data=10, temperature=0.0, **unit_gain)
    for p in pulled:
        p.grad = torch.zeros_like(p)
    sampler.step()
    assert torch.equal(pulled[0], torch.ones(4))
    torch.testing.assert_close(pulled[1], torch.full((4,), 1 - 0.1 / 40), rtol=1e-6, atol=0)
    torch.testing.assert_close(pulled[2], torch.full((4,), 1 - 0.1 / 10), rtol=1e-6, atol=0)


@every_sampler
def test_lr_schedulers_act(name):
    """LambdaLR with a schedule of ours equals setting the rate by hand; at rate 0 not even noise moves."""
    schedule = schedules.cosine_cyclical(4, floor=0.1)
    scheduled, by_hand = LanguageModel(), LanguageModel()
    sampler = make(name, scheduled.parameters(), lr=0.2, num_data=100)
    train(scheduled, sampler, steps=6, scheduler=LambdaLR(sampler, schedule))
    sampler = make(name, by_hand.parameters(), lr=0.2, num_data=100)
    for i in range(6):
        sampler.param_groups[0]["lr"] = 0.2 * schedule(i)
        train(by_hand, sampler, steps=1, first=i)
    assert all(torch.equal(a, b) for a, b in zip(scheduled.parameters(), by_hand.parameters(), strict=True))

    still = parameter(5)
    random_gradients(make(name, [still], lr=0.0, num_data=10), 3)
    assert not still.any()


@every_sampler
def test_closure_is_evaluated_with_gradients_and_returns_the_loss(name):
    theta = torch.nn.Parameter(torch.ones(3))
    sampler = make(name, [theta], lr=0.1, num_data=10, temperature=0.0)

    def closure():
        sampler.zero_grad()
        loss = theta.square().sum()
        loss.backward()
        return loss

    assert sampler.step(closure).item() == 3.0
    assert (theta < 1).all()
    assert sampler.step() is None


@every_sampler
def test_the_gradient_of_the_user_is_not_touched(name):
    theta, gradient = parameter(5), torch.linspace(-1, 1, 5)
    sampler = make(name, [theta], lr=0.1, num_data=10, prior_var=1.0)
    theta.grad = gradient.clone()
    sampler.step()
    assert torch.equal(theta.grad, gradient)


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("cycled", [OneCycleLR, CyclicLR])
@every_sampler
def test_schedulers_that_cycle_the_momentum_work_with_their_defaults(name, cycled):
    """What they write stands for 1 − friction; a sampler without momentum moves as if it were not there."""
    arguments = {"max_lr": 0.1} | ({"total_steps": 9} if cycled is OneCycleLR else {"base_lr": 0.01, "step_size_up": 4})
    scheduled, by_hand = parameter(6), parameter(6)
    sampler, other = (make(name, [theta], lr=0.1, num_data=10) for theta in (scheduled, by_hand))
    scheduler, group, hand = cycled(sampler, **arguments), sampler.param_groups[0], other.param_groups[0]
    frictions = []
    for i in range(8):
        frictions.append(1 - group["momentum"])
        hand["lr"] = group["lr"]
        if "friction" in hand:
            hand["friction"] = frictions[-1]
        random_gradients(sampler, 1, first=i)
        random_gradients(other, 1, first=i)
        scheduler.step()
    assert max(frictions) - min(frictions) > 0.05
    assert torch.equal(scheduled, by_hand)
    fresh = make(name, [parameter(6)], lr=0.1, num_data=10)
    fresh.load_state_dict(sampler.state_dict())
    assert fresh.param_groups[0]["momentum"] == group["momentum"]


@every_sampler
def test_help_explains_every_argument(name):
    cls = SAMPLERS[name]
    text = pydoc.plaintext.document(cls)
    for argument in {"params", "lr", "num_data", "prior_var", "temperature", "seed", "fused"} | cls.setting_names():
        assert re.search(rf"^ \|\s+`{argument}`", text, re.MULTILINE) or argument == "steps_done"


@every_sampler
def test_weight_decay_is_answered_with_the_prior_that_it_is(name):
    """1/(N·w) of the numbers that were given; a group's own N counts."""
    computed = r"^weight_decay must be left out or 0, got 0.01; .*prior_var = 1/\(N·weight_decay\) = 2$"
    with pytest.raises(ValueError, match=computed):
        make(name, [parameter(2)], lr=0.1, num_data=50, weight_decay=0.01)
    groups = [{"params": [parameter(2)], "num_data": 400, "weight_decay": 0.01}]
    with pytest.raises(ValueError, match=r"prior_var = 1/\(N·weight_decay\) = 0.25$"):
        make(name, groups, lr=0.1, num_data=50)
    make(name, [parameter(2)], lr=0.1, num_data=50, weight_decay=0)


@every_sampler
def test_other_arguments_are_refused_with_what_to_write(name):
    with pytest.raises(ValueError, match=r"^maximize must be left out or 0, got True; negate the loss$"):
        make(name, [parameter(2)], lr=0.1, num_data=10, maximize=True)
    has_friction = "friction" in SAMPLERS[name].setting_names()
    remedy = r"friction = 1 − momentum = 0.1$" if has_friction else "the settings of this sampler are"
    with pytest.raises(ValueError, match=rf"^momentum must be left out or 0, got 0.9; .*{remedy}"):
        make(name, [parameter(2)], lr=0.1, num_data=10, momentum=0.9)
    with pytest.raises(TypeError, match=rf"^{SAMPLERS[name].__name__} .* got temprature; did you mean temperature\?"):
        make(name, [parameter(2)], lr=0.1, num_data=10, temprature=0.1)
    with pytest.raises(TypeError, match=r"got foreach; it takes .*prior_var"):
        make(name, [parameter(2)], lr=0.1, num_data=10, foreach=True)


@every_sampler
def test_tied_weights_count_once(name):
    """One parameter, one pull of the prior, one noise: as if a lone tensor got the summed gradient."""
    model = LanguageModel(tied=True)
    sampler = make(name, model.parameters(), lr=0.1, num_data=100, prior_var=1.0)
    assert sum(p is model.head.weight for group in sampler.param_groups for p in group["params"]) == 1
    lone = torch.nn.Parameter(model.embedding.weight.detach().clone())
    tokens = torch.randint(0, 30, (4, 7), generator=torch.Generator().manual_seed(0))
    model.loss(tokens).backward()
    lone.grad = model.embedding.weight.grad.clone()
    sampler.step()
    make(name, [lone], lr=0.1, num_data=100, prior_var=1.0).step()
    assert torch.equal(model.head.weight, lone)
    assert model.head.weight is model.embedding.weight


@every_sampler
def test_odd_shapes(name):
    """A scalar, an empty tensor and a transposed layout: the noise follows the logical order of elements."""
    scalar, empty, plain = parameter(), parameter(0, 3), parameter(70, 30)
    transposed = torch.nn.Parameter(torch.zeros(30, 70).T)
    random_gradients(make(name, [scalar, empty], lr=0.1, num_data=10), 2)
    assert scalar.isfinite()
    assert scalar != 0
    for theta in (plain, transposed):
        random_gradients(make(name, [theta], lr=0.1, num_data=10, prior_var=1.0), 3)
    torch.testing.assert_close(plain, transposed, rtol=1e-6, atol=1e-7)


def test_santa_cools_and_then_refines():
    """T·(t+1)^(−anneal) while exploring, then the optimiser: all chains meet at the mode, frictions stand still."""
    case = replace(CASES["santa"], steps=500, settings=CASES["santa"].settings | {"explore": 100, "anneal": 0.5})
    run = run_chains(case, CORRELATED, temperature=1.0, chains=64)
    np.testing.assert_allclose(run.theta, np.broadcast_to(CORRELATED.mean, (64, 2)), atol=1e-5)
    exploring = run_chains(replace(case, steps=98), CORRELATED, temperature=1.0, chains=64)
    assert exploring.theta.std() > 0.01
    refined = run_chains(replace(case, steps=600), CORRELATED, temperature=1.0, chains=64)
    assert torch.equal(run.friction, refined.friction)


@pytest.mark.parametrize("anneal", [0.0, 0.5])
def test_santa_anneals_the_noise(anneal):
    """The ninth step, without gradient: θ = √(2A·lr·T·9^(−anneal)·G/N)·ξ, with G at its ceiling, 1."""
    theta = parameter(64, 64)
    sampler = make("santa", [theta], lr=0.0, num_data=40, anneal=anneal, friction=0.2, ceiling=1.0)
    theta.grad = torch.zeros_like(theta)
    for _ in range(8):
        sampler.step()
    assert not theta.any()
    sampler.param_groups[0]["lr"] = 0.1
    sampler.step()
    assert_z(normal_z(theta, 2 * 0.2 * 0.1 * 9**-anneal / 40))

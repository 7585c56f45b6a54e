"""The compiled kernels give the bits of the plain torch functions, whatever the shape, the settings
and the threads.

Bits are equal in float32 for every sampler, in float64 for SGLD, SGHMC and SGNHT. In float64 PSGLD
and Santa agree to rounding: MKL's double square root, which their plain functions use, is one unit
off in one of eighty numbers.
"""

import logging
import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from langevin.samplers import SAMPLERS, SGLD, noise
from langevin.samplers.cpu import launch, table
from langevin.samplers.cpu.table import Kernel
from langevin.samplers.late_rows import row_normal

SAME_BITS = {torch.float32: set(SAMPLERS), torch.float64: {"sgld", "sghmc", "sgnht"}}
PRECONDITIONED = st.fixed_dictionaries({}, optional={
    "preconditioner": st.sampled_from(["rmsprop", "adagrad"]), "beta": st.floats(0, 0.999),
    "eps": st.sampled_from([1e-8, 1e-3]), "eps_inside": st.booleans(),
    "ceiling": st.sampled_from([None, 0.5, 10.0]),
})  # fmt: skip
FRICTION = st.fixed_dictionaries({}, optional={"friction": st.floats(0.01, 1)})
OWN = {
    "sgld": st.just({}),
    "psgld": PRECONDITIONED,
    "sghmc": FRICTION,
    "sgnht": st.builds(lambda a, b: a | {"thermostat_rate": b}, FRICTION, st.floats(0, 1)),
    "santa": st.builds(
        lambda a, b, c, d: a | b | {"thermostat_rate": c, "explore": d}, FRICTION, PRECONDITIONED, st.floats(0, 1),
        st.sampled_from([None, 0, 2]),
    ),
}  # fmt: skip
COMMON = st.fixed_dictionaries({
    "lr": st.sampled_from([0.0, 1e-4, 0.03, 0.7]), "num_data": st.sampled_from([1, 1000, 929_589]),
    "prior_var": st.sampled_from([None, 0.01, 1.0]), "temperature": st.sampled_from([0.0, 0.1, 1.0]),
    "seed": st.integers(0, 2**64 - 1), "means": st.booleans(),
})  # fmt: skip
SHAPES = st.lists(
    st.sampled_from([(), (0,), (3, 0), (1,), (7, 5), (255,), (256,), (257,), (1024,), (1025,), (41, 83)]), min_size=1,
    max_size=3,
)  # fmt: skip


def after(name, fused, shapes, dtype=torch.float32, steps=3, prepare=lambda p: p, means=False, **settings):
    """Parameters and states after some steps with random gradients, under priors with means of
    their own or without."""
    generator = torch.Generator().manual_seed(0)
    parameters = [
        torch.nn.Parameter(prepare(torch.randn(shape, generator=generator, dtype=dtype))) for shape in shapes
    ]
    sampler = SAMPLERS[name](parameters, fused=fused, **{"seed": 0} | settings)
    for parameter in parameters if means else ():
        sampler.set_prior_mean(parameter, torch.randn(parameter.shape, generator=generator, dtype=dtype))
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=dtype)
        sampler.step()
    return [p.detach() for p in parameters] + [t for p in parameters for t in sampler.state[p].values()]


def assert_same(ours, theirs, to_the_bit, rtol=1e-9):
    for x, y in zip(ours, theirs, strict=True):
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        rtol, atol = (0, 0) if to_the_bit else (rtol, rtol / 100)
        torch.testing.assert_close(x, y, rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", SAMPLERS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_kernel_equals_reference(name, dtype, data):
    chosen = data.draw(COMMON) | data.draw(OWN[name])
    shapes = data.draw(SHAPES)
    ours, theirs = (after(name, fused, shapes, dtype, **chosen) for fused in (True, False))
    assert_same(ours, theirs, name in SAME_BITS[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_many_blocks_on_one_and_two_threads(name, dtype):
    """Large enough for several threads; the fused results agree to the bit even where a mean is
    taken."""
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(after(name, True, [(130_001,), (512,)], dtype, lr=0.01, num_data=100, prior_var=1.0))
        reference = after(name, False, [(130_001,), (512,)], dtype, lr=0.01, num_data=100, prior_var=1.0)
    finally:
        torch.set_num_threads(threads)
    assert_same(results[0], results[1], True)
    assert_same(results[0], results[2], True)
    assert_same(results[0], reference, name in SAME_BITS[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("shape", [(0,), (1,), (5, 7), (1025,), (3, 70_001)])
def test_noise_kernel(shape, dtype):
    out = torch.empty(shape, dtype=dtype)
    launch.fill_normal(out, (2**63 + 5, 2**31 + 1, 2**31 + 7, 1))
    expected = noise.normal(shape, seed=2**63 + 5, parameter=2**31 + 1, step=2**31 + 7, stream=1, dtype=dtype)
    assert torch.equal(out, expected)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 31, 200, 257])
def test_row_noise_kernel(width):
    rows, theta = torch.tensor([0, 5, 2, 999]), torch.ones(1000, width)
    one = torch.ones(4)
    launch.update_rows("shared_rows", (theta, rows, one * 0, one), (9, 1, 2, 3), {})
    assert torch.equal(theta[rows], row_normal(rows, width, (9, 1, 2, 3)))
    assert (theta == 1).all(1).sum() == 996


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("temperature", [0.0, 0.3])
@pytest.mark.parametrize("name", ["sgld", "psgld"])
def test_row_kernels_equal_the_reference(name, temperature, dtype):
    """Steps have the same bits (PSGLD in float32); moves of late rows go through another logarithm
    in PSGLD."""
    results = []
    for choice in (True, False):
        torch.manual_seed(0)
        embedding = torch.nn.Embedding(400, 31, sparse=True, dtype=dtype)
        sampler = SAMPLERS[name](embedding.parameters(), 0.01, num_data=50, seed=0, prior_var=1.0, fused=choice,
                                 temperature=temperature)  # fmt: skip
        sampler.attach(embedding)
        for _ in range(12):
            sampler.zero_grad()
            embedding(torch.randint(0, 300, (60,))).square().sum().backward()
            sampler.step()
        weight, state = embedding.weight.detach(), sampler.state[embedding.weight].values()
        results.append([weight.clone(), *(t.clone() for t in state)])
        sampler.catch_up_all()
        results[-1].append(weight)
    assert_same(*results, name == "sgld", rtol=1e-5 if dtype == torch.float32 else 1e-9)


def transposed(tensor):
    return tensor.t().contiguous().t()


def channels_last(tensor):
    return tensor.to(memory_format=torch.channels_last)


@pytest.mark.parametrize(("layout", "shape"), [(transposed, (30, 50)), (channels_last, (4, 3, 5, 6))])
@pytest.mark.parametrize("name", SAMPLERS)
def test_other_layouts_fall_back_to_the_same_bits(name, layout, shape):
    """Elements are numbered in logical order, so strides change nothing but the path taken."""
    plain = after(name, None, [shape], lr=0.01, num_data=100)
    strided = after(name, None, [shape], prepare=layout, lr=0.01, num_data=100)
    assert not strided[0].is_contiguous()
    assert_same(plain, strided, True)


def test_a_mean_in_another_layout_is_left_to_torch():
    """It goes to the kernel by its address like the rest."""
    results = []
    for layout in (torch.Tensor.contiguous, transposed):
        parameter = torch.nn.Parameter(torch.ones(30, 50))
        sampler = SGLD([parameter], 0.1, num_data=10, seed=0, prior_var=1.0)
        sampler.set_prior_mean(parameter, torch.linspace(-1, 1, 1500).view(30, 50))
        sampler.state[parameter]["prior_mean"] = layout(sampler.state[parameter]["prior_mean"])
        parameter.grad = torch.ones(30, 50)
        sampler.step()
        results.append(parameter)
    assert_same(*[[p.detach()] for p in results], True)


def test_strided_gradient_of_a_contiguous_parameter():
    one, two = (torch.nn.Parameter(torch.ones(40, 60)) for _ in range(2))
    one.grad, two.grad = torch.arange(40.0).repeat(60, 1).t(), torch.arange(40.0)[:, None].repeat(1, 60)
    assert not one.grad.is_contiguous()
    for parameter in (one, two):
        SGLD([parameter], 0.1, num_data=10, seed=0, fused=True).step()
    assert torch.equal(one, two)


def test_insisting_on_the_kernel_where_it_cannot_run():
    parameter = torch.nn.Parameter(torch.ones(4, 6).t())
    parameter.grad = torch.ones(6, 4)
    with pytest.raises(ValueError, match=r"fused=True needs .* strides \(1, 6\); pass fused=None"):
        SGLD([parameter], 0.1, num_data=10, seed=0, fused=True).step()


def test_without_numba(monkeypatch):
    monkeypatch.setattr(launch, "has_numba", lambda: False)
    expected = after("sgld", False, [(300,)], lr=0.01, num_data=100)
    assert_same(after("sgld", None, [(300,)], lr=0.01, num_data=100), expected, True)
    with pytest.raises(ValueError, match="no numba"):
        after("sgld", True, [(300,)], lr=0.01, num_data=100)


def test_no_noise_is_computed_at_temperature_zero(monkeypatch):
    keys, write = [], table.write
    monkeypatch.setattr(table, "write", lambda *arguments: keys.append(arguments[-1]) or write(*arguments))
    for name in SAMPLERS:
        after(name, True, [(2000,)], lr=0.01, num_data=100, temperature=0.0)
    assert len(keys) == 3 * len(SAMPLERS)
    assert set(keys) == {None}
    zeros = torch.zeros(1024)
    launch.update("normal", [(0, (zeros,), None)], None, {})
    assert not zeros.any()


def test_two_dtypes_in_one_group():
    results = []
    for choice in (True, False):
        parameters = [torch.nn.Parameter(torch.ones(3000, dtype=d)) for d in (torch.float64, torch.float32) * 2]
        for number, parameter in enumerate(parameters):
            parameter.grad = torch.full_like(parameter, number)
        SGLD(parameters, 0.1, num_data=10, seed=0, fused=choice).step()
        results.append(parameters)
    assert_same(*results, True)


def test_state_of_another_dtype_or_shape_is_left_to_torch():
    """Kernels go by addresses and would read past the end."""
    parameter = torch.nn.Parameter(torch.ones(40))
    parameter.grad = torch.ones(40)
    sampler = SAMPLERS["sghmc"]([parameter], 0.1, num_data=10, seed=0)
    sampler.step()
    before, momentum = parameter.detach().clone(), sampler.state[parameter]["momentum"]
    sampler.state[parameter]["momentum"] = momentum.double()
    sampler.step()
    assert torch.equal(parameter, before.add_(sampler.state[parameter]["momentum"]))
    sampler.param_groups[0]["fused"] = True
    with pytest.raises(ValueError, match=r"float64 \(40,\) beside weights of torch.float32"):
        sampler.step()
    sampler.state[parameter]["momentum"] = momentum[:20]
    with pytest.raises(ValueError, match=r"float32 \(20,\) beside weights of torch.float32 \(40,\)"):
        sampler.step()


def test_autograd_notices_the_update():
    weight = torch.nn.Parameter(torch.ones(3))
    loss = (weight * weight).sum()
    weight.grad = torch.ones(3)
    SGLD([weight], 0.1, num_data=10, seed=0, fused=True).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


IMPORTS_LATE = "import sys, langevin.samplers; sys.exit('numba' in sys.modules)"


def test_numba_is_imported_late():
    subprocess.run([sys.executable, "-c", IMPORTS_LATE], check=True, timeout=180, env=os.environ)


ANNOUNCED = "def some_blocks(data):\n    pass\n"


def test_compilation_is_announced(caplog, monkeypatch, tmp_path):
    """By logging at INFO, and only when something was compiled."""
    (tmp_path / "announced.py").write_text(ANNOUNCED)
    monkeypatch.syspath_prepend(tmp_path)
    import announced

    with caplog.at_level(logging.INFO, "langevin"):
        for _ in range(2):
            kernel = Kernel(announced.some_blocks)
            assert kernel.address("float32") == kernel.address("float32") > 0
    assert [record.message.split(" in ")[0] for record in caplog.records] == ["compiled some_blocks for float32"]

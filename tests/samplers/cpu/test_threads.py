"""The same function on all threads at once, whoever lends them: torch's OpenMP or a pool."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from langevin.samplers import SGLD
from langevin.samplers.cpu import threads as lent

HAS_OPENMP = lent.openmp() is not None
SIZE = 300_000


@pytest.fixture
def two_threads():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=["openmp", "pool"])
def lender(request, monkeypatch, two_threads):
    if request.param == "pool":
        monkeypatch.setattr(lent, "openmp", lambda: None)
    elif not HAS_OPENMP:
        pytest.skip("torch without libgomp")
    return request.param


def updated(seed=0, fused=True):
    """Weights after two steps."""
    parameter = torch.nn.Parameter(torch.linspace(-1, 1, SIZE))
    parameter.grad = torch.ones(SIZE)
    sampler = SGLD([parameter], 0.1, num_data=10, seed=seed, fused=fused)
    for _ in range(2):
        sampler.step()
    return parameter.detach()


def as_address(function):
    """Of a C function that calls a Python function; the first must be held as long as it is
    used."""
    made = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
    return made, ctypes.cast(made, ctypes.c_void_p).value


def test_torch_on_linux_lends_its_team():
    assert HAS_OPENMP or sys.platform != "linux" or not torch.backends.openmp.is_available()


def test_every_thread_calls_once(lender):
    meeting, seen = threading.Barrier(2, timeout=20), []

    def note(data):
        meeting.wait()  # which one thread alone could not pass
        seen.append((data, threading.get_ident()))

    held, address = as_address(note)
    lent.run_kernel(address, 5, parallel=True)
    assert [data for data, _ in seen] == [5, 5]
    assert len({ident for _, ident in seen}) == 2
    del held


def test_little_work_stays_on_this_thread(two_threads):
    seen = []
    held, address = as_address(lambda data: seen.append(threading.get_ident()))
    lent.run_kernel(address, 5, parallel=False)
    assert seen == [threading.get_ident()]
    del held


def test_bits_do_not_depend_on_the_lender(lender):
    assert torch.equal(updated(), updated(fused=False))


def test_steps_of_several_threads_at_once(lender):
    expected, results = [updated(seed, fused=False) for seed in range(3)], {}

    def work(seed):
        torch.set_num_threads(2)  # torch keeps this for each thread
        results[seed] = updated(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert all(torch.equal(results[seed], expected[seed]) for seed in range(3))


def test_threads_of_the_pool_do_not_spin(monkeypatch):
    """The work of two threads costs no more CPU time than that of one."""
    monkeypatch.setattr(lent, "openmp", lambda: None)
    parameter = torch.nn.Parameter(torch.zeros(2_000_000))
    parameter.grad = torch.ones(2_000_000)
    sampler = SGLD([parameter], 0.1, num_data=10, seed=0, fused=True)
    threads, spent = torch.get_num_threads(), {}
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            times = []
            for _ in range(12):
                began = time.process_time()
                sampler.step()
                time.sleep(0.005)
                times.append(time.process_time() - began)
            spent[count] = sorted(times)[6]
    finally:
        torch.set_num_threads(threads)
    assert spent[2] < 1.8 * spent[1]


PROGRAM = """
import os, numpy, torch
from langevin.samplers import SGLD
torch.set_num_threads(2)
def run():  # filling and summing by numpy, as torch's own threads do not survive a fork
    parameter = torch.nn.Parameter(torch.from_numpy(numpy.zeros(200_000)))
    parameter.grad = torch.from_numpy(numpy.ones(200_000))
    SGLD([parameter], 0.1, num_data=10, seed=0, fused=True).step()
    return parameter.detach().numpy().sum()
"""
AFTER_FORK = """
here = run()
child = os.fork()
if child == 0:
    os._exit(0 if run() == here else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
FIRST_AFTER_FORK = """
(torch.ones(1_000_000) * 2).sum()  # wakes torch's threads
child = os.fork()
if child == 0:
    os._exit(0 if run() != 0 else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
NO_MORE_THREADS = """
import scipy.linalg  # numba loads it, and with it comes a thread of its BLAS
(torch.ones(1_000_000) * 2).sum()
before = len(os.listdir("/proc/self/task"))
assert before > 1
run()
assert len(os.listdir("/proc/self/task")) == before
"""


@pytest.mark.parametrize("program", [AFTER_FORK, FIRST_AFTER_FORK], ids=["one more step", "first step"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_after_a_fork(program):
    subprocess.run([sys.executable, "-c", PROGRAM + program], check=True, timeout=180, env=os.environ)


@pytest.mark.skipif(not HAS_OPENMP or not Path("/proc/self/task").is_dir(), reason="torch without libgomp")
def test_threads_are_those_of_torch():
    subprocess.run([sys.executable, "-c", PROGRAM + NO_MORE_THREADS], check=True, timeout=180, env=os.environ)

"""Start-up care changes no bit, can be switched off, and is harmless where it cannot work."""

import ctypes
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from langevin import process as startup
from langevin.process import prepare_process
from tests.conftest import TINY


@pytest.fixture(autouse=True)
def _same_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class Libc:
    """A stand-in for the C library that notes what it is asked."""

    def __init__(self, *, glibc: bool = True, agrees: bool = True):
        self.asked: list[tuple[int, int]] = []
        if glibc:
            self.gnu_get_libc_version = object()

        def mallopt(name: int, value: int) -> int:
            self.asked.append((name, value))
            return int(agrees)

        self.mallopt = mallopt


def test_asks_glibc_to_keep_what_was_freed(monkeypatch):
    libc = Libc()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    assert prepare_process().memory == "freed blocks are kept"
    assert dict(libc.asked) == {startup.MMAP_MAX: 0, startup.TRIM_THRESHOLD: -1, startup.TOP_PAD: 64 * 2**20}


def test_says_when_glibc_refuses(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Libc(agrees=False))
    assert prepare_process().memory == "glibc refused"


def test_leaves_another_libc_alone(monkeypatch):
    libc = Libc(glibc=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    assert prepare_process().memory == "left alone, no glibc"
    assert libc.asked == []


@pytest.mark.parametrize("error", [OSError, TypeError, AttributeError])
def test_harmless_without_a_c_library(monkeypatch, error):
    def fail(name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", fail)
    assert prepare_process().memory == "left alone, no glibc"


def test_flag_switches_it_off(monkeypatch):
    libc = Libc()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    monkeypatch.setenv("LANGEVIN_STARTUP", "0")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(startup, "available_cores", lambda: 1)
    torch.set_num_threads(2)
    assert str(prepare_process()) == "memory: left alone, LANGEVIN_STARTUP=0; 2 threads"
    assert libc.asked == []
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("threads", "cores", "variable", "expected"), [(3, 2, None, 2), (1, 2, None, 1), (2, 2, None, 2), (3, 2, "3", 3)]
)
def test_threads_are_lowered_to_the_cores_and_never_raised(monkeypatch, threads, cores, variable, expected):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if variable:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    monkeypatch.setattr(startup, "available_cores", lambda: cores)
    torch.set_num_threads(threads)
    assert prepare_process().threads == expected
    assert torch.get_num_threads() == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has affinities")
def test_counts_the_cores_of_this_process_not_of_the_machine():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert startup.available_cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert startup.available_cores() == len(before)


FAULTS = """
import resource, torch
from langevin.process import prepare_process
torch.set_num_threads(1)
prepare_process()
for _ in range(12): torch.zeros(16_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10): torch.zeros(16_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in os.confstr_names, reason="only glibc has a mallopt of this meaning")
def test_large_tensors_reuse_their_pages():
    """Ten tensors of 64 MB are thousands of page faults without start-up care, hardly any with
    it."""
    faults = {}
    for flag in "01":
        environment = os.environ | {"LANGEVIN_STARTUP": flag}
        faults[flag] = int(subprocess.check_output([sys.executable, "-c", FAULTS], env=environment))
    assert faults["1"] * 10 < faults["0"]


OPTIMISER = """
import sys, torch
from langevin import SGLD
from langevin.process import prepare_process
prepare_process()
weight = torch.nn.Parameter(torch.ones(3))
sampler = SGLD([weight], lr=0.1, num_data=10, seed=0)
weight.sum().backward()
sampler.step()
sampler.zero_grad()
sampler.load_state_dict(sampler.state_dict())
print("torch._dynamo" in sys.modules, weight.tolist())
"""


def test_no_optimiser_imports_the_compiler():
    told = {}
    for flag in "01":
        environment = os.environ | {"LANGEVIN_STARTUP": flag}
        told[flag] = subprocess.check_output([sys.executable, "-c", OPTIMISER], env=environment, text=True)
    assert told["0"].startswith("True ")
    assert told["1"] == told["0"].replace("True", "False")


def test_same_bits_with_and_without(langevin, text_file, tmp_path):
    """The command, twice: every stored sample is the same file."""
    digests = []
    for flag in "01":
        out = tmp_path / flag
        settings = [a for override in [*TINY, f"corpus={text_file}"] for a in ("--set", override)]
        done = langevin("train", "text", "--out", out, "--quiet", *settings, LANGEVIN_STARTUP=flag)
        assert done.returncode == 0, done.stderr
        samples = sorted(Path(out).glob("samples/*.safetensors"))
        digests.append([(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in samples])
    assert len(digests[0]) >= 2
    assert digests[0] == digests[1]


def test_the_command_line_prepares_its_process(monkeypatch, cli):
    called = []
    monkeypatch.setattr("langevin.process.prepare_process", lambda: called.append(True))
    assert cli("recipes")[0] == 0
    assert called == [True]


def test_importing_does_not():
    """A library must not change its host; and numba is loaded on first need only."""
    code = """
import ctypes
class Refusing(ctypes.CDLL):
    def __getattr__(self, name):
        assert name != "mallopt", "import langevin called mallopt"
        return super().__getattr__(name)
ctypes.CDLL = Refusing
import sys, langevin
assert "langevin.process" not in sys.modules
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_example_of_the_page_runs(capsys):
    page = (Path(__file__).parents[1] / "docs" / "speed.md").read_text()
    exec(page.split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out.startswith("memory: ")


def test_memory_is_that_of_the_container(monkeypatch, tmp_path):
    whole = startup.physical_memory()
    (tmp_path / "limit").write_text("123456\n")
    (tmp_path / "none").write_text("max\n")
    limits = [tmp_path / name for name in ("none", "limit", "missing")]
    monkeypatch.setattr(startup, "MEMORY_LIMITS", limits)
    assert startup.physical_memory() == 123456 < whole

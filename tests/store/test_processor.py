import logging
import math

import pytest
import torch

from langevin.errors import LangevinError
from langevin.store import processor
from langevin.training import session as workflow
from langevin.training.chains import start_chains
from langevin.training.distil import Teaching, start_student
from langevin.training.session import Selection


def test_a_product_is_timed_on_one_thread_and_threads_come_back(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    processor.product_seconds.cache_clear()
    assert 1e-6 < processor.product_seconds("float32") < 1
    assert asked == [1, torch.get_num_threads()]
    processor.product_seconds.cache_clear()  # on how many threads it was, nobody knows


def test_only_what_clearly_takes_longer_is_slow(monkeypatch):
    for half, slow in ((0.5, False), (1.2, False), (80.0, True)):
        seconds = {"float32": 1.0, "bfloat16": half}
        monkeypatch.setattr(processor, "product_seconds", seconds.__getitem__)
        assert processor.bfloat16_is_slow() is slow
        assert processor.slowness("float32") == 1 / processor.REFERENCE


@pytest.fixture
def announced(monkeypatch):
    """A processor that announces tiles, and a trial of our own."""
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    for known in (processor.bfloat16_works, processor.product_seconds):
        known.cache_clear()
    yield lambda trial: monkeypatch.setattr(processor, "TRIAL", trial)
    for known in (processor.bfloat16_works, processor.product_seconds):
        known.cache_clear()


@pytest.mark.parametrize("trial", ["import os, signal; os.kill(os.getpid(), signal.SIGILL)", "raise RuntimeError"])
def test_tiles_that_are_announced_and_fail_are_refused(trial, announced, tiny, finished_run, tmp_path):
    announced(trial)
    assert processor.product_seconds("bfloat16") == math.inf
    assert processor.bfloat16_is_slow()
    with pytest.raises(LangevinError, match=r"got one that announces AMX .* set precision=float32, or .* ONEDNN"):
        workflow.start(tiny("precision=bfloat16"), tmp_path / "half")
    assert not (tmp_path / "half").exists()
    with pytest.raises(LangevinError, match="got one that announces AMX"):
        start_student(finished_run, tmp_path / "student", Selection(), Teaching(), overrides=["precision=bfloat16"])
    assert not (tmp_path / "student").exists()
    workflow.start(tiny(), tmp_path / "single")


def test_tiles_that_work_are_used(announced):
    announced("pass")
    assert processor.bfloat16_works()
    assert processor.product_seconds("bfloat16") < 1


def test_a_slow_precision_is_told_and_taken(tiny, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(workflow, "bfloat16_is_slow", lambda: True)
    with caplog.at_level(logging.WARNING, "langevin"):
        workflow.start(tiny(), tmp_path / "plain")
        assert not caplog.messages
        workflow.start(tiny("precision=bfloat16"), tmp_path / "half")
        start_chains(tiny("precision=bfloat16"), tmp_path / "chains", 2)
        workflow.resume(tmp_path / "half")
    assert ["set precision=float32" in said for said in caplog.messages] == [True] * 3

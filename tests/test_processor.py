import logging

import torch

from langevin import processor, workflow
from langevin.chains import start_chains


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


def test_a_slow_precision_is_told_and_taken(tiny, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(workflow, "bfloat16_is_slow", lambda: True)
    with caplog.at_level(logging.WARNING, "langevin"):
        workflow.start(tiny(), tmp_path / "plain")
        assert not caplog.messages
        workflow.start(tiny("precision=bfloat16"), tmp_path / "half")
        start_chains(tiny("precision=bfloat16"), tmp_path / "chains", 2)
        workflow.resume(tmp_path / "half")
    assert ["set precision=float32" in said for said in caplog.messages] == [True] * 3

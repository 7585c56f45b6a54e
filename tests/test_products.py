import logging

import torch

from langevin import products, workflow


def test_a_product_is_timed_on_one_thread_and_threads_come_back(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    products.product_seconds.cache_clear()
    assert 1e-6 < products.product_seconds("float32") < 1
    assert asked == [1, torch.get_num_threads()]


def test_bfloat16_pays_where_it_is_faster(monkeypatch):
    for seconds, pays in (({"float32": 1.0, "bfloat16": 0.5}, True), ({"float32": 1.0, "bfloat16": 80.0}, False)):
        monkeypatch.setattr(products, "product_seconds", seconds.__getitem__)
        assert products.bfloat16_pays() is pays
        assert products.slowness("float32") == 1 / products.REFERENCE


def test_a_slow_precision_is_told_and_taken(tiny, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(workflow, "bfloat16_pays", lambda: False)
    with caplog.at_level(logging.WARNING, "langevin"):
        workflow.start(tiny(), tmp_path / "plain")
        assert not caplog.messages
        workflow.start(tiny("precision=bfloat16"), tmp_path / "half")
    assert "set precision=float32" in caplog.messages[0]

import platform

from langevin.store.processor import processor_name


def test_the_processor_has_a_name_where_the_system_tells_none(monkeypatch):
    assert processor_name()
    monkeypatch.setattr("langevin.store.processor.Path.read_text", lambda path: "flags : none")
    assert processor_name() == platform.machine()

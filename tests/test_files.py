"""Files are whole or absent, and on the disk; nothing waits under a name that we write to; names
are not trusted."""

import os
import re
import stat

import pytest

from langevin.errors import LangevinError
from langevin.files import inside, listed_name, write_atomic

NAME = re.compile(r"\d{9}\.safetensors")


def test_a_link_that_waits_under_the_temporary_name_is_not_followed(tmp_path, monkeypatch):
    precious = tmp_path / "precious.txt"
    precious.write_text("years of work")
    (tmp_path / f".x.json.{os.getpid()}.tmp").symlink_to(precious)  # what the name once was
    monkeypatch.setattr("langevin.files.secrets.token_hex", lambda size: "00" * size)
    # and if somebody guessed what it is now
    (tmp_path / ".y.json.00000000.tmp").symlink_to(precious)
    write_atomic(tmp_path / "x.json", b"{}")
    with pytest.raises(LangevinError, match="File exists"):
        write_atomic(tmp_path / "y.json", b"{}")
    assert precious.read_text() == "years of work"
    assert (tmp_path / "x.json").read_bytes() == b"{}"
    assert (tmp_path / ".y.json.00000000.tmp").is_symlink()


def test_a_link_at_the_target_is_replaced_and_not_followed(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("years of work")
    (tmp_path / "x.json").symlink_to(precious)
    write_atomic(tmp_path / "x.json", b"{}")
    assert precious.read_text() == "years of work"
    assert not (tmp_path / "x.json").is_symlink()


def test_file_and_folders_are_flushed(tmp_path, monkeypatch):
    flushed, flush = [], os.fsync

    def note(descriptor):
        flushed.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        flush(descriptor)

    monkeypatch.setattr("langevin.files.os.fsync", note)
    write_atomic(tmp_path / "x.json", b"{}")
    assert flushed == ["file", "folder"]
    flushed.clear()
    write_atomic(tmp_path / "a" / "b" / "x.json", b"{}")
    assert flushed == ["folder", "folder", "file", "folder"]


def test_whatever_stops_a_write_leaves_no_temporary_file(tmp_path, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("langevin.files.os.fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "x.json", b"{}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../000000001.safetensors", "/tmp/x", "..", "", "a/b", 7, None, ["x"],
                                  "000000001.safetensors\n", "notes.txt"])
def test_names_that_are_none_of_ours_are_refused(tmp_path, name):
    with pytest.raises(LangevinError, match=r"manifest\.json, got"):
        listed_name(name, NAME, tmp_path / "manifest.json")
    assert listed_name("000000001.safetensors", NAME, tmp_path) == "000000001.safetensors"


def test_links_may_not_lead_out_of_the_folder(tmp_path):
    folder = tmp_path / "run"
    (folder / "real").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (folder / "inner").symlink_to(folder / "real")
    (folder / "outer").symlink_to(tmp_path / "other")
    (folder / "circle").symlink_to(folder / "circle")
    assert inside(folder, "inner") == folder / "inner"
    assert inside(folder, "not-there") == folder / "not-there"
    for name in ("outer", "outer/x.json", "circle"):
        with pytest.raises(LangevinError, match="leads out of it"):
            inside(folder, name)

"""The list of samples grows at its end; what was cut off there is mended, nothing else passes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from torch import nn

from langevin import LangevinError, SampleStore
from langevin.store.listing import MANIFEST, OLD_MANIFEST, Listing
from langevin.store.manifest import SampleRecord

FIXTURES = Path(__file__).parents[1] / "fixtures"


def record(step, **about):
    name = f"{step:09d}.safetensors"
    return SampleRecord(file=name, step=step, sha256=f"{step:064x}", about=about)


def filled(folder, steps):
    listing = Listing(folder)
    for step in steps:
        listing.append(record(step, epoch=step / 7, word="é", none=None))
    return listing


def test_what_was_appended_comes_back(tmp_path):
    listing = filled(tmp_path, (3, 5, 9))
    assert [r.step for r in Listing(tmp_path).records] == [3, 5, 9]
    assert Listing(tmp_path).records == listing.records


def test_an_append_writes_one_line_and_no_more(tmp_path, monkeypatch):
    """2,000 samples cost as many lines, in the file that was there: linear, not quadratic."""
    path = tmp_path / MANIFEST
    written = []
    plain = os.write
    monkeypatch.setattr(os, "write", lambda fd, raw: written.append(len(raw)) or plain(fd, raw))
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    listing = filled(tmp_path, [1])
    number = path.stat().st_ino
    for step in range(2, 2001):
        listing.append(record(step))
    assert path.stat().st_ino == number
    assert len(written) == 1999
    assert max(written) < 200
    assert len(Listing(tmp_path).records) == 2000


@pytest.mark.parametrize("cut", [1, 2, 40, 150])
def test_a_line_that_was_cut_off_does_not_count_and_goes_with_the_next(tmp_path, cut):
    filled(tmp_path, (3, 5, 9))
    path = tmp_path / MANIFEST
    path.write_bytes(path.read_bytes()[:-cut])
    listing = Listing(tmp_path)
    assert [r.step for r in listing.records] == [3, 5]
    assert Listing(tmp_path).size == path.stat().st_size  # who only reads mends nothing
    listing.append(record(7))
    assert [r.step for r in Listing(tmp_path).records] == [3, 5, 7]


def test_every_other_change_is_refused(tmp_path):
    filled(tmp_path, (3, 5))
    path = tmp_path / MANIFEST
    raw, records = path.read_bytes(), Listing(tmp_path).records
    passed = 0
    for bit in range(0, 8 * (len(raw) - 1), 3):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            found = Listing(tmp_path).records
        except LangevinError:
            continue
        passed += 1
        assert found == records
    assert passed < len(raw) // 3  # white space alone


def test_a_disk_that_is_full_leaves_the_list_as_it_was(tmp_path, monkeypatch):
    listing = filled(tmp_path, (3, 5))
    before = (tmp_path / MANIFEST).read_bytes()
    plain = os.write

    def half(descriptor, raw):
        if len(raw) < 40:
            raise OSError(28, "No space left on device")
        return plain(descriptor, raw[:30])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(LangevinError, match="No space left"):
            listing.append(record(9))
    assert (tmp_path / MANIFEST).read_bytes() == before
    listing.append(record(9))
    assert [r.step for r in Listing(tmp_path).records] == [3, 5, 9]


def test_of_two_that_append_the_one_behind_is_told(tmp_path):
    older, newer = filled(tmp_path, (3, 5)), Listing(tmp_path)
    newer.append(record(9))
    with pytest.raises(LangevinError, match="written by somebody else"):
        older.append(record(8))
    assert [r.step for r in Listing(tmp_path).records] == [3, 5, 9]


def test_a_folder_that_is_gone_is_not_made_anew(tmp_path):
    listing = filled(tmp_path / "s", (3, 5))
    (tmp_path / "s").rename(tmp_path / "t")
    with pytest.raises(LangevinError, match="moved"):
        listing.append(record(9))
    assert not (tmp_path / "s").exists()


def test_a_link_is_not_written_through(tmp_path):
    listing = filled(tmp_path / "s", (3, 5))
    (tmp_path / "s" / MANIFEST).rename(tmp_path / "precious")
    (tmp_path / "s" / MANIFEST).symlink_to(tmp_path / "precious")
    before = (tmp_path / "precious").read_bytes()
    with pytest.raises(LangevinError):
        listing.append(record(9))
    assert (tmp_path / "precious").read_bytes() == before
    with pytest.raises(LangevinError, match="leads out of it"):
        Listing(tmp_path / "s")


def test_the_list_of_an_old_run_is_read_and_goes_on_in_the_new_form(tmp_path):
    shutil.copytree(FIXTURES / "bytes" / "samples", tmp_path / "s")
    store = SampleStore(tmp_path / "s")
    assert [s.step for s in store.read()] == [102, 136, 170, 204]
    store.append(nn.Linear(2, 2), 300)
    assert not (tmp_path / "s" / OLD_MANIFEST).exists()
    assert [s.step for s in SampleStore(tmp_path / "s").read()] == [102, 136, 170, 204, 300]


@pytest.mark.parametrize(("text", "said"), [
    ('{"format": 3}\n', "format 2 or older in .*, got format 3"),
    ('{"format": true}\n', "got format"),
    ('{"step": 1}\n', "got format None"), ("", "expected JSON"), ("half", "expected JSON"),
    ('{"format": 2}\n{"file": "x"}\n', "expected step in line 2 of"),
    ('{"format": 2}\n\n', "line 2 of"), ('{"format": 2}\n' + "[" * 9999 + "\n", "line 2 of"),
])
def test_what_is_no_list_is_refused_by_line(tmp_path, text, said):
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(LangevinError, match=said):
        Listing(tmp_path)


def test_a_sample_that_is_listed_twice_is_refused(tmp_path):
    filled(tmp_path, (3, 5))
    lines = (tmp_path / MANIFEST).read_text().splitlines(keepends=True)
    (tmp_path / MANIFEST).write_text("".join([*lines, lines[-1]]))
    with pytest.raises(LangevinError, match="each sample once"):
        SampleStore(tmp_path)
    assert json.loads(lines[0]) == {"format": 2}

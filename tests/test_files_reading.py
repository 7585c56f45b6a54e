"""Files are read whole or refused in words."""

import os

import pytest

from langevin import LangevinError
from langevin.files import decode_utf8, expect_file, read_bytes, read_utf8


def test_a_file_is_read_with_or_without_a_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfsnow")
    assert read_bytes(path) == b"\xef\xbb\xbfsnow"
    assert read_utf8(path) == "snow"
    assert decode_utf8(read_bytes(path), "it", encoding="utf-8") == "\ufeffsnow"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "expected a list at .*absent, found nothing; write one"),
        ("a.txt/inside", "expected a list at .*inside, found nothing; write one"),
        ("", "expected a list at .*, found a folder; write one"),
        ("x" * 300, "expected a list, got a name that is too long .*; write one"),
        ("a\0b", "expected a list, got a name with a zero byte .*; write one"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path, name, message):
    (tmp_path / "a.txt").write_text("snow")
    with pytest.raises(LangevinError, match=message):
        read_utf8(tmp_path / name, what="a list", instead="write one")


def test_a_limit_is_kept(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(LangevinError, match=r"expected at most 4 bytes in .*a\.txt, it has more"):
        read_bytes(path, 4)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "a.txt"
    path.touch(0)
    with pytest.raises(LangevinError, match="Permission denied; check its permissions"):
        read_bytes(path)


def test_other_encodings_are_refused_with_the_place(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("caf\xe9".encode("latin-1"))
    with pytest.raises(LangevinError, match=r"UTF-8 in .*a.txt, got the byte 0xe9 at 3; convert"):
        read_utf8(path)


def test_a_path_for_another_reader(tmp_path):
    (tmp_path / "a.txt").touch()
    expect_file(tmp_path / "a.txt", "a list at", "write one")
    os.mkfifo(tmp_path / "pipe")
    problems = {"": "a folder", "b.txt": "not there", "pipe": "something that is no regular file"}
    problems |= {"a\0b": "not there", "x" * 300: "not to be had"}
    for name, problem in problems.items():
        with pytest.raises(LangevinError, match=f"a list at .*, which is {problem}.*; write one"):
            expect_file(tmp_path / name, "a list at", "write one")

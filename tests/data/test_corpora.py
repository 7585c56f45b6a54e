import os
import socket

import pytest

from langevin.data.corpora import read_corpus
from langevin.data.vocabulary import Vocabulary
from langevin.errors import LangevinError


def test_war_and_peace_is_the_paper_s():
    text = read_corpus("war_and_peace")["text"]
    raw = text.read()
    assert len(raw) == 3_258_246
    assert len(Vocabulary.of_seen_bytes(text)) == 87
    assert len(raw) // (100 * 100) == 260 + 32 + 33


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "empty"), (b"  \n ", "empty"), (b"ELF\0\1", "binary")],
    ids=["empty", "blank", "binary"],
)
def test_useless_files_are_refused(tmp_path, content, message):
    path = tmp_path / "f.txt"
    path.write_bytes(content)
    with pytest.raises(LangevinError, match=message):
        read_corpus(str(path))


def test_missing_file_and_folder_are_refused(tmp_path):
    with pytest.raises(LangevinError, match="found nothing"):
        read_corpus(str(tmp_path / "absent.txt"))
    with pytest.raises(LangevinError, match="found a folder"):
        read_corpus(str(tmp_path))


def test_only_regular_files_are_read(tmp_path, monkeypatch):
    """A pipe is refused at once; to open it would wait for a writer."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name in ("pipe", "socket", "/dev/zero"):
            with pytest.raises(LangevinError, match=r"no regular file .*; pass"):
                read_corpus(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [("x" * 300, "a name that is too long"), ("a\0b", "a name with a zero byte in it")],
)
def test_names_that_no_file_can_have(name, message):
    with pytest.raises(LangevinError, match=message):
        read_corpus(name)

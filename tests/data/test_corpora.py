import pytest

from langevin.data.corpora import read_corpus
from langevin.data.vocabulary import Vocabulary
from langevin.errors import LangevinError


def test_war_and_peace_is_the_paper_s():
    raw = read_corpus("war_and_peace")["text"]
    assert len(raw) == 3_258_246
    assert len(Vocabulary.build(raw, "byte")) == 87
    assert len(raw) // (100 * 100) == 260 + 32 + 33


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "empty"), (b"  \n ", "empty"), (b"ELF\0\1", "binary")],
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

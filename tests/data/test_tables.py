"""Files of texts in all their formats, read one way whoever asks."""

import csv
import json
import os
import tracemalloc

import pytest

from langevin import LangevinError
from langevin.data import tables, text
from langevin.data.tables import join_blocks, read_blocks, read_rows
from tests.data.test_prediction_files import write
from tests.data.test_sentences import PAIRS
from tests.data.test_sentences import write as write_pairs


def test_lines_are_texts_or_labels_and_texts(tmp_path):
    source = write(tmp_path / "in.txt", "place where is Rome ?\n\nperson\n")
    assert read_rows(source, "text", None).texts == ["place where is Rome ?", "", "person"]
    labelled = read_rows(source, "text", None, labelled=True)
    assert (labelled.texts, labelled.labels) == (["where is Rome ?", ""], ["place", "person"])
    assert not labelled.free


def test_lines_of_one_column_stay_apart(tmp_path):
    (tmp_path / "q.tsv").write_text('text\n"one\ntwo"\nthree\n')
    assert read_rows(tmp_path / "q.tsv").texts == ['"one', 'two"', "three"]


def test_texts_alone(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("Who wrote this ?\n\nWhere ?\n")
    assert read_rows(path).texts == ["Who wrote this ?", "", "Where ?"]
    assert read_rows(write_pairs(tmp_path / "q.csv")).texts == [text for text, _ in PAIRS]


def test_blank_lines_are_empty_texts_where_there_is_one_column(tmp_path):
    (tmp_path / "one.csv").write_text("text\na\n\nb\n")
    (tmp_path / "two.csv").write_text("\ntext,id\na,1\n\nb\n")
    assert read_rows(tmp_path / "one.csv").texts == ["a", "", "b"]
    assert read_rows(tmp_path / "two.csv").texts == ["a", "b"]


FILES = {
    "q.csv": 'number,text,label\n1,"a, b\nc",x\n2,,y\n3,"d",x\n',
    "q.tsv": 'number\ttext\tlabel\n1\ta "b\tx\n2\t\ty\n3\td\tx\n',
    "quoted.tsv": 'number\ttext\n1\t"a ""b"\n2\t"c\nd"\n3\te\n',
    "q.jsonl": '{"text": "a", "n": 1}\n\n{"text": "é"}\r\n{"text": "d"}',
    "list.json": '[{"text": "a"},\n{"text": "b"}, {"text": "c"}]',
    "old.txt": "one\rtwo\r\rfour",
    "q.txt": "one\r\ntwo\n\nfour\u2028five\n",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("name", FILES)
def test_blocks_are_the_file_in_pieces(tmp_path, monkeypatch, name, encoding):
    """Whatever the sizes of chunks and blocks, the rows are the same."""
    path = tmp_path / name
    path.write_bytes(FILES[name].replace("\u2028", "…").encode(encoding))
    whole = read_rows(path, usual_label="label")
    monkeypatch.setattr(text, "CHUNK", 3)
    monkeypatch.setattr(tables, "BLOCK", 2)
    blocks = list(read_blocks(path, usual_label="label"))
    assert [len(block.texts) for block in blocks] == [2] * (len(whole.texts) // 2) + [1] * (
        len(whole.texts) % 2
    )
    assert join_blocks(iter(blocks)) == whole


@pytest.mark.parametrize(
    ("name", "head", "row"),
    [
        ("q.csv", "text,label\n", '"the snow, deep",{}\n'),
        ("q.tsv", "text\tlabel\n", "the snow\t{}\n"),
        ("q.jsonl", "", '{{"text": "the snow", "label": {}}}\n'),
        ("q.txt", "", "the snow {}\n"),
    ],
)
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch, name, head, row):
    monkeypatch.setattr(text, "CHUNK", 4096)

    def peak(rows):
        path = tmp_path / name
        path.write_text(head + "".join(row.format(number) for number in range(rows)))
        tracemalloc.start()
        count = sum(len(block.texts) for block in read_blocks(path))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == rows
        return most

    peak(10)  # what is imported or cached once
    assert peak(20_000) < 1.3 * peak(4_000)


def test_what_is_wrong_with_a_row_is_said_when_it_is_reached(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK", 2)
    rows = [{"text": "a"}, {"text": "b"}, {"text": "c"}, {"words": "d"}]
    path = write(tmp_path / "q.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    blocks = read_blocks(path)
    assert next(blocks).texts == ["a", "b"]
    with pytest.raises(LangevinError, match="expected a column 'text'"):
        next(blocks)


def test_the_limit_of_cells_is_everybody_s_own(tmp_path):
    """Cells may be long, and other readers of the process keep their own limit meanwhile."""
    path = write(tmp_path / "q.csv", "text\n" + "x" * 200_000 + "\n" + "y\n" * 1000)
    blocks, before = read_blocks(path), csv.field_size_limit()
    assert len(next(blocks).texts[0]) == 200_000
    assert csv.field_size_limit() == before
    assert next(blocks).texts == ["y"]


@pytest.mark.parametrize("name", ["pipe.csv", "x" * 300 + ".csv", "a\0b.csv"])
def test_what_is_no_file_of_rows_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(LangevinError, match="expected a file of labelled sentences"):
        read_rows(tmp_path / name)

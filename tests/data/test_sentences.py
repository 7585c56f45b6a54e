"""Files of labelled sentences in all formats and encodings; what cannot be used is refused."""

import csv
import json
import logging

import pytest

from langevin.data.catalogue import DATASETS
from langevin.data.sentences import KNOWN, read_corpus_of_sentences, read_sentences
from langevin.data.tables import read_rows
from langevin.errors import LangevinError

PAIRS = [
    ("Who wrote this ?", "person"),
    ('Where is Rome, "the city"?', "place"),
    ("", "person"),
    ("Né où ?", "place"),
]


def write(path, encoding="utf-8"):
    if path.suffix == ".csv":
        quoted = ((text.replace('"', '""'), label) for text, label in PAIRS)
        content = "id,label,text\n" + "".join(f'7,{label},"{text}"\n' for text, label in quoted)
    elif path.suffix == ".tsv":
        content = "label\ttext\n" + "".join(f"{label}\t{text}\n" for text, label in PAIRS)
    elif path.suffix == ".jsonl":
        content = "".join(json.dumps({"text": t or None, "label": n}) + "\n" for t, n in PAIRS)
    else:
        content = "".join(f"{label} {text}\n" for text, label in PAIRS) + "\n"
    path.write_bytes(content.encode(encoding))
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "txt"])
def test_every_format_gives_the_same_sentences(tmp_path, ending):
    read = read_sentences(write(tmp_path / f"q.{ending}"))
    assert list(zip(read.texts, read.labels, strict=True)) == PAIRS
    assert read.names == ("person", "place")
    assert read.counts == {"person": 2, "place": 2}
    assert read.tokens == ("space" if ending == "txt" else "words")


@pytest.mark.parametrize(
    ("ending", "settings"), [("csv", {"delimiter": ";"}), ("tsv", {"delimiter": "\t"})]
)
def test_as_spreadsheets_write_them(tmp_path, ending, settings):
    pairs = [*PAIRS, ('one line;\nand another, "quoted"', "place")]
    with (tmp_path / f"q.{ending}").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, **settings).writerows([("text", " label"), *pairs])
    read = read_sentences(tmp_path / f"q.{ending}")
    assert list(zip(read.texts, read.labels, strict=True)) == pairs


@pytest.mark.parametrize(
    "rows",
    [
        ["label\ttext", 'A\t"I am here .', "B\tfine", 'C\the said ."', "A\tok"],
        ["text\tlabel", '"I am here .\tA', "fine\tB", '"he said .\tC', "ok\tA"],
    ],
)
def test_a_quotation_over_several_lines_of_a_tsv_is_not_one_cell(tmp_path, rows):
    (tmp_path / "q.tsv").write_text("\n".join(rows))
    assert read_sentences(tmp_path / "q.tsv").labels == ("A", "B", "C", "A")


def test_quotes_of_a_tsv_that_are_none_around_cells_are_signs_of_the_text(tmp_path):
    (tmp_path / "q.tsv").write_text('text\tlabel\n"Ah" he said\tperson\n"half a quote\tplace\n')
    assert read_sentences(tmp_path / "q.tsv").texts == ('"Ah" he said', '"half a quote')


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_other_encodings_are_read_and_said(tmp_path, encoding, caplog):
    with caplog.at_level(logging.INFO, "langevin"):
        read = read_sentences(write(tmp_path / "q.csv", encoding))
    assert list(zip(read.texts, read.labels, strict=True)) == PAIRS
    assert read.encoding == {"latin-1": "cp1252"}.get(encoding, encoding)
    assert ("read as" in caplog.text) == (encoding != "utf-8-sig")


def test_whole_numbers_are_ordered_by_value(tmp_path):
    path = tmp_path / "n.txt"
    path.write_text("10 a\n9 b\n-1 c\n")
    assert read_sentences(path).names == ("-1", "9", "10")
    path = tmp_path / "n.jsonl"
    path.write_text('{"text": "a", "label": 10}\n{"text": "b", "label": 9}\n')
    assert read_sentences(path).names == ("9", "10")


def test_columns_can_be_named_and_missing_ones_are_refused_with_those_that_are_there(tmp_path):
    path = write(tmp_path / "q.csv")
    assert read_sentences(path, "label", "id").texts[0] == "person"
    with pytest.raises(LangevinError, match=r"column 'kind'.*'id', 'label', 'text'.*label_column"):
        read_sentences(path, label_column="kind")
    with pytest.raises(LangevinError, match="column 'body'"):
        read_rows(path, "body")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"text,label\n", "found none"),
        ("a.txt", b"\n\n", "found none"),
        ("a.csv", b"text,label\nhello,\n", "row 1 has none"),
        (
            "a.csv",
            b"label,text\npos,fine\n\npos,great movie, really\n",
            "line 4 of .* more cells .* in quotes",
        ),
        ("a.tsv", b"label\ttext\npos\tgreat\tmovie\n", "line 2 of .* more cells .* the tabs out"),
        (
            "a.csv",
            b'label,text\npos,fine\nneg,"dull\npos,good\n',
            "not valid CSV after line 2: .* mend its quotes",
        ),
        ("a.csv", b'label,text\nneg,"dull" film\n', "not valid CSV after line 1"),
        ("a.jsonl", b'{"text": \n', "not valid JSON"),
        ("a.jsonl", b"3\n", "expected an object"),
        ("a.txt", b"0 \x00\x01\x02 binary and some more letters to follow here\n", "zero bytes"),
    ],
)
def test_files_that_cannot_be_used_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LangevinError, match=message):
        read_sentences(tmp_path / name)


def test_missing_file_says_what_is_possible(tmp_path):
    with pytest.raises(LangevinError, match=r"found nothing.*CSV.*trec"):
        read_sentences(tmp_path / "no.csv")


def test_a_csv_cell_may_hold_a_very_long_text(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text('text,label\n"' + "word " * 100_000 + '",a\nshort,b\n')
    assert len(read_sentences(path).texts[0].split()) == 100_000


@pytest.mark.data
def test_the_five_sets_are_the_papers(real_data):
    sizes = {n: [len(part) for part in read_corpus_of_sentences(n).values()] for n in KNOWN}
    assert sizes == {
        "mr": [10662],
        "cr": [3775],
        "subj": [10000],
        "mpqa": [10606],
        "trec": [5452, 500],
    }
    empty = {
        n: sum(not text for part in read_corpus_of_sentences(n).values() for text in part.texts)
        for n in KNOWN
    }
    assert empty == {"mr": 0, "cr": 4, "subj": 0, "mpqa": 3, "trec": 0}
    assert all(DATASETS[name].state()["state"] == "found" for name in KNOWN)


def test_a_few_broken_bytes_do_not_change_the_letters_of_the_rest(tmp_path, caplog):
    path = tmp_path / "q.txt"
    path.write_bytes("1 café\n".encode() * 50 + b"0 bad \xff byte\n")
    with caplog.at_level(logging.INFO, logger="langevin"):
        read = read_sentences(path)
    assert read.texts[0] == "café"
    assert read.texts[-1] == "bad \ufffd byte"
    assert "the first in line 51" in caplog.text
    caplog.clear()
    path.write_bytes("1 café\n0 thé\n".encode("latin-1"))
    with caplog.at_level(logging.INFO, logger="langevin"):
        assert read_sentences(path).texts == ("café", "thé")
    assert "a guess" in caplog.text


def test_lines_may_end_with_carriage_returns(tmp_path):
    (tmp_path / "mac.txt").write_bytes(b"pos good\rneg bad\r")
    assert read_sentences(tmp_path / "mac.txt").texts == ("good", "bad")


def test_columns_without_a_name_may_repeat(tmp_path):
    (tmp_path / "a.csv").write_text("text,label,,\na,x,,\n")
    assert read_sentences(tmp_path / "a.csv").labels == ("x",)

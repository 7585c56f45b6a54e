"""Files of texts keep their columns; nothing is replaced unasked; what is wrong is said."""

import csv
import json

import pytest

from langevin import LangevinError
from langevin.data.prediction_files import COLUMNS, answer_file, refuse_answers_target
from langevin.data.tables import read_rows

ANSWER = dict(zip(COLUMNS, ("place", 0.5, 0.123457, 1.0, 0.0, "accept", ""), strict=True))


def write(path, content):
    path.write_text(content)
    return path


def test_columns_are_kept_and_answers_stand_beside_them(tmp_path):
    source = write(tmp_path / "in.csv", 'id,text,kind\n7,"where, is\nRome ?",place\n8,,\n')
    rows = read_rows(source, "text", "kind")
    assert rows.texts == ["where, is\nRome ?", ""]
    assert rows.labels == ["place", ""]
    assert read_rows(source, "text", None, usual_label="kind").labels == rows.labels
    assert read_rows(source, "text", None, usual_label="label").labels is None
    for name in ("out.csv", "out.jsonl"):
        with answer_file(tmp_path / name) as answers:
            answers.write([rows.columns[0] | ANSWER])
            answers.write([rows.columns[1] | ANSWER | {"note": "empty", "decision": ""}])
    with (tmp_path / "out.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first == {
        "id": "7",
        "text": "where, is\nRome ?",
        "kind": "place",
        "predicted": "place",
        "probability": "0.5",
        "std": "0.123457",
        "entropy": "1.0",
        "mutual_information": "0.0",
        "decision": "accept",
        "note": "",
    }
    assert (second["decision"], second["note"]) == ("", "empty")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines[0]["std"] == 0.123457
    assert lines[1]["note"] == "empty"


def test_tsv_cells_hold_no_tabs(tmp_path):
    source = write(
        tmp_path / "in.jsonl",
        '{"text": "where\\tis\\nRome", "n": null}\n{"text": "b", "more": 3}\n',
    )
    rows = read_rows(source, "text", None)
    with answer_file(tmp_path / "out.tsv", ["text", "n", "more", *COLUMNS]) as answers:
        answers.write([rows.columns[0] | ANSWER])
        answers.write([rows.columns[1] | ANSWER | {"note": "cut"}])
    lines = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    assert lines[0][:2] == ["text", "n"]
    assert lines[1][0] == "where is Rome"
    assert len({len(line) for line in lines}) == 1
    assert "cut" in lines[2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.csv", "id,words\n1,a\n", "expected a column 'text' .* the columns are 'id', 'words'"),
        ("in.csv", "text\n", "found none"),
        ("in.txt", "", "found none"),
        ("in.csv", "text,id\na,1,2\n", "line 2 of .* has more cells"),
        ("in.csv", "text,decision\na,accept\n", "has a column 'decision' already"),
        ("in.jsonl", "{", "not valid JSON"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    with pytest.raises(LangevinError, match=message):
        read_rows(write(tmp_path / name, content), "text", None, reserved=COLUMNS)


def test_targets_are_checked_before_the_work(tmp_path):
    refuse_answers_target(tmp_path / "new.csv", overwrite=False)
    old = write(tmp_path / "old.csv", "precious")
    with pytest.raises(LangevinError, match=r"exists; choose another --out or allow --overwrite"):
        refuse_answers_target(old, overwrite=False)
    refuse_answers_target(old, overwrite=True)
    with pytest.raises(LangevinError, match=r"expected --out to end in \.csv, \.tsv, \.jsonl"):
        refuse_answers_target(tmp_path / "new.xlsx", overwrite=False)


def test_a_carriage_return_stays_in_its_cell(tmp_path):
    source = write(tmp_path / "in.jsonl", '{"text": "bad\\rfilm", "id": 1}\n')
    rows = read_rows(source, "text", None, reserved=COLUMNS)
    with answer_file(tmp_path / "out.csv") as answers:
        answers.write([rows.columns[0] | ANSWER])
    with (tmp_path / "out.csv").open(newline="") as file:
        (read,) = csv.DictReader(file)
    assert (read["text"], read["id"], read["predicted"]) == ("bad\rfilm", "1", "place")


def test_columns_of_answers_matter_only_where_they_are_written(tmp_path):
    source = write(tmp_path / "in.csv", "text,note\na,b\n")
    assert read_rows(source, "text", None).texts == ["a"]

"""Many texts are answered block by block, as if they had come at once; what is told counts all."""

import csv
import json
import shutil
import tracemalloc

import pytest

from langevin.predict.answers import Tally, given_texts, predict_blocks, tell
from langevin.predict.classification import ClassificationPosterior
from langevin.predict.load import open_as
from langevin.data.tables import Rows, read_blocks
from tests.sentences import questions, write_questions


@pytest.fixture
def folder(classifier_run, tmp_path):
    """A copy: commands keep a rule there."""
    return shutil.copytree(classifier_run, tmp_path / "run")


@pytest.fixture
def run(folder):
    return open_as(ClassificationPosterior, folder)


def test_blocks_are_answered_as_if_they_had_come_at_once(run, tmp_path):
    source = write_questions(tmp_path / "in.csv", questions(2500, seed=5))
    tally = Tally(run.labels)
    parts = list(predict_blocks(run, read_blocks(source, usual_label="label"), None, tally))
    assert [len(rows.texts) for rows, _ in parts] == [1000, 1000, 500]
    found = [one for _, part in parts for one in part]
    whole = run.predict([text for text, _ in questions(2500, seed=5)])
    assert [one.label for one in found] == [one.label for one in whole]
    assert [one.entropy for one in found] == pytest.approx([one.entropy for one in whole], abs=1e-5)
    told = tell(run, tally, None, None)
    wrong = sum(one.label != label for one, (_, label) in zip(found, questions(2500, 5), strict=True))
    assert (told.items, told.labelled, told.wrong, told.accepted) == (2500, 2500, wrong, None)


def test_memory_does_not_grow_with_the_rows(run):
    """Ten times the rows, the same peak but for what happens to lie around."""
    def blocks(count):
        for _ in range(count):
            texts = [f"where is Rome number {at} ?" for at in range(1000)]
            yield Rows(texts, [{"text": text} for text in texts], None, free=True)

    peaks = []
    for count in (8, 8, 80):
        tracemalloc.start()
        for _ in predict_blocks(run, blocks(count), None, Tally(run.labels)):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1]


def test_what_is_out_of_the_ordinary_is_counted(run):
    tally = Tally(run.labels)
    blocks = given_texts(["", "where is Rome ?", "so " * 20])
    for _ in predict_blocks(run, blocks, None, tally):
        pass
    told = tell(run, tally, None, None)
    assert told.notes == (
        "empty texts: 1, answered with the shares of the classes in training",
        "texts cut after 12 words (max_words of the run): 1",
    )
    assert (told.labelled, told.wrong, tally.looks_labelled) == (None, None, False)


def test_columns_may_differ_from_row_to_row(cli, folder, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    source.write_text('{"text": "where is Rome ?", "id": 1}\n{"text": "bread", "more": "é"}\n')
    code, printed, said = cli("classify", folder, "--file", source, "--out", out, "--json",
                              "--samples", 3)
    assert code == 0, said
    with out.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert list(first)[:3] == ["text", "id", "more"]
    assert (first["id"], first["more"], second["id"], second["more"]) == ("1", "", "", "é")
    told = json.loads(printed)
    assert (told["items"], told["samples"], len(told["texts"])) == (2, 3, 2)
    assert first["predicted"] == told["texts"][0]["label"]
    assert float(first["probability"]) == pytest.approx(max(told["texts"][0]["p"].values()), abs=1e-6)


def test_an_exported_model_classifies(cli, folder, tmp_path):
    assert cli("export", folder, tmp_path / "shared")[0] == 0
    code, out, said = cli("classify", tmp_path / "shared", "where is Rome ?", "--json")
    assert (code, json.loads(out)["texts"][0]["label"]) == (0, "place"), said
    assert "no decisions: expected a run folder" in said

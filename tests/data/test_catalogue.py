import shutil

import pytest

from langevin.data.catalogue import DATASETS, SENTENCES, VECTORS
from langevin.data.corpora import read_corpus
from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.tasks import open_task


def test_missing_set_says_which_files_and_where(tmp_path, monkeypatch):
    monkeypatch.setenv("LANGEVIN_DATA", str(tmp_path))
    with pytest.raises(LangevinError, match=r"ptb.train.txt \(5,101,618 bytes\).*LANGEVIN_DATA"):
        read_corpus("ptb")
    assert DATASETS["ptb"].state()["state"] == "missing"


@pytest.mark.data
def test_penn_treebank_is_mikolov_s(real_data):
    task = open_task(
        load_recipe(
            "text", ["corpus=ptb", "level=word", "min_count=1", "batch_size=20", "window=20"]
        )
    )
    assert len(task.vocabulary) == 10_000
    counts = {
        name: batches.tokens + len(batches.tail) + 1 for name, batches in task.evaluated.items()
    }
    assert counts == {"train": 929_589, "valid": 73_760, "test": 82_430}


def test_swapped_splits_are_refused(own_data):
    folder = own_data / "ptb"
    assert DATASETS["ptb"].state()["state"] == "found"
    shutil.copy(folder / "ptb.valid.txt", folder / "ptb.test.txt")
    with pytest.raises(LangevinError, match=r"is not the test file of ptb.*82,430 tokens"):
        read_corpus("ptb")
    assert DATASETS["ptb"].state()["state"] == "damaged"


def test_the_command_lists_them(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("LANGEVIN_DATA", str(tmp_path))
    code, printed, _ = cli("data")
    assert code == 0
    assert "missing" in printed
    assert "embedded" in printed


def test_the_catalogue_is_whole():
    """Files whose sha256 is known have a size; sets of labelled sentences name their labels."""
    for known in DATASETS.values():
        assert known.what
        assert known.licence
        assert known.how_to_get
        assert known.files
        for file in known.files.values():
            assert file.name
            assert file.holds
            assert bool(file.size) == bool(file.sha256) == (len(file.sha256) == 64)
    assert {known.name: len(known.labels) for known in SENTENCES} == {
        "mr": 2,
        "cr": 2,
        "subj": 2,
        "mpqa": 2,
        "trec": 6,
    }
    assert len(VECTORS) == 3

"""The run behind an estimator: saved, loaded, pickled, asked by commands; nothing of others is
lost."""

import json
import pickle

import pytest
from sklearn.base import clone

import langevin
from langevin import BayesianTextClassifier, LangevinError
from langevin.store.copies import data_beside
from tests.sentences import questions

TEXTS, LABELS = map(list, zip(*questions(), strict=True))
TINY = {"hidden": 8, "lr": 0.02, "epochs": 3, "burn_in": 1, "batch_size": 10, "dropout": 0.0, "threads": 1}


@pytest.fixture(scope="module")
def fitted():
    return BayesianTextClassifier(**TINY).fit(TEXTS, LABELS)


def test_save_and_load(fitted, tmp_path, cli):
    fitted.save(tmp_path / "kept")
    loaded = BayesianTextClassifier.load(tmp_path / "kept")
    assert (loaded.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    assert loaded.get_params() == fitted.get_params()
    assert loaded.history_ == fitted.history_
    with pytest.raises(LangevinError, match="expected an empty folder"):
        fitted.save(tmp_path / "kept")
    fitted.save(tmp_path / "kept", overwrite=True)
    # its sentences came along
    code, out, said = cli("decide", tmp_path / "kept", "--coverage", "0.5", "--json")
    assert code == 0, said
    assert json.loads(out)["test"] is None


def test_saving_over_a_folder_removes_only_what_is_ours(fitted, tmp_path):
    fitted.save(tmp_path / "kept")
    beside = data_beside(tmp_path / "kept")
    (tmp_path / "kept" / "notes.md").write_text("years of work")
    before = beside.read_bytes()
    with pytest.raises(LangevinError, match=r"notes\.md was not written by langevin"):
        fitted.save(tmp_path / "kept", overwrite=True)
    (tmp_path / "kept" / "notes.md").unlink()
    assert beside.read_bytes() == before
    recipe = tmp_path / "kept" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace(str(beside), "elsewhere.jsonl"))
    beside.write_text("sentences of somebody else")
    with pytest.raises(LangevinError, match="expected no file at"):
        fitted.save(tmp_path / "kept", overwrite=True)
    assert beside.read_text() == "sentences of somebody else"
    assert "elsewhere.jsonl" in recipe.read_text()


def test_pickle_holds_the_samples(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.run_.path != fitted.run_.path
    assert (copy.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    path = copy.run_.path
    assert copy.posterior_.task.splits == ("train", "valid")
    del copy
    assert not path.parent.exists()


def test_a_given_folder_is_used_and_never_twice(tmp_path):
    made = BayesianTextClassifier(**TINY | {"epochs": 2, "folder": tmp_path / "run"}).fit(TEXTS, LABELS)
    assert (tmp_path / "run" / "recipe.toml").is_file()
    with pytest.raises(LangevinError, match=r"expected an empty folder.*cross-validation"):
        clone(made).fit(TEXTS, LABELS)


def test_load_a_run_of_the_command_line(classifier_run):
    loaded = BayesianTextClassifier.load(classifier_run)
    assert loaded.predict(["where is Rome ?", "who was Homer ?"]).tolist() == ["place", "person"]
    recipe = langevin.load(classifier_run).recipe
    same = loaded.recipe(recipe.data.corpus)
    assert (same.model, same.sampler, same.run) == (recipe.model, recipe.sampler, recipe.run)
    assert same.data.valid_file == recipe.data.valid_file


def test_commands_answer_with_the_labels_that_were_given(cli, fitted, tmp_path):
    fitted.save(tmp_path / "saved")
    code, printed, _ = cli("classify", tmp_path / "saved", "where is Rome ?", "--json")
    assert code == 0
    assert json.loads(printed)["texts"][0]["label"] == fitted.predict(["where is Rome ?"])[0]


def test_a_file_in_the_way_of_the_sentences_is_left_alone(fitted, tmp_path):
    (tmp_path / "run.sentences.jsonl").write_text("precious")
    with pytest.raises(LangevinError, match="where the training sentences go"):
        BayesianTextClassifier(**TINY, folder=tmp_path / "run").fit(TEXTS, LABELS)
    with pytest.raises(LangevinError, match="where the training sentences go"):
        fitted.save(tmp_path / "run")
    assert (tmp_path / "run.sentences.jsonl").read_text() == "precious"


def test_a_run_behind_a_link_can_be_pickled(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "saved")
    (tmp_path / "link").symlink_to("saved")
    monkeypatch.chdir(tmp_path / "saved")
    for folder in (tmp_path / "link", "."):
        back = pickle.loads(pickle.dumps(BayesianTextClassifier.load(folder)))
        assert back.predict(TEXTS[:5]).tolist() == fitted.predict(TEXTS[:5]).tolist()

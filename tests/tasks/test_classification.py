"""Splits, vocabulary, metrics by hand, and training through the shared loop; what cannot be learnt
from is refused."""

import json
import logging
import math

import pytest
import torch

from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.tasks import open_task
from langevin.tasks.classification import build_classifier, log_probs_of
from langevin.errors import Interrupted
from langevin.predict.load import open_posterior
from langevin.tasks import open_run_task
from langevin.training.session import resume, start
from tests.sentences import TINY_CLASSIFIER, questions, write_questions


@pytest.fixture
def questions_file(tmp_path):
    return write_questions(tmp_path / "questions.txt")


@pytest.fixture
def small(questions_file):
    """Builds a small recipe on the written questions; arguments override its keys."""

    def build(*overrides):
        return load_recipe("trec-psgld", [f"corpus={questions_file}", *TINY_CLASSIFIER, "temperature=0.01", *overrides])

    return build


def test_metrics_by_hand(small):
    task = open_task(small())
    task.targets["test"] = torch.tensor([0, 1, 2])
    p = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.75, 0.125, 0.125]])
    numbers = task.scores(p.log(), "test").present()
    assert math.isclose(numbers["error"], 1 / 3)
    assert math.isclose(numbers["nll"], (1 + 1 + 3) * math.log(2) / 3, rel_tol=1e-6)
    assert math.isclose(numbers["brier"], (2 * 0.375 + 0.5625 + 0.015625 + 0.765625) / 3, rel_tol=1e-6)
    assert math.isclose(numbers["ece"], 2 / 3 * 0.5 + 1 / 3 * 0.75, rel_tol=1e-6)
    assert numbers["items"] == 3


def test_splits_are_disjoint_and_whole_and_do_not_depend_on_the_seed(small):
    task, other = open_task(small()), open_task(small("seed=5"))
    assert task.splits == ("train", "valid", "test")
    assert sorted(text for part in task.texts.values() for text in part) == sorted(text for text, _ in questions())
    assert [len(task.texts[name]) for name in task.splits] == [98, 10, 12]
    assert task.texts == other.texts
    assert task.num_data == 98 == task.facts["num_data"]
    assert task.facts["class_counts"] == torch.bincount(task.targets["train"]).tolist()
    assert not task.training.batch(0, 0).equal(other.training.batch(0, 0))


def test_folds_share_out_all_sentences_as_tests(small):
    tests = [open_task(small(f"fold={fold}", "folds=4")).texts["test"] for fold in range(4)]
    assert sorted(text for part in tests for text in part) == sorted(text for text, _ in questions())


def test_given_files_are_the_splits(small, tmp_path):
    valid = write_questions(tmp_path / "v.csv", questions(20, seed=1))
    test = write_questions(tmp_path / "t.txt", questions(30, seed=2))
    task = open_task(small(f"valid_file={valid}", f"test_file={test}"))
    assert [len(task.texts[name]) for name in task.splits] == [120, 20, 30]
    assert open_task(small("test_share=0")).splits == ("train", "valid")


def test_vocabulary_is_the_training_split_s_or_everybody_s(small, tmp_path):
    test = write_questions(tmp_path / "t.txt", [("who was Napoleon ?", "person"), ("where is he ?", "place")])
    task = open_task(small(f"test_file={test}", "vocabulary=train"))
    assert "Napoleon" not in task.vocabulary.numbers
    assert task.sentences["test"][0].tolist()[2] == task.vocabulary.numbers["<unk>"]
    assert "Napoleon" in open_task(small(f"test_file={test}", "vocabulary=all")).vocabulary.numbers


def test_log_probs_are_in_the_order_of_the_sentences(small):
    task = open_task(small())
    model = task.build_model()
    expected = torch.cat([log_probs_of(model, [sentence]) for sentence in task.sentences["train"]])
    torch.testing.assert_close(task.log_probs(model, "train"), expected, rtol=0, atol=1e-6)
    assert expected.shape == (98, 3)


def test_dropout_masks_come_from_their_seed(small):
    task = open_task(small("dropout=0.5"))
    model = task.build_model()
    masked = task.log_probs(model, "test", 3)
    assert masked.equal(task.log_probs(model, "test", 3))
    assert not masked.equal(task.log_probs(model, "test", 4))
    assert not masked.equal(task.log_probs(model, "test"))


def test_half_precision_trains(small, tmp_path):
    trainer = start(small("precision=bfloat16", "epochs=2"), tmp_path / "run")
    trainer.run()
    assert trainer.history[-1].train_loss < 1.2


@pytest.mark.parametrize("more", [["cell=gru"], ["dropout=0.5"], ["dropout=0.3", "dropout_kind=gal", "layers=2"]])
def test_it_learns_and_resumes_to_the_same_bits(small, tmp_path, more):
    recipe = small("epochs=4", *more)
    whole = start(recipe, tmp_path / "whole")
    whole.run()
    assert whole.history[-1].train_loss < 0.8 * whole.history[0].train_loss
    broken = start(recipe, tmp_path / "broken")
    with pytest.raises(Interrupted):
        broken.run(stop=lambda: broken.step >= 13)
    again = resume(tmp_path / "broken")
    again.run()
    assert [s.sha256 for s in again.store.samples] == [s.sha256 for s in whole.store.samples]
    assert len(whole.store) == 6


def test_a_run_evaluates_and_can_be_opened_without_its_data(small, tmp_path, questions_file):
    start(small(), tmp_path / "run").run()
    result = open_posterior(tmp_path / "run").evaluate(curve=True)
    assert result.averaged.error < 0.5
    assert set(result.averaged.present()) == {"error", "nll", "brier", "ece", "items"}
    task = open_run_task(RunFolder(tmp_path / "run"))
    scored = open_posterior(tmp_path / "run").evaluate(text=write_questions(tmp_path / "new.csv"))
    assert scored.averaged.items == 120
    questions_file.unlink()
    folder = RunFolder(tmp_path / "run")
    facts = folder.facts
    model = build_classifier(folder.recipe, len(folder.vocabulary), len(facts["labels"]), facts["embed"])
    folder.store().samples[-1].load_into(model)
    log_p = log_probs_of(model, task.sentences["test"])
    assert math.isclose(task.scores(log_p, "test").nll, result.last.nll, rel_tol=1e-6)
    shares = task.class_counts / task.class_counts.sum()
    torch.testing.assert_close(log_probs_of(model, [torch.tensor([], dtype=torch.long)]).exp()[0], shares)


def test_changed_data_is_refused(small, tmp_path, questions_file):
    start(small(), tmp_path / "run").run()
    write_questions(questions_file, questions(seed=9))
    with pytest.raises(LangevinError, match="changed since this run began"):
        resume(tmp_path / "run")


def test_word_vectors_start_the_embedding(small, tmp_path, caplog):
    path = tmp_path / "v.txt"
    path.write_text("where 1 2 3\nwho 3 2 -1\nrome 0 1 0\n")
    with caplog.at_level(logging.INFO, "langevin"):
        task = open_task(small(f"vectors={path}", "train_vectors=false"))
    assert "covers" in caplog.text
    assert math.isclose(task.facts["coverage"]["types"], 3 / 17)  # where, who, Rome
    model = task.build_model()
    numbers = task.vocabulary.numbers
    row = model.embedding.weight[numbers["where"]]
    torch.testing.assert_close(row / row[0], torch.tensor([1.0, 2.0, 3.0]))
    assert not model.embedding.weight.requires_grad
    with pytest.raises(LangevinError, match="embed must be 3"):
        open_task(small(f"vectors={path}", "embed=5"))


def test_the_prior_of_trained_vectors_is_centred_on_them(small, tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("where 1 2 3\nwho 3 2 -1\nzebra 0 1 0\n")
    psgld = ["name=psgld", "prior_var=0.01", "temperature=0", "lr=0.01"]
    trainer = start(small(f"vectors={path}", *psgld), tmp_path / "run")
    means = trainer.task.prior_means()["embedding.weight"]
    numbers, weight = trainer.task.vocabulary.numbers, trainer.model.embedding.weight
    assert means[numbers["where"]].equal(weight[numbers["where"]])
    assert not means[numbers["<unk>"]].any()  # nothing is known of it
    assert weight[numbers["<unk>"]].any()
    assert trainer.sampler.state[weight]["prior_mean"].equal(means)
    trainer.run()
    again = resume(tmp_path / "run")
    assert again.sampler.state[again.model.embedding.weight]["prior_mean"].equal(means)
    for plain in ("train_vectors=false", "prior_at_vectors=false"):
        assert open_task(small(f"vectors={path}", plain)).prior_means() == {}


def test_one_class_is_refused(small, questions_file):
    write_questions(questions_file, [("a b", "x"), ("c", "x"), ("d", "x")])
    with pytest.raises(LangevinError, match=r"at least two classes.*'x'"):
        open_task(small())


def test_labels_that_never_repeat_are_refused(small, questions_file):
    write_questions(questions_file, [(f"text {n}", f"id{n}") for n in range(50)])
    with pytest.raises(LangevinError, match="labels that repeat"):
        open_task(small())


def test_labels_that_training_never_had_are_refused(small, tmp_path):
    test = write_questions(tmp_path / "t.txt", [("what now ?", "riddle")])
    with pytest.raises(LangevinError, match=r"'riddle', which training never had.*'person', 'place', 'thing'"):
        open_task(small(f"test_file={test}"))
    with pytest.raises(LangevinError, match="'riddle'"):
        open_task(small()).add_file(test)


def test_texts_that_are_all_empty_are_refused(small, tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("text,label\n" + ",a\n,b\n" * 20)
    with pytest.raises(LangevinError, match="all 40 are empty"):
        open_task(small(f"corpus={path}"))


def test_empty_and_endless_texts_train_and_are_counted(small, tmp_path, caplog):
    pairs = [*questions(60), ("", "place"), ("", "person"), ("snow " * 100_000, "thing")]
    path = write_questions(tmp_path / "q.csv", pairs)
    with caplog.at_level(logging.INFO, "langevin"):
        trainer = start(small(f"corpus={path}", "max_words=30", "epochs=2"), tmp_path / "run")
    assert "2 empty texts" in caplog.text
    assert "1 texts are cut after 30 words" in caplog.text
    trainer.run()
    facts = json.loads((tmp_path / "run" / "origin.json").read_text())["data"]
    assert (facts["empty_texts"], facts["cut_texts"]) == (2, 1)


def test_fold_of_a_set_with_its_own_test_is_refused(small, tmp_path):
    with pytest.raises(LangevinError, match="either a fold or a test_file"):
        small("fold=1", f"test_file={tmp_path}")
    with pytest.raises(LangevinError, match=r"fold must be below folds \(10"):
        small("fold=10")


@pytest.mark.data
@pytest.mark.parametrize("method", ["rmsprop-gal", "psgld-dropout"])
def test_trec_for_a_few_steps(real_data, tmp_path, method):
    trainer = a_few_steps_of_trec(method, tmp_path / "run", 0.01, 500)
    assert trainer.task.facts["split_sizes"] == {"train": 4907, "valid": 545, "test": 500}
    assert 0.6 < trainer.task.facts["coverage"]["types"] < 0.7


@pytest.mark.parametrize("method", ["rmsprop-gal", "psgld-dropout"])
def test_recipes_of_trec_train_and_resume(own_data, tmp_path, method):
    trainer = a_few_steps_of_trec(method, tmp_path / "run", 0.2, 60)
    assert trainer.task.facts["split_sizes"] == {"train": 450, "valid": 50, "test": 60}
    assert 0.4 < trainer.task.facts["coverage"]["types"] < 0.6


def a_few_steps_of_trec(method, path, step, sentences):
    """Five times `step` epochs, evaluated and opened again."""
    times = [f"epochs={5 * step}", f"burn_in={2 * step}", f"sample_every={step}"]
    trainer = start(load_recipe(f"trec-{method}", ["hidden=8", "threads=1", *times]), path)
    trainer.run()
    assert open_posterior(path).evaluate().averaged.items == sentences
    assert resume(path).finished
    return trainer


@pytest.mark.data
@pytest.mark.parametrize(("name", "types", "tokens"), [("mr", 62, 75), ("cr", 83, 80), ("trec", 67, 72)])
def test_words_of_the_benchmarks_are_found_as_often_as_is_known(real_data, name, types, tokens):
    facts = open_task(load_recipe(f"{name}-psgld")).facts
    assert (round(100 * facts["coverage"]["types"]), round(100 * facts["coverage"]["tokens"])) == (types, tokens)


def test_fold_of_trec_is_refused(own_data):
    with pytest.raises(LangevinError, match="test split of its own"):
        open_task(load_recipe("trec-psgld", ["fold=1"]))


def test_balanced_classes_count_alike_in_training(small, tmp_path):
    """Of nine texts of one class and one of the other each class is half of the loss."""
    pairs = [(f"where is Rome {n} ?", "place") for n in range(9)] + [("who was Homer ?", "person")]
    corpus = write_questions(tmp_path / "few.csv", pairs * 4)
    common = [f"corpus={corpus}", f"valid_file={corpus}", "test_share=0", "batch_size=40"]
    task = open_task(small(*common, "class_weight=balanced"))
    plain = open_task(small(*common))
    model = plain.build_model().eval()
    log_p = plain.log_probs(model, "train")
    own = -log_p.gather(1, plain.targets["train"][:, None])[:, 0]
    rare = plain.targets["train"] == list(plain.labels).index("person")
    assert rare.sum() == 4
    assert plain.loss(model, 0, 0, None)[0].item() == pytest.approx(own.mean().item(), rel=1e-5)
    expected = (own[rare].mean() + own[~rare].mean()) / 2
    assert task.loss(model, 0, 0, None)[0].item() == pytest.approx(expected.item(), rel=1e-5)
    with pytest.raises(LangevinError, match="class_weight"):
        small("class_weight=heavy")

"""A student is an ordinary run: it learns the average, resumes exactly, and refuses what it cannot
learn."""

import json
import shutil

import pytest
import torch

import langevin
from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.training.distil import Teaching, start_student
from langevin.errors import Interrupted
from langevin.posterior.selection import Selection
from langevin.predict.load import open_posterior
from langevin.training.session import resume, start
from tests.sentences import TINY_CLASSIFIER, write_questions
from tests.tiny_captions import tiny_recipe
from tests.training.test_loop import fingerprint


def teach(run, out, teaching=None, **options):
    trainer = start_student(run, out, Selection(), teaching or Teaching(), **options)
    trainer.run()
    return trainer


def test_a_student_learns_what_the_average_says(finished_run, tmp_path):
    """New weights, so that only the teacher can have taught them: most of the way from the start to
    the teacher."""
    trainer = start_student(finished_run, tmp_path / "s", Selection(), Teaching(), hidden=12, epochs=4,
                            overrides=["lr=0.01"])
    plain = trainer.task.build_model()

    def distance(model):
        batch = trainer.task.training_batch(0, 0)
        log_p, _ = trainer.task.teach(batch, 0)
        log_q = torch.log_softmax(trainer.task.logits(model.eval(), batch, None)[0], -1)
        return (log_p.exp() * (log_p - log_q)).sum(-1).mean().item()

    trainer.run()
    assert distance(trainer.model) < 0.3 * distance(plain)
    assert len(trainer.store) == 1
    result = open_posterior(finished_run).evaluate(student=tmp_path / "s")
    student = {row.model: row for row in result.models}["student s"]
    assert student.passes == 1
    assert student.scores.nll == pytest.approx(open_posterior(tmp_path / "s").evaluate().last.nll)


def test_the_student_of_a_plateau_of_running_means(text_file, tmp_path):
    """As `langevin train --text` makes its runs."""
    start(load_recipe("text", [f"corpus={text_file}", "hidden=4", "epochs=2", "pool=none"]), tmp_path / "run").run()
    student = teach(tmp_path / "run", tmp_path / "s")
    run = student.recipe.run
    assert (run.epochs, run.lr_schedule, run.sample, len(student.store)) == (0.5, "cyclical", "last", 1)


@pytest.mark.parametrize("generated", [0, 90])
def test_interrupted_and_resumed_equals_uninterrupted(finished_run, tmp_path, generated):
    teaching = Teaching(per_row=2, data_weight=0.2, generated=generated)
    teach(finished_run, tmp_path / "whole", teaching, epochs=1)
    trainer = start_student(finished_run, tmp_path / "cut", Selection(), teaching, epochs=1)
    with pytest.raises(Interrupted):
        trainer.run(stop=lambda: trainer.step == 20)
    resume(tmp_path / "cut").run()
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")
    assert (tmp_path / "cut" / "generated.safetensors").exists() == bool(generated)


def test_generated_text_is_learnt_too(finished_run, tmp_path):
    plain = start_student(finished_run, tmp_path / "plain", Selection(), Teaching(), epochs=1)
    more = start_student(finished_run, tmp_path / "more", Selection(), Teaching(generated=400), epochs=1)
    assert more.task.num_data == plain.task.num_data + 400
    streams = more.task.task.training.streams
    assert torch.equal(streams[:, :-100], plain.task.task.training.streams)
    assert len(streams[:, -100:].unique()) > 5
    random = start_student(finished_run, tmp_path / "random", Selection(), Teaching(generated=400), epochs=1,
                           overrides=["batching=random"])
    assert random.task.num_data == 400 + start_student(
        finished_run, tmp_path / "r", Selection(), Teaching(), epochs=1, overrides=["batching=random"]).task.num_data


def test_every_command_takes_a_student(cli, finished_run, tmp_path):
    out = tmp_path / "student"
    code, printed, messages = cli("distill", finished_run, "--out", out, "--select", "backward", "--samples", 2,
                                  "--epochs", 1, "--per-row", 1)
    assert code == 0, messages
    assert "average of 1 samples" in printed
    assert "logits are scaled by" in messages
    assert len(RunFolder(out).origin.teacher.samples) == 2
    for command in (["show"], ["evaluate"], ["generate", "--length", 5], ["export", tmp_path / "shared"], ["resume"]):
        code, _, messages = cli(command[0], out, *command[1:])
        assert code == 0, messages
    code, printed, _ = cli("evaluate", finished_run, "--student", out, "--json")
    assert [row["passes"] for row in json.loads(printed)["models"]] == [1, 1, 4, 1, 1]
    assert "teacher" not in json.loads((tmp_path / "shared" / "config.json").read_text())["facts"]
    assert len(langevin.load(tmp_path / "shared")) == 1


def test_classifiers_and_captioners_are_distilled(tmp_path):
    corpus = write_questions(tmp_path / "questions.csv")
    start(load_recipe("trec-psgld", [f"corpus={corpus}", *TINY_CLASSIFIER]), tmp_path / "c").run()
    start(tiny_recipe(tmp_path), tmp_path / "i").run()
    for run in ("c", "i"):
        trainer = teach(tmp_path / run, tmp_path / f"{run}-student", epochs=2)
        student = tmp_path / f"{run}-student"
        rows = open_posterior(tmp_path / run).evaluate(student=student).models
        assert rows[-1].scores.nll < rows[0].scores.nll + 0.1
        assert len(trainer.store) == 1
    with pytest.raises(LangevinError, match="only language models"):
        teach(tmp_path / "c", tmp_path / "no", Teaching(generated=5))


@pytest.mark.parametrize(("override", "message"), [
    ("level=word", "vocabulary of its teacher"), ("max_vocab=5", "vocabulary of its teacher"),
    ("task=classify", "task of its teacher"), ("epoch=2", "did you mean"),
])
def test_a_student_with_other_words_is_refused(cli, finished_run, tmp_path, override, message):
    code, _, messages = cli("distill", finished_run, "--out", tmp_path / "s", "--set", override)
    assert code == 2
    assert message in messages
    assert not (tmp_path / "s").exists()


def test_other_labels_and_other_letters_are_refused(tmp_path, tiny):
    corpus = write_questions(tmp_path / "questions.csv")
    start(load_recipe("trec-psgld", [f"corpus={corpus}", *TINY_CLASSIFIER]), tmp_path / "c").run()
    other = tmp_path / "other.csv"
    other.write_text(corpus.read_text().replace("place,", "town,"))
    with pytest.raises(LangevinError, match="labels of its teacher"):
        teach(tmp_path / "c", tmp_path / "s", overrides=[f"corpus={other}"])
    greek = tmp_path / "greek.txt"
    greek.write_text("ἄνδρα μοι ἔννεπε " * 100)
    start(tiny("split=streams", "parts=[20,5,5]"), tmp_path / "few").run()  # the bytes of its text
    with pytest.raises(LangevinError, match="not among the"):
        teach(tmp_path / "few", tmp_path / "s", overrides=[f"corpus={greek}"])
    assert not (tmp_path / "s").exists()


def test_a_student_never_replaces_its_teacher(cli, finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    before = fingerprint(run)
    code, _, messages = cli("distill", run, "--out", run, "--overwrite")
    assert code == 2
    assert "already holds a run" in messages
    assert fingerprint(run) == before


def test_a_teacher_that_changed_or_left_is_named(finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    trainer = start_student(run, tmp_path / "s", Selection(), Teaching(), epochs=1)
    trainer.save()
    victim = RunFolder(run).store().read()[1].path
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-1] + b"x")
    with pytest.raises(LangevinError, match=victim.name):
        resume(tmp_path / "s")
    victim.unlink()
    with pytest.raises(LangevinError, match="expected the teacher"):
        resume(tmp_path / "s")


@pytest.mark.parametrize("settings", [{"per_row": 0}, {"data_weight": 1.5}, {"generated": -1}])
def test_impossible_teaching_is_refused(settings):
    with pytest.raises(LangevinError, match="at least one teacher"):
        Teaching(**settings)


def test_a_student_reads_no_samples_but_those_of_its_teacher(finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    start_student(run, tmp_path / "s", Selection(), Teaching(), epochs=1).save()
    other = shutil.copy(RunFolder(run).store().read()[0].path, tmp_path / "000000001.safetensors")
    origin = json.loads((tmp_path / "s" / "origin.json").read_text())
    origin["teacher"]["samples"][0]["file"] = str(other)
    del origin["sha256"], origin["format"]
    origin |= origin.pop("data")  # as older versions left it, without a checksum
    (tmp_path / "s" / "origin.json").write_text(json.dumps(origin))
    with pytest.raises(LangevinError, match="expected the samples of"):
        resume(tmp_path / "s")

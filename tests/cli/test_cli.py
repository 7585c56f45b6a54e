"""Every documented command runs; what a user can mend ends in one clear message and exit code 2."""

import json
import os
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
import safetensors.torch
import torch

from langevin.recipe import shipped
from langevin.store.folder import RunFolder
from langevin.training.session import start
from tests.conftest import SET
from tests.training.test_loop import fingerprint

FIXTURE = Path(__file__).parents[1] / "fixtures" / "bytes"


@pytest.fixture
def copy(finished_run, tmp_path):
    """A run folder that a test may damage."""
    return shutil.copytree(finished_run, tmp_path / "copy")


def test_train_show_evaluate_generate(cli, text_file, tmp_path):
    out = tmp_path / "run"
    code, printed, _ = cli("train", "--text", text_file, "--out", out, *SET)
    assert code == 0
    assert "average of 4 samples" in printed
    code, printed, _ = cli("show", out)
    assert code == 0
    assert "finished" in printed
    assert "running average" in printed
    code, printed, _ = cli("evaluate", out, "--select", "thinned")
    assert code == 0
    assert "average of 4" in printed
    code, printed, _ = cli("generate", out, "--prompt", "the snow", "--length", "20")
    assert code == 0
    assert printed.startswith("the snow")
    code, _, messages = cli("resume", out)
    assert code == 0
    assert "finished already" in messages


def test_evaluate_json_has_the_promised_keys(cli, finished_run):
    selection = ["--split", "test", "--select", "thinned", "--samples", "2"]
    code, printed, _ = cli("evaluate", finished_run, *selection, "--json")
    assert code == 0
    result = json.loads(printed)
    assert {"task", "split", "how", "samples", "last", "averaged"} <= set(result)
    assert (result["task"], result["split"], result["how"], result["samples"]) == (
        "language-model", "test", "thinned", 2)
    assert result["averaged"]["nll"] > 0
    assert result["last"]["nll"] > 0


@pytest.mark.parametrize("command", [["show"], ["generate", "--length", "5"]])
def test_json_of_other_commands(cli, finished_run, command):
    code, printed, _ = cli(command[0], finished_run, *command[1:], "--json")
    assert code == 0
    assert json.loads(printed)


def test_recipes_are_listed(cli):
    code, printed, _ = cli("recipes", "--json")
    assert code == 0
    assert set(json.loads(printed)) == set(shipped())


@pytest.mark.parametrize("name", ["text", "classify", "flickr8k-psgld"])
def test_every_key_of_a_recipe_is_explained(cli, name):
    code, printed, _ = cli("recipes", name, "--json")
    assert code == 0
    keys = json.loads(printed)
    assert keys["sampler.name"]["value"] == "psgld"
    assert {"data.corpus", "model.cell", "run.threads"} <= set(keys)
    assert not [key for key, told in keys.items() if not told["meaning"]]
    assert "what it means" in cli("recipes", name)[1]
    code, _, messages = cli("recipes", "tex")
    assert code == 2
    assert "text" in messages


def test_version(cli):
    assert cli("--version")[:2] == (0, f"langevin {version('langevin')}\n")


def test_word_level_on_a_text_of_one_s_own(cli, text_file, tmp_path):
    out = tmp_path / "run"
    code, _, _ = cli("train", "--text", text_file, "--level", "word", "--out", out, "--quiet", *SET)
    assert code == 0
    code, printed, _ = cli("generate", out, "--prompt", "the snow", "--length", "5")
    assert code == 0
    assert len(printed.split()) >= 7


def test_rare_words_and_running_text(cli, tmp_path):
    path, out = tmp_path / "text.txt", tmp_path / "run"
    path.write_text("the snow lay deep\non the long road\nto a town\n" * 60 + "once only\n")
    options = ("--level", "word", "--min-count", "2", "--max-vocab", "8", "--running", "--quiet", *SET)
    assert cli("train", "--text", path, "--out", out, *options)[0] == 0
    vocabulary = RunFolder(out).vocabulary
    assert len(vocabulary) == 8
    assert "<unk>" in vocabulary.tokens
    assert not {"<eos>", "once"} & set(vocabulary.tokens)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "expected a recipe or --text"),
        (["train", "wp-lstm-psgd"], "did you mean 'wp-lstm-psgld'"),
        (["train", "--text", "absent.txt"], "expected a text file"),
        (["train", "docs.txt"], "to train on a text, pass it by --text docs.txt"),
        (["train", "demo", "--set", "epoch=1"], "did you mean 'epochs'"),
        (["train", "demo", "--set", "sampler=sgld"], "sampler.name"),
        (["train", "demo", "--set", "burn_in=40"], "burn_in follows from epochs"),
        (["train", "wp-lstm-psgld", "--set", "burn_in=4000"], "burn_in must be shorter"),
        (["train", "demo", "--set", "temperature=-1"], "sampler.temperature: expected a number of 0 or more"),
        (["train", "demo", "--set", "lr=-1"], "sampler.lr: input should be greater than 0, got -1"),
        (["train", "--task", "clasify"], "one of language-model, classify, caption, got"),
        (["train", "demo", "--device", "abacus"], "'abacus' is not available"),
        (["resume", "nowhere"], "expected a run folder at nowhere, found nothing"),
        (["show", "."], "no run in it"),
        (["evaluate", "nowhere"], "a run at nowhere, found nothing"),
        (["frobnicate"], "frobnicate"),
        (["generate"], "DIR"),
        (["generate", FIXTURE, "--samples", "0"], "expected between 1 and 4 samples, as many as there are, got 0"),
    ],
)
def test_bad_input_is_explained(cli, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs.txt").write_text("It was a clear night.")
    code, _, messages = cli(*arguments)
    assert code == 2
    assert message in messages
    assert "Traceback" not in messages
    assert [path.name for path in tmp_path.iterdir()] == ["docs.txt"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "empty"), (b"\x7fELF\0\0", "binary"), (b"Too short.", "too short"), (b"caf\xe9 " * 500, "UTF-8")],
    ids=["empty", "binary", "short", "latin-1"],
)
def test_useless_text_is_explained(cli, tmp_path, content, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    code, _, messages = cli("train", "--text", path, "--level", "char", "--out", tmp_path / "run")
    assert code == 2
    assert message in messages
    assert not (tmp_path / "run").exists()


def test_vocabulary_mismatch_is_explained(cli, tiny, tmp_path):
    start(tiny("split=streams", "parts=[20,5,5]"), tmp_path / "few").run()  # the bytes of its text
    path = tmp_path / "greek.txt"
    path.write_text("ἄνδρα μοι ἔννεπε")
    code, _, messages = cli("evaluate", tmp_path / "few", "--text", path)
    assert code == 2
    assert "not among the" in messages


def test_a_byte_model_reads_every_text(cli, finished_run, tmp_path):
    path = tmp_path / "greek.txt"
    path.write_text("ἄνδρα μοι ἔννεπε")
    code, printed, _ = cli("evaluate", finished_run, "--text", path, "--json")
    assert code == 0
    assert json.loads(printed)["averaged"]["items"] == len(path.read_bytes()) - 1


@pytest.mark.parametrize("name", ["pipe", "x" * 300, "/dev/zero"])
def test_what_is_no_text_file_is_refused_at_once(cli, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    code, _, messages = cli("train", "--text", name, "--out", "run")
    assert code == 2
    assert "expected a text file" in messages
    assert "Traceback" not in messages
    assert not Path("run").exists()


def test_words_of_a_prompt_that_the_model_does_not_know_are_named(cli, tiny, tmp_path):
    start(tiny("level=word"), tmp_path / "words").run()
    code, _, messages = cli("generate", tmp_path / "words", "--prompt", "the zebra", "--length", "3")
    assert code == 0
    assert "read as <unk>: zebra" in messages


def test_existing_run_is_refused_unless_asked(cli, copy, text_file):
    before = fingerprint(copy)
    code, _, messages = cli("train", "--text", text_file, "--out", copy, *SET)
    assert code == 2
    assert "already holds a run" in messages
    assert fingerprint(copy) == before
    code, _, _ = cli("train", "--text", text_file, "--out", copy, "--overwrite", "--quiet", *SET, "--set", "seed=5")
    assert code == 0
    assert fingerprint(copy) != before


def test_damaged_sample_is_named_and_the_rest_usable(cli, copy):
    victim = RunFolder(copy).store().read()[2].path
    victim.write_bytes(victim.read_bytes()[:100])
    code, _, messages = cli("evaluate", copy, "--json")
    assert code == 2
    assert victim.name in messages
    assert "--skip-damaged" in messages
    code, printed, messages = cli("evaluate", copy, "--skip-damaged", "--json")
    assert code == 0
    assert json.loads(printed)["samples"] == 3
    assert victim.name in messages


@pytest.mark.parametrize(("option", "message"), [
    (["--samples", "9"], "between 1 and 4"), (["--select", "middle"], "forward, backward, thinned"),
    (["--split", "tset"], "train, valid, test"), (["--discard", "4"], "leaves none")])
def test_impossible_selections_are_explained(cli, finished_run, option, message):
    code, _, messages = cli("evaluate", finished_run, *option)
    assert code == 2
    assert message in messages


@pytest.mark.parametrize("damage", [
    lambda raw: b"junk", lambda raw: b"", lambda raw: raw[:-9], lambda raw: raw + b"0",
    lambda raw: b"\xff" * 8 + raw[8:], lambda raw: safetensors.torch.save({"model.a": torch.ones(2)}),
])
def test_damaged_checkpoint_is_explained(cli, copy, damage):
    checkpoint = copy / "checkpoint.safetensors"
    checkpoint.write_bytes(damage(checkpoint.read_bytes()))
    code, _, messages = cli("resume", copy)
    assert code == 2
    assert "checkpoint" in messages
    assert "delete it to start this run again from its recipe" in " ".join(messages.split())


def test_nan_loss_is_explained(cli, text_file, tmp_path):
    code, _, messages = cli("train", "--text", text_file, "--out", tmp_path / "r", *SET, "--set", "name=sgld",
                            "--set", "lr=1e30")
    assert code == 2
    assert "at step" in messages

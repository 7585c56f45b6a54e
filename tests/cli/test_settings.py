"""Settings and places that no run can have: one clear line, exit code 2, nothing made."""

import json
import os
import signal
import subprocess
import sys

import pytest

from langevin.errors import LangevinError
from langevin.report.controls import show_controls
from langevin.report.terminal import messages
from langevin.training.loop import refuse_oversized
from tests.cli.test_killed import LONG, start_process, wait_for_step
from tests.conftest import SET
from tests.training.test_loop import fingerprint

LONG_NAME = "a" * 300


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("threads=100000", "run.threads: input should be less than or equal to 1024"),
        (f"hidden={10**9}", "model.hidden: input should be less than or equal to 1000000"),
        ("hidden=1000000", "hidden = 1000000 and layers = 1 need at least"),
        (f"seed={2**63 - 1}", "run.seed: input should be less than or equal to"),
        (f"seed={10**20}", "run.seed: "),
        ("device=meta", "expected a device that computes, got 'meta'"),
        ("epochs=inf", "run.epochs: input should be a finite number"),
        ("epochs=1e300", "run.epochs: input should be less than or equal to"),
        ("lr=inf", "sampler.lr: input should be a finite number"),
        ("prior_var=nan", "sampler.prior_var: input should be a finite number"),
        ("temperature=inf", "sampler.temperature: expected a number of 0 or more"),
    ],
)
def test_impossible_settings(cli, text_file, tmp_path, setting, message):
    out = tmp_path / "run"
    code, printed, said = cli("train", "--text", text_file, "--out", out, *SET, "--set", setting)
    assert (code, printed) == (2, "")
    assert message in said
    assert len(said.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_model_must_fit_into_memory(tiny):
    recipe = tiny("hidden=100", "layers=2", "cell=gru")
    needed = 3 * 4 * 2 * 3 * 100 * 200  # copies, bytes, layers, gates, units, inputs
    refuse_oversized(recipe, needed)
    refuse_oversized(recipe, None)
    with pytest.raises(LangevinError, match="lower hidden"):
        refuse_oversized(recipe, needed - 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--temperature", "nan"], "--temperature"),
        (["--temperature", "inf"], "expected a finite number, got inf"),
        (["--temperature", "-1"], "--temperature"),
        (["--seed", 10**20], "--seed"),
        (["--seed", 2**63], "--seed"),
    ],
)
def test_impossible_numbers_for_a_text(cli, finished_run, options, message):
    code, printed, said = cli("generate", finished_run, "--length", "3", *options)
    assert (code, printed) == (2, "")
    assert message in said


def test_bytes_that_are_no_letters_are_read_as_they_are(cli, finished_run, word_run):
    """As a command line passes them on: Python keeps each as half of a letter."""
    letters = "caf\udce9 \udcff"
    code, printed, _ = cli("score", finished_run, letters, "--json")
    assert (code, json.loads(printed)[0]["scores"]["items"]) == (0, 6)
    assert cli("explain", finished_run, letters)[0] == cli("generate", finished_run, "--prompt", letters)[0] == 0
    for run, text, said in (word_run, letters, "expected UTF-8"), (finished_run, "\ud800", "got half of one"):
        for command in ("score", "explain"):
            code, _, refusal = cli(command, run, text)
            assert (code, said in refusal) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "RUN", "--mc-dropout", 10**20],
        ["distill", "RUN", "--out", "OUT", "--generated", 10**20],
    ],
)
def test_numbers_beyond_all_bounds(cli, finished_run, tmp_path, words):
    places = {"RUN": finished_run, "OUT": tmp_path / "out"}
    code, printed, _ = cli(*(places.get(word, word) for word in words))
    assert (code, printed) == (2, "")
    assert not (tmp_path / "out").exists()


def test_the_last_seed_is_a_seed(cli, finished_run):
    assert cli("generate", finished_run, "--length", "3", "--seed", 2**63 - 1)[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", LONG_NAME],
        ["train", "--text", LONG_NAME],
        ["show", LONG_NAME],
        ["evaluate", LONG_NAME],
        ["train", "--text", "TEXT", "--out", LONG_NAME, *SET],
    ],
    ids=["recipe", "text", "run", "evaluated", "out"],
)
def test_names_that_are_too_long(cli, text_file, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, _, said = cli(*(text_file if a == "TEXT" else a for a in arguments))
    assert code == 2
    assert "too long" in said
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_not_waited_for(cli, finished_run, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for arguments in (["train", "--text", pipe, "--out", tmp_path / "run"],
                      ["evaluate", finished_run, "--text", pipe]):
        code, _, said = cli(*arguments)
        assert (code, "a pipe" in said) == (2, True), said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments", [["recipes"], ["--help"], ["recipes", "--json"]])
def test_a_full_device(arguments):
    with open("/dev/full", "w") as full:  # noqa: PTH123  # no file
        done = subprocess.run([sys.executable, "-m", "langevin", *arguments], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "No space left on device" in done.stderr


STARVED = """
import resource, sys
from langevin.cli import main
import torch, langevin.cli.train, langevin.cli.outcome
with open("/proc/self/statm") as told:
    pages = int(told.read().split()[0])
limit = pages * resource.getpagesize() + 300_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_out_of_memory(text_file, tmp_path):
    arguments = ["train", "--text", text_file, "--out", tmp_path / "run", *SET, "--set", "hidden=4000"]
    done = subprocess.run([sys.executable, "-c", STARVED, *map(str, arguments)], timeout=120,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("langevin: out of memory; lower hidden")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_closed_terminal_loses_nothing(cli, text_file, tmp_path):
    """SIGHUP stops and saves, and the resumed run has the bits of one that was let alone."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert cli("train", "--text", text_file, "--out", whole, "--quiet", *LONG)[0] == 0
    usual = lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)  # noqa: E731  # nohup's is inherited
    process = start_process("train", "--text", text_file, "--out", cut, *LONG, preexec_fn=usual)
    wait_for_step(cut, 150, process)
    process.send_signal(signal.SIGHUP)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert f"go on with: langevin resume {cut}" in output
    assert cli("resume", cut, "--quiet")[0] == 0
    assert fingerprint(cut) == fingerprint(whole)


def test_escapes_are_shown_and_not_obeyed(cli, finished_run, capsys):
    assert show_controls("a\x1b[2J\x07\x9b\r\n\tb\x7f") == "a␛[2J␇\\x9b␍\n\tb␡"
    code, printed, _ = cli("generate", finished_run, "--prompt", "the", "--length", "1")
    assert (code, "\x1b" in printed) == (0, False)
    code, _, said = cli("show", "no\x1b[31mwhere")
    assert (code, "no␛[31mwhere" in said, "\x1b" in said) == (2, True, False)
    messages.print("\x1b]0;title\x07", soft_wrap=True)
    assert capsys.readouterr().err == "␛]0;title\n"

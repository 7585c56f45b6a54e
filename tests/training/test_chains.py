"""Several chains in one folder: trained side by side, read as one run, refused when they do not
belong together."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior.average import LogMean
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.store.records import write_sealed
from langevin.training.chains import recipe_of_chain, resume_chains, start_chains
from langevin.posterior.selection import Selection
from langevin.predict.load import open_posterior
from langevin.tasks import open_run_task
from langevin.training.session import resume, start
from tests.conftest import SET, TINY
from tests.training.test_loop import fingerprint
from langevin.posterior.selection import resolve


@pytest.fixture(scope="session")
def chains_run(text_file, tmp_path_factory):
    """Two chains of four samples; tests that damage them must copy them first."""
    out = tmp_path_factory.mktemp("chains") / "night"
    folder = start_chains(load_recipe("text", [f"corpus={text_file}", *TINY, "seed=3"]), out, 2)
    resume_chains(folder, 2)
    return out


@pytest.fixture
def copy(chains_run, tmp_path):
    return shutil.copytree(chains_run, tmp_path / "copy")


def test_a_chain_is_the_run_of_its_seed(chains_run, tiny, tmp_path):
    """The bits of a plain run with seed + 1."""
    trainer = start(tiny("seed=4"), tmp_path / "alone")
    trainer.run()
    assert fingerprint(chains_run / "chain-1") == fingerprint(tmp_path / "alone")
    assert fingerprint(chains_run / "chain-0") != fingerprint(chains_run / "chain-1")


def test_which_samples_to_average_is_chosen_once_for_all_chains(cli, copy):
    assert not list(copy.rglob("collection.json"))
    assert cli("resume", copy)[0] == 0
    assert [path.parent for path in copy.rglob("collection.json")] == [copy]


def test_chains_run_on_one_thread_and_differ_in_seed_only(tiny):
    recipe = tiny("seed=7", "threads=2")
    other = recipe_of_chain(recipe, 2)
    assert (other.run.seed, other.run.threads) == (9, 1)
    assert other.model_copy(update={"run": recipe.run}) == recipe


def test_samples_are_chosen_within_each_chain(chains_run):
    folder = RunFolder(chains_run)
    everything = resolve(folder).samples
    assert [s.chain for s in everything] == [0] * 4 + [1] * 4
    steps = [s.step for s in everything[:4]]
    for how, expected in {"forward": steps[:2], "backward": steps[2:], "thinned": steps[1::2]}.items():
        chosen = resolve(folder, Selection(how, 2)).samples
        assert [s.step for s in chosen] == expected * 2
        assert [s.chain for s in chosen] == [0, 0, 1, 1]
    chosen = resolve(folder, Selection("forward", None, 3)).samples
    assert [(s.chain, s.step) for s in chosen] == [(0, steps[3]), (1, steps[3])]
    assert [s.step for s in folder.store().read(thin=3)] == [steps[0], steps[3]] * 2


@pytest.mark.parametrize(("samples", "discard"), [(5, 0), (1, 4)])
def test_more_than_a_chain_has_is_refused(chains_run, samples, discard):
    with pytest.raises(LangevinError, match=r"of 4 samples|between 1 and 4"):
        resolve(RunFolder(chains_run), Selection("forward", samples, discard))


def test_how_many_of_each_chain_make_a_total(chains_run, finished_run):
    assert [RunFolder(chains_run).store().of_each(n) for n in (1, 2, 3, 10)] == [1, 1, 2, 4]
    assert [RunFolder(finished_run).store().of_each(n) for n in (1, 3, 10)] == [1, 3, 4]


def test_evaluation_averages_over_chains_and_within(chains_run):
    result = open_posterior(chains_run).evaluate(curve=True)
    alone = [open_posterior(chains_run / f"chain-{k}").evaluate(curve=True) for k in range(2)]
    assert [c.scores for c in result.chains] == [r.averaged for r in alone]
    assert [e.chain for e in result.each] == [0] * 4 + [1] * 4
    folder, mean = RunFolder(chains_run), LogMean()
    task = open_run_task(folder)
    model = task.build_model()
    for chain in folder.chains:
        for sample in chain.store().read():
            sample.load_into(model)
            mean.add(task.log_probs(model, "test"))
    assert result.averaged.nll == pytest.approx(task.scores(mean.value(), "test").nll, rel=1e-6)
    assert result.samples == 8
    assert result.steps == sum(r.steps for r in alone)
    assert result.seconds == pytest.approx(sum(r.seconds for r in alone))
    pair = open_posterior(chains_run, Selection("backward", 2)).evaluate().averaged.nll
    assert result.curve["backward"][1] == pytest.approx(pair, rel=1e-6)
    assert [len(scores) for scores in result.curve.values()] == [4, 4, 4]


def test_commands_take_a_folder_of_chains(cli, chains_run):
    code, printed, _ = cli("evaluate", chains_run)
    assert code == 0
    assert "chain 1, average of 4" in printed
    assert "average of 8" in printed
    code, printed, _ = cli("show", chains_run)
    assert code == 0
    assert "seeds 3, 4" in printed
    assert "chain-1" in printed
    summary = json.loads(cli("show", chains_run, "--json")[1])
    assert (summary["finished"], summary["samples"], len(summary["chains"])) == (True, 8, 2)
    code, printed, _ = cli("generate", chains_run, "--prompt", "the snow", "--length", "5", "--json")
    assert code == 0
    assert json.loads(printed)["samples"] == 8
    code, printed, _ = cli("explain", chains_run, "the snow")
    assert code == 0
    assert "chain 1, step" in printed
    code, _, messages = cli("resume", chains_run)
    assert code == 0
    assert "finished already: 8 samples" in messages


def test_recorded_numbers_hold_both_learning_curves(paper, chains_run, tmp_path):
    assert paper("record", chains_run, "--out", tmp_path / "x.json")[0] == 0
    history = json.loads((tmp_path / "x.json").read_text())["history"]
    assert {line["chain"] for line in history} == {0, 1}


def test_chains_of_different_recipes_are_refused(cli, copy):
    path = copy / "chain-1" / "recipe.toml"
    path.write_text(path.read_text().replace("lr = 0.002", "lr = 0.004"))
    code, _, messages = cli("evaluate", copy)
    assert code == 2
    assert "sampler.lr = 0.002" in messages
    assert "0.004" in messages


def test_chains_of_different_data_are_refused(cli, copy):
    path = copy / "chain-1" / "origin.json"
    origin = json.loads(path.read_text())
    write_sealed(path, origin | {"data": origin["data"] | {"data_sha256": "0" * 64}})
    code, _, messages = cli("evaluate", copy)
    assert code == 2
    assert "same data" in messages


def test_a_missing_chain_and_a_broken_list_are_explained(cli, copy):
    shutil.rmtree(copy / "chain-1")
    code, _, messages = cli("show", copy)
    assert code == 2
    assert "expected a run folder at" in messages
    (copy / "chains.json").write_text("[]")
    code, _, messages = cli("show", copy)
    assert code == 2
    assert "expected a JSON object in" in messages
    assert "chains.json, got []" in messages


def test_a_damaged_sample_of_a_chain_can_be_left_out(cli, copy):
    victim = RunFolder(copy).chains[1].store().read()[0].path
    victim.write_bytes(b"junk")
    assert cli("evaluate", copy, "--select", "thinned")[0] == 2
    code, printed, messages = cli("evaluate", copy, "--skip-damaged", "--json")
    assert code == 0
    assert json.loads(printed)["samples"] == 7
    assert victim.name in messages


def test_chains_that_have_not_begun(tiny, tmp_path, cli):
    start_chains(tiny(), tmp_path / "r", 3)
    code, printed, _ = cli("show", tmp_path / "r")
    assert code == 0
    assert "not started" in printed
    code, _, messages = cli("evaluate", tmp_path / "r")
    assert code == 2
    assert "it has none yet" in messages
    code, _, messages = cli("train", "text", "--out", tmp_path / "r", "--chains", "2", *SET)
    assert code == 2
    assert "already holds a run" in messages
    with pytest.raises(LangevinError, match="3 chains"):
        resume(tmp_path / "r")
    with pytest.raises(LangevinError, match="holds 3 chains"):
        RunFolder(tmp_path / "r").store().append(torch.nn.Linear(1, 1), 1)


def test_zero_chains_are_refused(cli, tiny, tmp_path):
    assert cli("train", "text", "--chains", "0")[0] == 2
    with pytest.raises(LangevinError, match="at least 1"):
        start_chains(tiny(), tmp_path / "r", 0)


def test_ctrl_c_stops_all_chains_and_resume_ends_them_with_the_same_bits(text_file, tmp_path):
    """A real SIGINT to the parent; finished chains are not run again; the end is that of
    uninterrupted runs."""
    long = [*SET, "--set", "epochs=20", "--set", "burn_in=16", "--set", "sample_every=1"]
    out = tmp_path / "cut"
    command = [sys.executable, "-m", "langevin"]
    arguments = ["train", "--text", str(text_file), "--out", str(out), "--chains", "2", "--jobs", "2", *long]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 90
    while not all((out / f"chain-{k}" / "checkpoint.safetensors").exists() for k in range(2)):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=40)
    assert process.returncode == 130, output
    assert f"go on with: langevin resume {out}" in output
    states = [chain.progress() for chain in RunFolder(out).chains]
    assert not all(state.finished for state in states)
    resume(out / "chain-0").run()
    before = (out / "chain-0" / "checkpoint.safetensors").stat().st_mtime_ns
    assert [chain.path.name for chain in resume_chains(RunFolder(out), 1)] == ["chain-1"]
    assert (out / "chain-0" / "checkpoint.safetensors").stat().st_mtime_ns == before
    for seed in range(2):
        recipe = load_recipe("text", [f"corpus={text_file}", f"seed={seed}", *(a for a in long if a != "--set")])
        trainer = start(recipe, tmp_path / f"whole-{seed}")
        trainer.run()
        assert fingerprint(out / f"chain-{seed}") == fingerprint(tmp_path / f"whole-{seed}")


def test_a_chain_that_fails_is_named_with_its_reason(cli, text_file, tmp_path):
    code, _, messages = cli("train", "--text", text_file, "--out", tmp_path / "r", "--chains", "2", "--jobs", "1", *SET,
                            "--set", "name=sgld", "--set", "lr=1e30")
    assert code == 2
    assert "chain-0 ended with exit code 2: the loss became" in messages
    assert "Traceback" not in messages


@pytest.mark.parametrize("names", [["chain-0", "../other"], ["."], ["chain-0", "chain-0"], ["/tmp"], [7], [None]])
def test_names_of_chains_that_are_none_are_refused(cli, copy, names):
    (copy / "chains.json").write_text(json.dumps({"format": 1, "chains": names}))
    for command in ("show", "resume"):
        code, _, messages = cli(command, copy)
        assert code == 2
        assert re.search(r"chains\.json( to be a valid string)?, got", messages)


def test_a_log_that_is_a_link_is_not_written_to(tiny, tmp_path):
    folder = start_chains(tiny(), tmp_path / "r", 1)
    precious = tmp_path / "precious.txt"
    precious.write_text("years of work")
    (folder.chains[0].path / "log.txt").symlink_to(precious)
    with pytest.raises(LangevinError, match="cannot start chain-0"):
        resume_chains(folder, 1)
    assert precious.read_text() == "years of work"


def test_damage_of_a_finished_chain_is_told_when_the_others_go_on(copy, caplog):
    sample = RunFolder(copy / "chain-0").store().samples[0].path
    sample.write_bytes(b"noise")
    resume_chains(RunFolder(copy))
    assert [f"sample {sample} was changed" in said for said in caplog.messages] == [True]

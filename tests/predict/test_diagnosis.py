"""The command over real runs: what it measures, what it says, what it refuses."""

import json
import math
import shutil

import pytest

import langevin
from langevin.posterior.scores import in_json
from langevin.predict.diagnosis import checkpoint_kinetic, diagnose_runs, moved
from langevin.recipe.schedule import Pace
from langevin.samplers.santa import annealed
from langevin.store.folder import RunFolder
from langevin.tasks import open_run_task
from langevin.training.session import start

LONGER = ("epochs=4", "burn_in=2", "sample_every=0.25")


@pytest.fixture(scope="module")
def pair(text_file, tmp_path_factory):
    """Two chains of eight samples by SGHMC under a prior, as two run folders."""
    from langevin.recipe import load_recipe
    from tests.conftest import TINY

    folders = []
    for seed in range(2):
        folders.append(tmp_path_factory.mktemp("pair") / str(seed))
        settings = [f"corpus={text_file}", *TINY, *LONGER, f"seed={seed}", "name=sghmc", "lr=0.02", "prior_var=1",
                    "clip=norm", "clip_norm=0.01"]
        start(load_recipe("text", settings), folders[-1]).run()
    return folders


def pace_of(path):
    task = open_run_task(RunFolder(path))
    settings = task.recipe.sampler.resolved(task.num_data)[1]
    return Pace(task.recipe.run, settings["lr"], settings["temperature"], task.batches_per_epoch)


def codes(result):
    return [finding["code"] for finding in result["verdict"]]


def test_two_runs_by_the_command(cli, pair, tmp_path):
    code, printed, messages = cli("diagnose", *pair, "--json", "--netcdf", tmp_path / "x.nc", "--probes", "6")
    assert code == 0, messages
    result = json.loads(printed)
    assert (result["chains"], result["draws"], result["gradient_batches"]) == (2, 8, 8)
    assert next(iter(result["predictions"])) == "held-out log-likelihood"
    assert len(result["predictions"]) == 7
    assert {t["kind"] for t in result["temperatures"]} == {"kinetic", "configurational"}
    assert all(t["trusted"] for t in result["temperatures"])
    assert result["clipped"] > 0.9
    assert "clipped too often" in codes(result)
    assert result["autocorrelation"][0] == pytest.approx(1)
    assert result["thinning"] >= 1
    assert all(layer["distance"] > 0 for layer in result["layers"].values())
    assert (tmp_path / "x.nc").stat().st_size > 1000


def test_page_for_people(cli, pair):
    code, printed, _ = cli("diagnose", *pair, "--full-gradient", "--quiet")
    assert code == 0
    for word in ("held-out log-likelihood", "output.weight", "kinetic", "all training batches", "suggested thinning",
                 "clipped too often:"):
        assert word in printed


def test_one_chain_too_few_and_without_gradient(cli, finished_run):
    code, printed, _ = cli("diagnose", finished_run, "--json", "--batches", "0")
    assert code == 0
    result = json.loads(printed)
    assert result["temperatures"] == []
    assert codes(result) == ["too few samples to tell"]
    assert result["predictions"]["held-out log-likelihood"]["r_hat"] is None


def test_kinetic_temperature_comes_from_the_checkpoint(pair):
    """Σ(1−α/2)m²·N/(lr·d) over all momenta, by hand."""
    tensors, progress = RunFolder(pair[0]).load_checkpoint()
    group = progress.groups[0]
    momenta = [t.double() for name, t in tensors.items() if name.endswith(".momentum")]
    squares = sum(float(m.square().sum()) for m in momenta) / sum(m.numel() for m in momenta)
    by_hand = (1 - group["friction"] / 2) * squares * group["num_data"] / group["lr"]
    reading = checkpoint_kinetic(RunFolder(pair[0]), pace_of(pair[0]))
    assert reading.measured == pytest.approx(by_hand)
    assert reading.injected == group["temperature"]


def test_a_sampler_without_momenta_has_no_kinetic_temperature(finished_run):
    assert checkpoint_kinetic(RunFolder(finished_run), pace_of(finished_run)) is None


@pytest.mark.parametrize(
    ("schedule", "trusted"),
    [
        (["lr_schedule=constant"], True),
        (["lr_schedule=cyclical", "cycle=1"], False),
        (["lr_schedule=step", "decay_after=1.9", "decay_every=9"], False),
        (["lr_schedule=step", "decay_after=0.2", "decay_every=9"], True),
        (["burn_in_temperature=0", "burn_in=1.5", "sample_every=0.1"], False),
    ],
)
def test_kinetic_temperature_of_a_moving_schedule_is_not_trusted(tiny, tmp_path, cli, schedule, trusted):
    """Momenta of 50 steps (friction 0.1) hold the rates of all of these; an epoch has some 60."""
    start(tiny("name=sghmc", "lr=0.02", "prior_var=1", "temperature=1", *schedule), tmp_path / "r").run()
    result = diagnose_runs([tmp_path / "r"], batches=2)[0].to_dict()
    kinetic = next(t for t in result["temperatures"] if t["kind"] == "kinetic")
    assert kinetic["trusted"] == trusted
    if not trusted:
        assert not any("kinetic" in finding["words"] for finding in result["verdict"])
    _, printed, _ = cli("diagnose", tmp_path / "r", "--batches", "0", "--quiet")
    assert ("not trusted: rate or temperature moved" in printed) == (not trusted)


def test_momenta_remember_as_long_as_their_friction_is_small(tiny):
    """The rate falls to a half at step 100: five times 1/friction steps later that is forgotten."""
    pace = Pace(tiny("lr_schedule=step", "decay_after=1", "decay_every=9").run, 0.1, 1.0, 100)
    assert [moved(pace, step, 0.1) for step in (100, 101, 149, 150)] == [False, True, True, False]
    assert moved(pace, 150, 0.05)
    assert moved(pace, 10_000, 0.0)  # without friction nothing is forgotten


@pytest.mark.parametrize("name", ["santa", "sgnht"])
def test_thermostatted_samplers_are_measured(tiny, tmp_path, name):
    """Santa's injected temperature is the annealed one, and its momenta are read in units of the
    preconditioner."""
    trainer = start(tiny(f"name={name}", "temperature=1"), tmp_path / "r")
    trainer.run()
    found, draws = diagnose_runs([tmp_path / "r"], batches=2)
    result = found.to_dict()
    kinetic = next(t for t in result["temperatures"] if t["kind"] == "kinetic")
    group = trainer.sampler.param_groups[0]
    if name == "santa":
        assert kinetic["injected"] == annealed(group | {"steps_done": trainer.step - 1})
        assert draws.temperature[0, -1] == kinetic["injected"] < 0.2
    else:
        assert kinetic["injected"] == draws.temperature[0, -1] == 1
    assert 0 < kinetic["measured"] < math.inf


def test_a_flat_prior_is_not_trusted_and_an_optimiser_is_named(tiny, tmp_path):
    start(tiny("name=rmsprop", "prior_var=none", "temperature=none"), tmp_path / "r").run()
    result = langevin.load(tmp_path / "r").diagnose().to_dict()
    assert [t["trusted"] for t in result["temperatures"]] == [False]
    assert codes(result) == ["averaged trajectory, not a chain"]
    for name in ("r_hat", "ess", "trend", "thinning", "autocorrelation"):
        assert result[name] is None
    for numbers in (*result["predictions"].values(), *result["layers"].values()):
        assert numbers["r_hat"] is None
        assert numbers["ess"] is None


def test_a_folder_of_chains_is_one_argument(pair, tmp_path, cli):
    folder = tmp_path / "both"
    for number, path in enumerate(pair):
        shutil.copytree(path, folder / f"chain-{number}")
    for name in ("recipe.toml", "origin.json", "vocabulary.json"):
        shutil.copy(pair[0] / name, folder / name)
    (folder / "chains.json").write_text(json.dumps({"format": 1, "chains": ["chain-0", "chain-1"]}))
    joint, apart = (diagnose_runs(paths, batches=2)[0].to_dict() for paths in ([folder], pair))
    assert {k: v for k, v in joint.items() if k != "runs"} == {k: v for k, v in apart.items() if k != "runs"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "expected a run folder at nowhere, found nothing"),
        (["."], "no run in it"),
        (["RUN", "--discard", "3"], "at least 4 samples of each chain to diagnose, got 1"),
        (["RUN", "--split", "tset"], "train, valid, test"),
        (["RUN", "RUN"], "seed 0 2 times"),
        (["RUN", "OTHER"], "expected chains of one recipe"),
        ([], "DIR"),
    ],
)
def test_bad_input_is_explained(cli, finished_run, pair, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"RUN": finished_run, "OTHER": pair[1]}
    code, _, messages = cli("diagnose", *(places.get(a, a) for a in arguments))
    assert code == 2
    assert message in messages
    assert "Traceback" not in messages


def test_nan_is_no_json():
    assert in_json({"a": [math.nan, math.inf, 1.0]}) == {"a": [None, 1e300, 1.0]}

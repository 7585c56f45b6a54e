"""A folder that stands alone answers like the run it came from, without the run and without its
data."""

import json
import shutil

import pytest
import torch

import langevin
from langevin.errors import LangevinError
from langevin.predict.export import export
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.store.records import write_sealed
from langevin.training.chains import start_chains
from langevin.training.distil import Teaching, start_student
from langevin.posterior.selection import Selection
from langevin.predict.load import open_posterior
from langevin.tasks import open_run_task
from langevin.training.session import resume, start
from tests.conftest import TINY
from tests.sentences import TINY_CLASSIFIER, write_questions
from tests.tiny_captions import tiny_recipe

TEXT = "It was a clear night, and the snow"


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    corpus = write_questions(folder / "questions.csv")
    start(load_recipe("trec-psgld", [f"corpus={corpus}", *TINY_CLASSIFIER]), folder / "run").run()
    return folder / "run"


@pytest.fixture(scope="module")
def two_chains(text_file, tmp_path_factory):
    """Two chains of four samples."""
    out = tmp_path_factory.mktemp("two") / "pair"
    for chain in start_chains(load_recipe("text", [f"corpus={text_file}", *TINY]), out, 2).chains:
        resume(chain.path).run()
    return out


@pytest.fixture
def alone(finished_run, tmp_path):
    """An export of a copy of the run, which is then gone."""
    run = shutil.copytree(finished_run, tmp_path / "run")
    export(run, tmp_path / "shared", Selection("backward", 3))
    shutil.rmtree(run)
    return tmp_path / "shared"


def test_a_language_model_answers_as_its_run_does(finished_run, tmp_path, text_file):
    export(finished_run, tmp_path / "shared")
    model, run = langevin.load(tmp_path / "shared"), langevin.load(finished_run)
    assert model.score(TEXT).tokens == run.score(TEXT).tokens


def test_what_may_follow_is_the_averaged_distribution(alone):
    model = langevin.load(alone)
    everything = model.next(TEXT, top=1000)
    assert len(everything) == len(model.vocabulary)
    assert sum(t.p for t in everything) == pytest.approx(1)
    assert model.next(TEXT, top=2) == everything[:2]
    follows, last = {t.token: t for t in everything}, model.score(TEXT + " ").tokens[-1]
    assert last.p == pytest.approx(follows[" "].p, rel=1e-4)
    assert last.entropy == pytest.approx(follows[" "].entropy, rel=1e-4)
    assert next(model.generate(TEXT, 5, softmax_temperature=0)) == everything[0].token
    assert list(model.generate(TEXT, 5, seed=3)) == list(model.generate(TEXT, 5, seed=3))


def test_the_run_and_its_data_are_not_needed(classifier, tmp_path):
    """Recipes hold the paths of data: an export must hold neither them nor the text."""
    copy = shutil.copytree(classifier.parent, tmp_path / "all")
    export(copy / "run", tmp_path / "shared", measure=False)
    recipe = (copy / "run" / "recipe.toml").read_text()
    shutil.rmtree(copy)
    assert "questions.csv" in recipe
    for path in (tmp_path / "shared").rglob("*"):
        assert not path.is_file() or str(classifier.parent).encode() not in path.read_bytes()
    assert langevin.load(tmp_path / "shared").predict("where is Rome ?")[0].label == "place"


def test_a_classifier_gives_the_averaged_probabilities(classifier, tmp_path):
    export(classifier, tmp_path / "shared")
    task = open_run_task(RunFolder(classifier))
    texts = [*task.texts["test"], ""]
    model, mean = task.build_model(), 0
    for sample in RunFolder(classifier).store().read():
        sample.load_into(model)
        mean = mean + task.log_probs(model, "test").exp()
    decisions = langevin.load(tmp_path / "shared").predict(texts)
    found = torch.tensor([list(d.p.values()) for d in decisions])
    torch.testing.assert_close(found[:-1], mean / 4, atol=1e-5, rtol=1e-4)
    for d in decisions:
        assert 0 <= d.mutual_information <= d.entropy
        assert max(d.p.values()) == d.p[d.label]
    shares = task.class_counts / task.class_counts.sum()
    # no words: the shares of the classes
    torch.testing.assert_close(found[-1], shares, atol=1e-4, rtol=1e-3)


def test_a_captioner_captions(tmp_path):
    recipe = tiny_recipe(tmp_path)
    start(recipe, tmp_path / "run").run()
    task = open_run_task(RunFolder(tmp_path / "run"))
    features = task.features.take(torch.arange(3))
    export(tmp_path / "run", tmp_path / "shared", measure=False)
    shutil.rmtree(tmp_path / "run")
    model = langevin.load(tmp_path / "shared")
    captions = model.caption(features)
    assert len(captions) == 3
    assert model.caption(features[1])[0].caption == captions[1].caption
    with pytest.raises(LangevinError, match="12 features an image"):
        model.caption(features[:, :5])


def test_the_card_holds_what_was_measured(finished_run, tmp_path):
    config = export(finished_run, tmp_path / "shared", Selection("backward", 2), float16=True)
    card = (tmp_path / "shared" / "README.md").read_text()
    direct = open_posterior(finished_run, Selection("backward", 2)).evaluate()
    assert config.metrics.averaged_float32 == direct.averaged.present()
    effect = abs(config.metrics.averaged["nll"] - direct.averaged.nll)
    assert 0 < effect < 1e-3
    front = card.split("---\n")[1]
    assert "pipeline_tag: text-generation" in front
    assert f"value: {config.metrics.averaged['nll']:.6g}" in front
    assert "langevin export night shared --select backward --samples 2 --float16" in card
    assert f"{direct.averaged.nll:.6f}" in card
    assert config.sampler["temperature"] == 0.05


def test_chains_stay_apart_in_an_exported_folder(two_chains, tmp_path):
    metrics = export(two_chains, tmp_path / "shared").metrics
    assert metrics.averaged == open_posterior(two_chains).evaluate().averaged.present()
    for choice in ({}, {"samples": 2, "select": "backward"}, {"samples": 1, "select": "forward"}, {"samples": 3}):
        ours, theirs = (langevin.load(folder, **choice) for folder in (tmp_path / "shared", two_chains))
        assert [(s.chain, s.step) for s in ours.draws] == [(s.chain, s.step) for s in theirs.draws]
        assert ours.score(TEXT).nll == pytest.approx(theirs.score(TEXT).nll)
    with pytest.raises(LangevinError, match="between 1 and 4 samples"):
        langevin.load(tmp_path / "shared", samples=5)


def commands_on(card):
    return card.read_text().split("## How it was made\n\n```\n")[1].split("\n```")[0].splitlines()


def test_the_card_tells_how_the_run_was_made(finished_run, two_chains, tmp_path):
    for run, chains in ((finished_run, ""), (two_chains, " --chains 2")):
        export(run, tmp_path / run.name, measure=False)
        exported = f"langevin export {run.name} {run.name} --select thinned"
        assert commands_on(tmp_path / run.name / "README.md") == [f"langevin train recipe.toml{chains}", exported]


def test_the_card_of_a_student_names_its_teacher(two_chains, tmp_path, cli):
    teaching = Teaching(per_row=1, data_weight=0.25, generated=90)
    start_student(two_chains, tmp_path / "one", Selection("thinned", 3), teaching, hidden=6, epochs=0.5).run()
    export(tmp_path / "one", tmp_path / "shared", measure=False)
    card = tmp_path / "shared" / "README.md"
    assert str(two_chains.parent) not in card.read_text()
    made, exported = commands_on(card)
    options = ("--select thinned --samples 3 --discard 0 --hidden 6 --epochs 0.5 --per-row 1 --data-weight 0.25 "
               "--generated 90")
    assert made == f"langevin distill pair --out one {options}"
    assert exported == "langevin export one shared --select thinned"
    code, _, told = cli("distill", two_chains, "--out", tmp_path / "again", *options.split())
    assert code == 0, told
    recipes = [(tmp_path / name / "recipe.toml").read_text() for name in ("one", "again")]
    assert recipes[0] == recipes[1]
    one, again = (RunFolder(tmp_path / name) for name in ("one", "again"))
    assert one.origin.teacher == again.origin.teacher
    assert [s.sha256 for s in one.store().samples] == [s.sha256 for s in again.store().samples]


def test_float16_halves_the_samples(finished_run, tmp_path):
    export(finished_run, tmp_path / "whole", measure=False)
    export(finished_run, tmp_path / "half", float16=True, measure=False)
    size = {
        name: sum(p.stat().st_size for p in (tmp_path / name / "samples").glob("*.safetensors"))
        for name in ("whole", "half")
    }
    assert size["half"] < 0.7 * size["whole"]  # the headers of tiny samples do not shrink
    whole, half = (langevin.load(tmp_path / name).score(TEXT).nll for name in ("whole", "half"))
    assert half == pytest.approx(whole, abs=1e-3)
    assert half != whole


def test_without_data_the_card_tells_what_training_noted(finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    recipe = run / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("night.txt", "gone.txt"))
    metrics = export(run, tmp_path / "shared").metrics
    assert metrics.split == "valid"
    assert metrics.averaged == RunFolder(run).progress().history[-1].average


@pytest.mark.parametrize("name", ["vocabulary.json", "samples/manifest.jsonl", "config.json"])
def test_damage_is_named(alone, name):
    path = alone / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(LangevinError, match=r"changed after it was exported|expected JSON"):
        langevin.load(alone)


def test_a_damaged_sample_is_named_and_the_rest_usable(alone):
    victim = alone / "samples" / "sample-0001.safetensors"
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    with pytest.raises(LangevinError, match="sample-0001"):
        langevin.load(alone).score(TEXT)
    assert len(langevin.load(alone, skip_damaged=True)) == 2


def test_a_run_folder_can_be_loaded_too(finished_run, tmp_path):
    assert len(langevin.load(finished_run, samples=2)) == 2
    with pytest.raises(LangevinError, match="expected an exported model or a run"):
        langevin.load(tmp_path)


def test_the_command_and_what_it_refuses(cli, finished_run, tmp_path, tiny):
    out = tmp_path / "shared"
    code, printed, _ = cli("export", finished_run, out, "--samples", 2, "--float16", "--json")
    assert code == 0
    assert json.loads(printed)["samples"] == 2
    assert not list(tmp_path.glob(".*"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    start(tiny(), tmp_path / "begun").save()
    for arguments, message in [
        ((finished_run, out), "already holds an exported model"),
        ((finished_run, tmp_path / "full", "--overwrite"), "holds something else"),
        ((tmp_path / "full", tmp_path / "new"), "expected a run folder"),
        ((tmp_path / "begun", tmp_path / "new"), "expected samples in"),
        ((finished_run, tmp_path / "new", "--samples", 0), "between 1 and 4"),
    ]:
        code, _, messages = cli("export", *arguments)
        assert code == 2
        assert message in messages
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep"
    assert not (tmp_path / "new").exists()
    code, printed, _ = cli("export", finished_run, out, "--overwrite", "--no-evaluate")
    assert code == 0
    assert "4 samples" in printed


@pytest.mark.parametrize("name", ["../precious.json", "/etc/hostname", "notes.txt"])
def test_an_export_reads_nothing_outside_its_folder(alone, name):
    config = json.loads((alone / "config.json").read_text())
    config["files"][name] = "0" * 64
    write_sealed(alone / "config.json", config)
    with pytest.raises(LangevinError, match="expected checksums of"):
        langevin.load(alone)


def test_links_out_of_an_export_are_not_followed(alone, tmp_path):
    for name in ("config.json", "vocabulary.json", "samples"):
        moved = (alone / name).rename(tmp_path / "moved")
        (alone / name).symlink_to(moved)
        with pytest.raises(LangevinError, match="leads out of it"):
            langevin.load(alone)
        (alone / name).unlink()
        moved.rename(alone / name)
    assert langevin.load(alone)

"""What `evaluate --captions` refuses before its work, and what it gives of several chains or with
metrics missing."""

from __future__ import annotations

import json
import os
import sys

import pytest
from rich.console import Console

from langevin.predict.caption_scores import notes, score_models
from langevin.predict.captioning import BeamSettings, CaptionPosterior
from langevin.predict.load import open_as
from langevin.predict.coco import METRICS, CocoScores, evaluate_captions
from langevin.posterior.scores import SampleScores, Scores
from langevin.predict.results import CaptionMetrics, Evaluation
from langevin.report.tables import evaluation_tables
from langevin.report.terminal import text_table
from langevin.training.chains import start_chains
from langevin.training.session import resume, start
from paper.record import record
from tests.tiny_captions import tiny_recipe


@pytest.fixture(scope="module")
def chains_run(tmp_path_factory):
    """Two chains of a captioner, two samples each."""
    folder = tmp_path_factory.mktemp("captions")
    recipe = tiny_recipe(folder, "epochs=2", "burn_in=1", "sample_every=0.5", "dropout=0.1")
    for chain in start_chains(recipe, folder / "run", 2).chains:
        resume(chain.path).run()
    return folder / "run"


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    pytest.importorskip("pycocoevalcap")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.usefixtures("no_java")
def test_captions_of_chains(chains_run, tmp_path, cli):
    code, printed, told = cli("evaluate", chains_run, "--captions", tmp_path / "c.json")
    assert code == 0, told
    assert "chain 1, average of 2" in printed
    assert "average of 4" in printed
    assert "bleu_1" in printed


@pytest.mark.usefixtures("no_java")
def test_the_result_says_how_it_was_made(chains_run, tmp_path, cli):
    options = ("--beam", 2, "--length-power", 0.5, "--max-length", 1, "--json")
    code, printed, _ = cli("evaluate", chains_run, "--captions", tmp_path / "c.json", *options)
    assert code == 0
    result = json.loads(printed)
    settings = {"beam": 2, "length_power": 0.5, "max_length": 1, "tokenizer": "plain"}
    assert {key: result["captions"][key] for key in settings} == settings
    assert result["captions"]["notes"][0].startswith("meteor is missing: ")
    written = json.loads((tmp_path / "c.json").read_text())
    assert max(len(row["caption"].split()) for row in written) == 1


@pytest.mark.usefixtures("no_java")
def test_recorded_captions_are_of_four_models(tmp_path, cli):
    recipe = tiny_recipe(tmp_path, "epochs=4", "burn_in=1", "sample_every=0.5", name="flickr8k-psgld")
    start(recipe, tmp_path / "run").run()
    numbers = record(tmp_path / "run")
    test, chosen = numbers["test"], numbers["chosen"]
    best = min(range(6), key=lambda at: numbers["valid"]["each"][at]["nll"])
    assert [at for at, each in enumerate(test["each"]) if "cider" in each] == [best]
    for kind, options in {"averaged": (), "chosen": ("--select", chosen["select"], "--samples", chosen["samples"]),
                          "best": ("--select", "forward", "--samples", best + 1)}.items():
        asked = ("--captions", tmp_path / f"{kind}.json", *options, "--json")
        told = json.loads(cli("evaluate", tmp_path / "run", *asked)[1])
        seen = told["captions"]["last" if kind == "best" else "averaged"]["cider"]
        ours = {"averaged": test["averaged"], "best": test["each"][best], "chosen": chosen["metrics"]}[kind]["cider"]
        assert ours == pytest.approx(seen)
    assert (test["beam"], test["tokenizer"]) == (5, "plain")
    assert test["notes"]


@pytest.mark.usefixtures("no_java")
def test_models_that_write_the_same_are_scored_once(chains_run, tmp_path, monkeypatch):
    run, seen = open_as(CaptionPosterior, chains_run), []

    def counted(references, written):
        seen.append(tuple(written.values()))
        return evaluate_captions(references, written)

    monkeypatch.setattr("langevin.predict.caption_scores.evaluate_captions", counted)
    models = {"one": run.draws[:1], "same": run.draws[:1], "all": run.draws}
    files = {kind: tmp_path / f"{kind}.json" for kind in models}
    scores = score_models(run, "test", models, BeamSettings(), files)
    assert len(seen) == len(set(seen)) < len(models)
    assert scores["one"] == scores["same"]
    for kind, path in files.items():
        written = {row["image_id"]: row["caption"] for row in json.loads(path.read_text())}
        assert tuple(written.values()) in seen, kind


def test_without_the_package_the_perplexity_is_given(chains_run, tmp_path, cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycocoevalcap.bleu.bleu", None)
    code, printed, told = cli("evaluate", chains_run, "--captions", tmp_path / "c.json", "--json")
    assert code == 0
    result = json.loads(printed)
    assert result["averaged"]["perplexity"] > 1
    assert (result["captions"]["tokenizer"], len(result["captions"]["notes"])) == ("none", 1)
    assert "bleu_1, bleu_2, bleu_3, bleu_4, meteor, rouge_l, cider are missing" in told
    assert 'pip install "langevin[caption]"' in told
    assert (tmp_path / "c.json").is_file()


@pytest.fixture
def no_work(monkeypatch):
    def open_posterior(*arguments, **options):
        raise AssertionError("the evaluation began")

    monkeypatch.setattr("langevin.cli.judge.open_posterior", open_posterior)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("out", "options", "message"),
    [
        ("c.json", ("--beam", 0), "beam must be at least 1, got 0"),
        ("c.json", ("--beam", 10**9), "beam must be at most 1000"),
        ("c.json", ("--max-length", 0), "at least 1 word, got 0"),
        ("c.json", ("--length-power", -1), "the length power must be a number of at least 0"),
        ("c.json", ("--text", "other.txt"), "got --text other.txt too; leave one out"),
        ("c.json", ("--mc-dropout", 3), "got 3 masks of Monte-Carlo dropout; leave --mc-dropout or --captions out"),
        (".", (), "got the folder .; name a file in it"), ("/", (), "got the folder /; name a file in it"),
        ("..", (), "got the folder .."), ("absent/..", (), "got the folder absent/.."),
        ("there.json", (), "there.json exists; choose another file for --captions or allow --overwrite"),
        ("half.json", (), "half-last.json exists"), ("there.json/c.json", (), "there.json, which cannot be written to"),
        ("x" * 300, (), "File name too long; choose another file"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_before_the_work(chains_run, tmp_path, cli, monkeypatch, out, options, message):
    monkeypatch.chdir(tmp_path)
    for name in ("there.json", "half-last.json"):
        (tmp_path / name).write_text("mine")
    code, _, told = cli("evaluate", chains_run, "--captions", out, *options)
    assert code == 2
    assert message in told
    assert "Traceback" not in told
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "there.json": "mine", "half-last.json": "mine"}


@pytest.mark.usefixtures("no_work")
def test_a_folder_that_may_not_be_written_to_is_refused(chains_run, tmp_path, cli, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    code, _, told = cli("evaluate", chains_run, "--captions", tmp_path / "new" / "c.json")
    assert code == 2
    assert f"{tmp_path}, which cannot be written to" in told


@pytest.mark.usefixtures("no_work")
def test_captions_need_a_captioner(finished_run, tmp_path, cli):
    code, _, told = cli("evaluate", finished_run, "--captions", tmp_path / "c.json", "--quiet")
    assert code == 2
    assert "expected the run of a captioner" in told


def test_single_samples_of_chains_are_named_with_their_chain(chains_run, cli):
    features = ("--features", chains_run.parent / "features.npy", "test0.jpg", "--per-sample", 2)
    code, printed, _ = cli("caption", chains_run, *features)
    assert code == 0
    assert "chain 0, sample of step" in printed
    assert "chain 1, sample of step" in printed
    told = json.loads(cli("caption", chains_run, *features, "--json")[1])
    assert sorted({single["chain"] for single in told["images"][0]["per_sample"]}) == [0, 1]
    printed = cli("caption", chains_run / "chain-0", *features)[1]
    assert "sample of step" in printed
    assert "chain 0" not in printed.replace("chain-0", "")


def test_notes_of_both_models_are_told():
    whole = CocoScores({"meteor": 0.5}, {}, "ptb", ())
    without = CocoScores({}, {"meteor": "no answer"}, "plain", ("plain tokeniser",))
    assert notes({"averaged": whole, "single": whole}) == []
    assert notes({"averaged": without, "single": without}) == ["meteor is missing: no answer", "plain tokeniser"]
    one = ["single only: meteor is missing: no answer", "single only: plain tokeniser"]
    assert notes({"averaged": whole, "single": without}) == one


def shown(result, width=80):
    console = Console(width=width, highlight=False)
    with console.capture() as caught:
        for sheet in evaluation_tables(result):
            console.print(text_table(sheet))
    return caught.get()


def result_of(last, averaged, chains=0):
    basic = Scores(2.73912, 58_391, perplexity=15.4729)
    rows = tuple(SampleScores(Scores(2.73912 + k, 58_391 + k, perplexity=15.4729 + k), k, samples=10)
                 for k in range(chains))  # fmt: skip
    words = CaptionMetrics(last, averaged, {}, 5, 0.0, 20, "plain")
    return Evaluation("caption", "runs/captions", "test", "word", "nll", "thinned", "thinned collection, 20 samples",
                      20, 1.0, basic, basic, chains=rows, captions=words)  # fmt: skip


@pytest.mark.parametrize("chains", [0, 2, 12])
def test_many_metrics_fit_eighty_columns(chains):
    scores = {name: 0.1 + number / 100 for number, name in enumerate(METRICS)}
    text = shown(result_of(scores, {name: 2 * value for name, value in scores.items()}, chains))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    lines = [line.split("│")[1:-1] for line in text.splitlines() if line.startswith("│")]
    table = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}
    for name, value in scores.items():
        assert table[name] == [f"{value:.4f}", f"{2 * value:.4f}"]
    assert table["perplexity"] == ["15.4729", "15.4729"]
    assert text.count("average of 10") == chains
    for k in range(chains):
        assert table[f"chain {k}, average of 10"][:3] == [f"{2.73912 + k:.4f}", f"{15.4729 + k:.4f}", f"{58_391 + k:,}"]


def test_a_metric_of_one_model_is_shown_and_blank_for_others():
    scores = dict.fromkeys(METRICS, 0.5)
    lacking = {name: value for name, value in scores.items() if name != "meteor"}
    for result, expected in (
        (result_of(lacking, scores | {"meteor": 0.25}), ["", "0.2500"]),
        (result_of(scores | {"meteor": 0.25}, lacking), ["0.2500", ""]),
    ):
        line = next(line for line in shown(result).splitlines() if "meteor" in line)
        assert [cell.strip() for cell in line.split("│")[2:-1]] == expected
    few = shown(result_of({}, {"meteor": 0.25}, chains=2))  # models as rows
    assert few.count("0.2500") == 1
    assert "chain 1, average of 10" in few

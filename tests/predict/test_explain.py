import json
import math

import pytest
import torch

import langevin
from langevin.data.vocabulary import END, Vocabulary
from langevin.predict.explain import explain_run
from langevin.predict.generate import narrow
from langevin.recipe import load_recipe
from langevin.report.controls import show_controls
from langevin.store.folder import RunFolder
from langevin.training.session import start
from tests.conftest import TINY


@pytest.fixture(scope="module")
def word_run(tmp_path_factory, text_file):
    path = tmp_path_factory.mktemp("words")
    lines = path / "lines.txt"
    lines.write_text(text_file.read_text().replace(". ", " .\n"))
    start(load_recipe("text", [f"corpus={lines}", "level=word", "dropout=0.5", *TINY]), path / "run").run()
    return path / "run"


def test_average_is_of_probabilities(word_run):
    result = explain_run(word_run, "the snow lay deep on")
    assert result["tokens"] == ["the", "snow", "lay", "deep", "on"]
    for at, averaged in enumerate(result["averaged"]):
        assert averaged == pytest.approx(sum(row[at] for row in result["each"]) / len(result["each"]), rel=1e-5)


def test_table_json_and_figure(cli, word_run, tmp_path):
    figure = tmp_path / "f.png"
    code, printed, _ = cli("explain", word_run, "the snow lay deep", "--samples", "2", "--figure", figure)
    assert code == 0
    assert "average" in printed
    assert figure.stat().st_size > 5000
    code, printed, _ = cli("explain", word_run, "the snow", "--json")
    assert len(json.loads(printed)["averaged"]) == 2


def test_every_token_is_scored_after_the_start(finished_run):
    assert explain_run(finished_run, "snow")["tokens"] == ["s", "n", "o", "w"]


def test_unknown_words_are_spelled_out(word_run):
    result = explain_run(word_run, "the zebra lay")
    assert result["tokens"] == ["the", "<unk>", "lay"]
    assert result["shown"] == ["the", "<unk:zebra>", "lay"]
    assert result["unknown_share"] == pytest.approx(1 / 3)
    named = langevin.load(word_run).score("the zebra lay").tokens
    assert [(token.token, token.word) for token in named] == [
        ("the", None), ("<unk>", "zebra"), ("lay", None)]


@pytest.mark.parametrize(("arguments", "message"), [
    (["explain", "RUN", ""], "at least one token"), (["explain", "RUN", "a", "--figure", "f.xyz"], "ending in .png")])
def test_bad_input(cli, word_run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, messages = cli(*[str(word_run) if a == "RUN" else a for a in arguments])
    assert code == 2
    assert message in messages


def test_monte_carlo_dropout(cli, word_run, finished_run):
    code, printed, _ = cli("evaluate", word_run, "--mc-dropout", "6", "--json")
    assert code == 0
    masked = json.loads(printed)
    assert masked["samples"] == 6
    assert len({each["nll"] for each in masked["each"]}) == 6
    plain = json.loads(cli("evaluate", word_run, "--json")[1])
    assert masked["each"][0]["nll"] != plain["single"]["nll"]
    code, _, messages = cli("evaluate", finished_run, "--mc-dropout", "3")
    assert code == 2
    assert "trained with dropout" in messages


def test_top_k_and_top_p():
    p = torch.tensor([0.1, 0.4, 0.3, 0.2])
    assert narrow(p, 2, None).tolist() == pytest.approx([0, 0.4, 0.3, 0])
    assert narrow(p, None, 0.65).tolist() == pytest.approx([0, 0.4, 0.3, 0])
    assert narrow(p, None, 0.75).tolist() == pytest.approx([0, 0.4, 0.3, 0.2])
    assert narrow(p, None, 1e-9).tolist() == pytest.approx([0, 0.4, 0, 0])
    assert torch.equal(narrow(p, None, None), p)
    assert math.isclose(float(narrow(p, 3, 1.0).sum()), 0.9, rel_tol=1e-6)


def test_generation_is_reproducible_and_greedy_at_temperature_0(cli, word_run):
    options = ["generate", word_run, "--prompt", "the snow", "--length", "12", "--json"]
    texts = [json.loads(cli(*options, "--seed", s)[1])["text"] for s in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    greedy = {json.loads(cli(*options, "--temperature", "0", "--seed", s)[1])["text"] for s in (1, 2)}
    top = json.loads(cli(*options, "--top-k", "1")[1])["text"]
    assert greedy == {top}
    assert cli(*options, "--top-p", "2")[0] == 2


def test_generation_goes_on_with_the_prompt_as_in_python(cli, word_run):
    """The line of the prompt stays open; the same text comes from the command, from Python, and while streaming."""
    options = ["generate", word_run, "--prompt", "the snow", "--length", "25", "--temperature", "1", "--seed", "3"]
    written = json.loads(cli(*options, "--json")[1])["text"]
    predictor = langevin.load(word_run)
    assert predictor.generate("the snow", 25, temperature=1.0, seed=3) == written
    assert END in predictor.vocabulary.numbers
    streamed = cli(*options)[1]
    assert END not in streamed
    assert [line.split() for line in streamed.rstrip().split("\n")] == [
        line.split() for line in f"the snow {written}".rstrip().split("\n")
    ]


def test_a_prompt_is_open_unless_it_ends_its_line(word_run):
    vocabulary = RunFolder(word_run).vocabulary
    the, snow, end = (vocabulary.numbers[word] for word in ("the", "snow", END))
    assert vocabulary.spell("the snow").tokens.tolist() == [end, the, snow]
    assert vocabulary.spell("the snow\n").tokens.tolist() == [end, the, snow, end]
    assert vocabulary.spell("").tokens.tolist() == [end]
    running = Vocabulary("word", vocabulary.tokens[:], running=True)
    running.numbers.pop(END)
    assert running.spell("the").tokens.tolist() == [vocabulary.numbers["<unk>"], the]


def test_letters_of_several_bytes_without_the_training_text(cli, tmp_path):
    text = tmp_path / "cafe.txt"
    text.write_text("le café était déjà fermé à l'été " * 40, "utf-8")
    start(load_recipe("text", [f"corpus={text}", "level=byte", *TINY]), tmp_path / "run").run()
    text.unlink()
    options = ["generate", tmp_path / "run", "--prompt", "le café ", "--length", "300", "--temperature", "1"]
    whole = json.loads(cli(*options, "--json")[1])["text"]
    assert "é" in whole
    assert cli(*options)[1] == f"le café {show_controls(whole)}\n"
    assert explain_run(tmp_path / "run", "été")["tokens"] == ["é", "", "t", "é", ""]
    code, _, said = cli("generate", tmp_path / "run")
    assert code == 2
    assert "cafe.txt" in said

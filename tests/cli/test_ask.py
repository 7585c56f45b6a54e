"""generate, explain, score: what the door answers, printed."""

import json
import math

import pytest

import langevin
from langevin.data.vocabulary import END


def test_explain_shows_tokens_by_part(cli, word_run, tmp_path):
    figure = tmp_path / "f.png"
    code, printed, said = cli("explain", word_run, "the zebra lay", "--parts", "2", "--figure", figure)
    assert code == 0
    assert "average" in printed
    assert "<unk:zebra>" in printed
    assert "33 % of the tokens are <unk>" in said
    assert figure.stat().st_size > 5000
    answer = json.loads(cli("explain", word_run, "the snow", "--json")[1])
    score = langevin.load(word_run).score("the snow")
    assert answer["nll"] == score.nll
    assert [token["p"] for token in answer["tokens"]] == [token.p for token in score.tokens]


def test_texts_and_files_are_scored_one_by_one(cli, word_run, tmp_path):
    file = tmp_path / "some.txt"
    file.write_text("the snow lay deep\n" * 20)
    options = ["score", word_run, "the snow", "yak yak", "--file", file]
    first, second, whole = json.loads(cli(*options, "--json")[1])
    posterior = langevin.load(word_run)
    assert first["scores"]["nll"] == pytest.approx(posterior.score("the snow").nll)
    assert first["scores"]["perplexity"] == pytest.approx(math.exp(first["scores"]["nll"]))
    assert (whole["source"], whole["scores"]["items"]) == (str(file), 100)
    assert second["scores"]["unknown_share"] == 1
    code, printed, said = cli(*options)
    assert code == 0
    assert f"{whole['scores']['nll']:.4f}" in printed
    assert said.split("\n")[1:-1] == ["yak yak: 100 % of the tokens are <unk>, for unknown: the "
                                 "numbers do not compare with those of other texts"]
    adapted = json.loads(cli(*options, "--adapt", "--json")[1])[2]
    assert adapted["adapted"]
    assert adapted["scores"]["nll"] == posterior.measure(file, adapt=True).nll
    assert adapted["scores"]["nll"] != whole["scores"]["nll"]


def test_generation_goes_on_with_the_prompt_as_in_python(cli, word_run):
    """The line of the prompt stays open; the command, Python and the stream have the same text."""
    options = ["generate", word_run, "--prompt", "the snow", "--length", "25", "--temperature", "1",
               "--seed", "3"]
    answer = json.loads(cli(*options, "--json")[1])
    pieces = langevin.load(word_run).generate("the snow", 25, softmax_temperature=1.0, seed=3)
    assert "".join(pieces) == answer["text"]
    streamed = cli(*options)[1]
    assert END not in streamed
    assert streamed == f"the snow{answer['text']}\n"
    assert answer["softmax_temperature"] == 1
    assert answer["samples"] == len(langevin.load(word_run))


def test_unknown_words_of_a_prompt_are_said(cli, word_run):
    code, _, said = cli("generate", word_run, "--prompt", "the okapi", "--length", "3")
    assert code == 0
    assert "read as <unk>: okapi" in said  # each thing is said once


def test_a_text_can_begin_without_prompt_and_training_text(cli, finished_run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, printed, _ = cli("generate", finished_run, "--length", "20")
    assert code == 0
    assert len(printed) == 21


@pytest.mark.parametrize(("arguments", "message"), [
    (["explain", "RUN", ""], "at least one token"),
    (["explain", "RUN", "a", "--figure", "f.xyz"], "ending in .png"),
    (["score", "RUN"], "expected a text, got none"),
    (["score", "RUN", " "], "at least one token"),
    (["score", "RUN", "--file", "absent.txt"], "absent.txt"),
    (["generate", "RUN", "--top-p", "2"], "top_p in (0, 1]"),
    (["generate", "RUN", "--temperature", "-1"], "greater than or equal to 0"),
])
def test_bad_input(cli, word_run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, messages = cli(*[str(word_run) if a == "RUN" else a for a in arguments])
    assert code == 2
    assert message in messages


def test_only_language_models_write(cli, classifier_run):
    for command in (["generate"], ["explain", "a"], ["score", "a"]):
        code, _, said = cli(command[0], classifier_run, *command[1:])
        assert code == 2
        assert "expected the run of a language model" in said

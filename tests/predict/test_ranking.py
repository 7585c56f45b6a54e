"""Uncertainty of runs of each task: equal to what evaluation says, and to a plain pass over all
probabilities."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior.streaming import predictive
from langevin.predict import ranking as run_uncertainty
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.tasks import open_run_task
from langevin.posterior.selection import Selection
from langevin.predict.load import open_posterior
from langevin.training.session import start
from tests.conftest import SENTENCE, TINY
from tests.sentences import TINY_CLASSIFIER, write_questions
from tests.tiny_captions import tiny_recipe


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    recipe = load_recipe("trec-psgld", [f"corpus={write_questions(folder / 'q.txt')}", *TINY_CLASSIFIER])
    start(recipe, folder / "run").run()
    return folder / "run"


@pytest.fixture(scope="module")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captions")
    start(tiny_recipe(folder), folder / "run").run()
    return folder / "run"


@pytest.fixture(scope="module")
def random_run(text_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on windows read from a zero state, words instead of letters."""
    out = tmp_path_factory.mktemp("random") / "run"
    start(load_recipe("text", [f"corpus={text_file}", *TINY, "batching=random", "level=word", "parts=[60,20,20]"]),
          out).run()
    return out


def assert_equals_evaluation(path: Path) -> None:
    """The NLL of last sample and average is that of `evaluate`, to rounding."""
    posterior = open_posterior(path)
    made, expected = posterior.rank().result, posterior.evaluate()
    assert made.items == made.available
    for key in ("last", "averaged"):
        assert getattr(made, key).nll == pytest.approx(getattr(expected, key).nll, rel=1e-5)
    assert made.entropy == pytest.approx(made.aleatoric + made.mutual_information, abs=1e-6)
    assert made.mutual_information > 0


def test_text_equals_evaluation(finished_run: Path) -> None:
    """State is carried along the streams, and into the tail after the last of them."""
    assert len(open_run_task(RunFolder(finished_run)).evaluated["test"].tail)
    assert_equals_evaluation(finished_run)


def test_random_windows_equal_evaluation(random_run: Path) -> None:
    assert_equals_evaluation(random_run)


def test_captions_equal_evaluation(captioner: Path) -> None:
    assert_equals_evaluation(captioner)


def test_sentences_equal_evaluation(classifier: Path) -> None:
    assert_equals_evaluation(classifier)
    posterior = open_posterior(classifier)
    made, expected = posterior.rank().result, posterior.evaluate()
    for name in ("brier", "ece", "error"):
        assert made.averaged.present()[name] == pytest.approx(expected.averaged.present()[name], abs=1e-6)


@pytest.mark.parametrize("block", [1, 2000])
def test_blocks_change_nothing(finished_run: Path, block: int, monkeypatch) -> None:
    """One state for each sample goes from block to block, however small they are."""
    whole = open_posterior(finished_run).rank("test").predictions
    monkeypatch.setattr(run_uncertainty, "BLOCK", block)
    cut = open_posterior(finished_run).rank("test").predictions
    torch.testing.assert_close(cut.each, whole.each, rtol=0, atol=1e-5)
    torch.testing.assert_close(cut.summary.epistemic, whole.summary.epistemic, rtol=0, atol=1e-5)


def test_tokens_are_those_of_a_plain_pass(finished_run: Path) -> None:
    """The first stream, all classes of all samples at once: entropy, mutual information and spread
    of its tokens."""
    folder = RunFolder(finished_run)
    task = open_run_task(folder)
    model = task.build_model().eval()
    stream = task.evaluated["test"].streams[0].long()
    each = []
    for sample in folder.store().read():
        sample.load_into(model)
        with torch.no_grad():
            each.append(torch.log_softmax(model(stream[None, :-1])[0][0], -1))
    plain = predictive(each)
    probability, std = plain.of(stream[1:])
    made = open_posterior(finished_run).rank("test", top=100_000)
    mine = {item.place[1]: item for item in made.result.top if item.place[0] == 0}
    assert len(mine) >= len(stream) - 1
    for place in range(1, len(stream)):
        expected = {"p": probability, "std": std, "confidence": plain.confidence, "entropy": plain.total,
                    "aleatoric": plain.aleatoric, "mutual_information": plain.epistemic}
        for name, values in expected.items():
            assert getattr(mine[place], name) == pytest.approx(float(values[place - 1]), abs=1e-5), name


def test_the_most_uncertain_token_stands_in_its_context(finished_run: Path) -> None:
    made = open_posterior(finished_run).rank("test", top=5)
    assert made.result.by == "mutual_information"
    scores = [item.score for item in made.result.top]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(float(made.predictions.summary.epistemic.max()))
    for item in made.result.top:
        context = "".join(token for token, _ in item.context)
        assert context in SENTENCE * 2
        assert item.context[item.at] == (item.text, pytest.approx(item.score))


def test_fewer_tokens_are_the_first_of_every_stream(finished_run: Path) -> None:
    whole = open_posterior(finished_run).rank("test", top=100_000)
    few = open_posterior(finished_run).rank("test", tokens=40, top=100_000)
    assert 40 <= few.result.items < 60 < few.result.available == whole.result.items
    known = {item.place: item.entropy for item in whole.result.top}
    assert {item.place[0] for item in few.result.top} == {place[0] for place in known}
    for item in few.result.top:
        assert item.entropy == pytest.approx(known[item.place], abs=1e-5)


def test_captions_are_ranked_by_their_words(captioner: Path) -> None:
    made = open_posterior(captioner).rank("test", top=3)
    first = made.result.top[0]
    words, scores = zip(*first.context, strict=True)
    assert " ".join(words) == f"{first.text} <eos>"
    assert first.score == pytest.approx(sum(scores) / len(scores), abs=1e-6)
    assert first.mutual_information == pytest.approx(first.score, abs=1e-6)
    assert first.log_p < 0 < first.log_p_std
    assert first.source.startswith("test")
    few = open_posterior(captioner).rank("test", tokens=50)
    assert 20 < few.result.items < few.result.available


def test_sentences_come_with_class_and_prediction(classifier: Path) -> None:
    made = open_posterior(classifier).rank("test", top=3, by="entropy")
    assert [item.score for item in made.result.top] == [item.entropy for item in made.result.top]
    assert all(item.text and item.label and item.predicted for item in made.result.top)


def test_one_sample_is_ranked_by_entropy(finished_run: Path) -> None:
    made = open_posterior(finished_run, Selection(samples=1)).rank()
    assert made.result.by == "entropy"
    assert made.result.mutual_information == 0


def test_refusals(finished_run: Path, tmp_path: Path) -> None:
    with pytest.raises(LangevinError, match="split must be one of"):
        open_posterior(finished_run).rank("tset")
    with pytest.raises(LangevinError, match="statistic must be one of"):
        open_posterior(finished_run).rank(by="entropie")
    with pytest.raises(LangevinError, match="at least 1 token"):
        open_posterior(finished_run).rank(tokens=0)
    with pytest.raises(LangevinError, match="expected an exported model or a run"):
        open_posterior(tmp_path).rank()


def test_command_for_each_task(cli, finished_run: Path, classifier: Path, captioner: Path) -> None:
    for run, listed in ((finished_run, "in its context"), (classifier, "predicted"), (captioner, "caption")):
        code, out, _ = cli("uncertainty", run, "--top", 3, "--quiet")
        assert code == 0
        assert "aleatoric" in out
        assert "last sample" in out
        assert listed in out
        code, out, _ = cli("uncertainty", run, "--top", 2, "--samples", 2, "--json")
        numbers = json.loads(out)
        assert code == 0
        assert numbers["samples"] == 2
        assert len(numbers["top"]) == 2
    code, out, _ = cli("uncertainty", finished_run, "--tokens", 40, "--quiet")
    assert f"of {open_posterior(finished_run).evaluate().averaged.items:,} tokens" in out
    code, _, err = cli("uncertainty", finished_run, "--by", "mood")
    assert code == 2
    assert "statistic must be one of" in err

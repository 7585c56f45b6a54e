"""A language model at the door: one score, one way to go on, whatever it is made of."""

import math

import pytest
import torch

import langevin
from langevin.data.vocabulary import END, Vocabulary
from langevin.errors import LangevinError
from langevin.models.counts import Counts
from langevin.posterior.ensemble_reader import EnsembleReader
from langevin.posterior.pool import Member, Pool
from langevin.posterior.selection import EVERYTHING
from langevin.predict.language import LanguagePosterior
from langevin.predict.load import open_as
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.training.session import start
from tests.conftest import TINY

TEXT = "the snow lay deep on"


def probabilities(posterior: LanguagePosterior, text: str) -> torch.Tensor:
    """p of all tokens at each place by each sample, one after the other: [samples, tokens, V]."""
    tokens, rows = posterior.vocabulary.spell(text).tokens, []
    for sample in posterior.draws:
        sample.load_into(posterior.model)
        rows.append(posterior.model(tokens[None, :-1])[0][0].double().softmax(-1).detach())
    return torch.stack(rows)


def entropy(p: torch.Tensor) -> torch.Tensor:
    return -(p * p.log()).sum(-1)


def test_a_score_is_of_the_average_of_the_samples(word_run):
    posterior = open_as(LanguagePosterior, word_run, EVERYTHING)
    p, score = probabilities(posterior, TEXT), posterior.score(TEXT)
    assert [token.token for token in score.tokens] == TEXT.split()
    observed = posterior.vocabulary.spell(TEXT).tokens[1:]
    each = p[:, range(5), observed]
    mean = p.mean(0)
    expected = {
        "p": each.mean(0), "std": each.std(0), "entropy": entropy(mean),
        "mutual_information": entropy(mean) - entropy(p).mean(0),
    }
    for name, values in expected.items():
        found = [getattr(token, name) for token in score.tokens]
        assert found == pytest.approx(values.tolist(), rel=1e-3, abs=1e-7), name
    assert [token.parts for token in score.tokens] == [
        pytest.approx(row, rel=1e-4) for row in each.T.tolist()]
    assert score.labels == tuple(f"step {sample.step}" for sample in posterior.draws)
    assert score.samples == len(posterior.draws) == 4
    assert score.nll == pytest.approx(-each.mean(0).log().mean().item(), rel=1e-5)
    assert score.perplexity == pytest.approx(math.exp(score.nll))


@pytest.mark.parametrize("adapt", [False, True])
def test_a_whole_text_measures_as_the_sum_of_its_tokens(word_run, adapt, monkeypatch):
    monkeypatch.setattr("langevin.predict.language.PROBABILITIES", 1000)
    monkeypatch.setattr("langevin.predict.language.CHUNK", 7)
    posterior, text = langevin.load(word_run), f"{TEXT} the road\n" * 6
    score, whole = posterior.score(text, adapt), posterior.measure(text, adapt)
    assert whole.items == len(score.tokens) == 48
    assert whole.nll == pytest.approx(score.nll, rel=1e-6)
    bits = pytest.approx(score.nll * 48 / math.log(2) / len(text))
    assert whole.bits_per_byte == bits
    assert score.bits_per_byte == bits
    assert (whole.nll == pytest.approx(posterior.measure(text).nll, rel=1e-9)) == (not adapt)


def test_bits_of_a_byte_are_told_where_tokens_give_the_bytes(word_run, finished_run):
    words, letters = langevin.load(word_run), langevin.load(finished_run)
    assert words.measure("the zebra lay").bits_per_byte is None
    assert words.measure("the  snow").bits_per_byte is None
    one = letters.measure("The snow")
    assert one.bits_per_byte == pytest.approx(one.nll / math.log(2))


def test_a_file_is_a_text(finished_run, word_run, tmp_path):
    file = tmp_path / "some.txt"
    file.write_text(f"{TEXT}\n{TEXT}\n")
    for run in (finished_run, word_run):
        posterior = langevin.load(run)
        assert posterior.measure(file) == posterior.measure(file.read_text())


def test_unknown_words_are_told(word_run, caplog):
    posterior = langevin.load(word_run)
    score = posterior.score("the zebra lay")
    assert [(token.token, token.word) for token in score.tokens] == [
        ("the", None), ("<unk>", "zebra"), ("lay", None)]
    assert score.unknown_share == posterior.measure("the zebra lay").unknown_share
    assert score.unknown_share == pytest.approx(1 / 3)
    assert not caplog.messages
    posterior.next("the zebra", top=1)
    posterior.generate("a yak", 1)
    assert caplog.messages == ["read as <unk>: zebra", "read as <unk>: yak"]


def test_every_token_is_scored_after_the_start(finished_run, word_run):
    posterior = langevin.load(finished_run)
    score = posterior.score("snow")
    assert [token.token for token in score.tokens] == ["s", "n", "o", "w"]
    first = {token.token: token.p for token in posterior.next("", top=1000)}
    assert score.tokens[0].p == pytest.approx(first["s"], rel=1e-5)
    with pytest.raises(LangevinError, match="at least one token"):
        langevin.load(word_run).measure(" ")


class WithCounts(LanguagePosterior):
    """Beside the network, counts of some text."""

    def members(self, adapt: bool = False) -> list[Member]:
        vocabulary = self.vocabulary
        text = vocabulary.spell("the snow lay deep on the road\n" * 20).tokens[1:]
        counts = Counts.learn(text, len(vocabulary), 3, start=[vocabulary.start])
        network = super().members(adapt)[0]
        return [Member(network.name, network.reader, 0.7),
                Member("counts", counts.reader(adapt=adapt), 0.3)]


def test_other_members_take_part_in_all_answers(word_run):
    alone = open_as(LanguagePosterior, word_run)
    pooled = WithCounts(alone.opened, alone.device)
    assert isinstance(alone.reader(), EnsembleReader)
    assert isinstance(alone.reader(adapt=True), Pool)
    assert isinstance(pooled.reader(), Pool)
    score, lone = pooled.score(TEXT), alone.score(TEXT)
    assert score.labels == (*lone.labels, "counts")
    for token, other in zip(score.tokens, lone.tokens, strict=True):
        assert token.parts[:-1] == other.parts
        assert token.p == pytest.approx(0.7 * other.p + 0.3 * token.parts[-1], rel=1e-6)
    assert pooled.measure(TEXT).nll == pytest.approx(score.nll, rel=1e-6)
    assert pooled.next("the", top=1)[0].token == "snow"
    written = "".join(pooled.generate("the snow", 4, softmax_temperature=0))
    assert written == " lay deep on the"


def test_generation_is_reproducible_and_greedy_at_temperature_0(word_run):
    posterior = langevin.load(word_run)

    def write(**options: float) -> str:
        return "".join(posterior.generate("the snow", 12, **options))

    assert write(seed=1) == write(seed=1) != write(seed=2)
    assert write(softmax_temperature=0, seed=1) == write(top_k=1, seed=2)
    for bad in ({"top_p": 2.0}, {"top_k": 0}, {"softmax_temperature": math.nan}):
        with pytest.raises(LangevinError):  # when asked, not when the first letter is taken
            posterior.generate("the snow", 12, **bad)


def test_an_empty_prompt_begins_a_text(word_run, finished_run):
    for run in (word_run, finished_run):
        posterior = langevin.load(run)
        first = posterior.next(top=1)[0].token
        written = "".join(posterior.generate(length=3, softmax_temperature=0))
        assert written.startswith("\n" if first == END else first)


def test_letters_of_several_bytes_come_whole(tmp_path):
    text = tmp_path / "cafe.txt"
    text.write_text("le café était déjà fermé à l'été " * 40, "utf-8")
    recipe = load_recipe("text", [f"corpus={text}", "level=byte", *TINY])
    start(recipe, tmp_path / "run").run()
    text.unlink()
    posterior = langevin.load(tmp_path / "run")
    pieces = list(posterior.generate("le café ", 300, softmax_temperature=1))
    assert "é" in pieces
    assert all(len(piece) == 1 or "\ufffd" in piece for piece in pieces)
    assert [token.token for token in posterior.score("été").tokens] == ["é", "", "t", "é", ""]


def test_a_prompt_is_open_unless_it_ends_its_line(word_run):
    vocabulary = RunFolder(word_run).vocabulary
    the, snow, end = (vocabulary.numbers[word] for word in ("the", "snow", END))
    assert vocabulary.spell("the snow").tokens.tolist() == [end, the, snow]
    assert vocabulary.spell("the snow\n").tokens.tolist() == [end, the, snow, end]
    assert vocabulary.spell("").tokens.tolist() == [end]
    running = Vocabulary("word", vocabulary.tokens[:], running=True)
    running.numbers.pop(END)
    assert running.spell("the").tokens.tolist() == [vocabulary.numbers["<unk>"], the]

"""How foreign a text is: surprise of its windows among held-out ones, and where."""

import json
import random
import shutil

import pytest
import torch

from langevin.errors import LangevinError
from langevin.models.counts import Counts
from langevin.posterior.pool import Member, Pool
from langevin.predict.foreign import FEWEST, foreign_text, places_of, read_windows
from langevin.predict.language import LanguagePosterior
from langevin.predict.load import open_as
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.training.members import add_members
from langevin.training.session import start
from tests.conftest import SENTENCE, TINY

HOME = SENTENCE * 5
OTHER = "Der Schnee lag tief und weiss; zwoelf Boxkaempfer jagen Viktor quer ueber den Sylter Deich. "


@pytest.fixture(scope="module")
def posterior(tmp_path_factory):
    """Bytes of a text that is long enough for held-out windows, with sentences in any order."""
    path, shuffled = tmp_path_factory.mktemp("home"), random.Random(0)
    sentences = SENTENCE.split(". ")
    (path / "text.txt").write_text(". ".join(shuffled.choice(sentences) for _ in range(900)))
    settings = [*TINY, f"corpus={path / 'text.txt'}", "level=byte", "hidden=16", "lr=0.01",
                "parts=[60,20,20]", "pool=none"]
    start(load_recipe("text", settings), path / "run").run()
    return open_as(LanguagePosterior, path / "run")


def test_windows_are_means_over_the_tokens_of_the_text(posterior):
    tokens = posterior.vocabulary.spell(HOME[:450]).tokens[1:]
    found = read_windows(posterior.pool(), tokens, 200, 1000)
    score = posterior.score(HOME[:450]).tokens
    nll = -torch.tensor([token.p for token in score]).double().log()
    assert found.place.tolist() == [0, 200]
    assert found.length.tolist() == [200, 250]
    torch.testing.assert_close(found.nll, torch.stack([nll[:200].mean(), nll[200:].mean()]))
    assert found.mean(found.nll) == pytest.approx(float(nll.mean()))
    within = sum(token.mutual_information for token in score[:200]) / 200
    assert float(found.within[0]) == pytest.approx(within)
    assert not found.between.any()
    fast = read_windows(posterior.pool(), tokens, 200, 1000, disagreement=False)
    torch.testing.assert_close(fast.nll, found.nll, atol=1e-6, rtol=0)


def test_a_long_text_is_read_at_evenly_spread_places():
    assert places_of(3300, 200, 10_000) == ([0], 3300)
    starts, columns = places_of(100_000, 200, 10_000)
    assert (len(starts), columns) == (16, 600)
    assert (starts[0], starts[-1]) == (0, 99_400)
    counts = Counts.learn(torch.arange(5).repeat(80), 5, 2)
    text = torch.cat([torch.arange(5).repeat(1000), torch.zeros(5000, dtype=torch.long)])
    read = read_windows(Pool([Member("counts", counts.reader())]), text, 20, 640)
    assert len(read.place) == 32
    assert (read.nll[read.place > 5000] > read.nll[read.place < 4900].max()).all()


def test_a_text_of_another_kind_is_foreign_and_told_where(posterior, tmp_path):
    at_home, mixed = tmp_path / "home.txt", tmp_path / "mixed.txt"
    at_home.write_text(HOME)
    mixed.write_text(f"{HOME}\n{OTHER * 5}\n{HOME}")
    home, other = foreign_text(posterior, at_home), foreign_text(posterior, mixed, top=2)
    assert home.beyond < 0.6
    assert other.quantile == 1
    assert home.nll < other.nll
    low, *_, high = home.held_out
    assert low < home.nll < high
    assert home.split == "test"
    for window in other.top:
        assert "Sylter" in window.text or "Schnee" in window.text
        assert window.quantile == 1
        assert window.line == 1 + mixed.read_text()[: window.place].count("\n")
    assert other.top[0].nll >= other.top[1].nll
    assert other.tokens == other.available == len(mixed.read_bytes())


def test_a_run_with_counts_compares_with_validation_and_needs_no_data(posterior, tmp_path):
    run = shutil.copytree(posterior.path, tmp_path / "run")
    record = add_members(RunFolder(run))
    pooled = open_as(LanguagePosterior, run)
    found, alone = foreign_text(pooled, OTHER * 8), foreign_text(posterior, OTHER * 8)
    assert (found.split, found.window) == ("valid", 200)
    assert found.held_out[2] == record.surprise[50]
    assert found.quantile == 1
    assert found.between_members > 0 == alone.between_members
    assert "data" not in vars(pooled)


def test_the_command_says_so(cli, posterior, tmp_path):
    file = tmp_path / "other.txt"
    file.write_text(OTHER * 8)
    options = ["uncertainty", posterior.path, "--text", file, "--top", "1"]
    code, printed, _ = cli(*options)
    assert code == 0
    assert f"{file}: foreign (percentile 100 of the test split)" in printed
    answer = json.loads(cli(*options, "--json")[1])
    assert answer == json.loads(json.dumps(foreign_text(posterior, file, top=1).to_dict()))


def test_little_held_out_text_makes_short_windows(finished_run, word_run):
    found = foreign_text(open_as(LanguagePosterior, finished_run), "the snow lay deep " * 3)
    assert found.window == 14  # 285 bytes of the test split
    with pytest.raises(LangevinError, match=f"expected {FEWEST} windows of 10 tokens"):
        foreign_text(open_as(LanguagePosterior, word_run), "snow")

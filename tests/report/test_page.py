"""The page about a run: complete, escaped, self-contained, and right in a real browser for each
task."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from langevin.errors import Interrupted, LangevinError
from langevin.posterior.scores import Scores
from langevin.report.sections import headline
from langevin.report.story import gather
from langevin.tasks.language_model import LanguageModelTask
from langevin.recipe import load_recipe
from langevin.report.components import hash_of
from langevin.report.page import POLICY, SECTIONS, write_report
from langevin.store.folder import RECIPE
from langevin.training.chains import start_chains
from langevin.posterior.selection import BEST, Selection
from langevin.predict.load import open_posterior
from langevin.training.session import resume, start
from tests.browser import Browser
from tests.conftest import TINY
from tests.sentences import TINY_CLASSIFIER, questions, write_questions
from tests.tiny_captions import tiny_recipe

EVIL = "<script>document.title = 'broken'</script>"
FIGURES = {"language-model": 4, "classify": 5, "caption": 4}


class Reader(HTMLParser):
    """Counts elements, keeps attributes, and notices what is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.seen if name == tag]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run of each task, each with something that must not run in its title or its text."""
    folder = tmp_path_factory.mktemp("pages")
    title = f"title={EVIL}"
    text = folder / "night.txt"
    text.write_text(f"It was a clear night, {EVIL} & the snow lay deep on the road. " * 40)
    pairs = [(f"{sentence} {EVIL}", label) for sentence, label in questions()]
    made = {
        "language-model": load_recipe("text", [f"corpus={text}", title, *TINY]),
        "classify": load_recipe("trec-psgld", [f"corpus={write_questions(folder / 'q.txt', pairs)}", title,
                                               *TINY_CLASSIFIER]),
        "caption": tiny_recipe(folder, title),
    }
    for name, recipe in made.items():
        start(recipe, folder / name).run()
        write_report(folder / name, folder / name / "report.html")
    return {name: folder / name for name in made}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("task", FIGURES)
def test_the_page_is_complete(runs: dict[str, Path], task: str) -> None:
    page = (runs[task] / "report.html").read_text()
    read = Reader(page)
    assert [s["aria-labelledby"] for s in read.of("section")] == [h["id"] for h in read.of("h2")]
    assert len(read.of("h2")) == len(SECTIONS)
    assert len(read.of("h1")) == 1
    assert len(read.of("table")) == len(read.of("caption"))
    assert len(read.of("img")) == FIGURES[task]
    assert all(image["alt"] and image["src"].startswith("data:image/svg+xml;base64,") for image in read.of("img"))
    assert {link["href"] for link in read.of("a")} == {f"#{h['id']}" for h in read.of("h2")}
    result = open_posterior(runs[task]).evaluate()
    for scores in (result.last, result.averaged):
        assert f"{scores.nll:.4f}" in page
    assert "burn_in = 1" in page


@pytest.mark.parametrize("task", FIGURES)
def test_text_of_the_user_is_escaped_and_nothing_is_fetched(runs: dict[str, Path], task: str) -> None:
    page = (runs[task] / "report.html").read_text()
    read = Reader(page)
    assert "&lt;script&gt;" in page
    assert len(read.of("script")) == (2 if task == "language-model" else 1)
    assert hash_of(page.rpartition("<script>")[2].partition("</script>")[0]) in POLICY
    assert page.count(POLICY.replace("'", "&#x27;")) == 1
    assert not read.of("link")
    assert not re.search(r"""(src|href)=["']?(https?:|//)|url\(|@import""", page)
    assert not any(name.startswith("on") for _, attributes in read.seen for name in attributes)


@pytest.mark.parametrize("task", FIGURES)
def test_in_a_browser(runs: dict[str, Path], task: str, browser: Browser) -> None:
    """Figures have a size, the console is silent, nothing is asked of the network, no part is wider
    than the screen."""
    page = runs[task] / "report.html"
    for scheme, width in (("light", 1100), ("dark", 400)):
        browser.prefer(scheme, width)
        browser.open(page)
        assert browser.complaints() == []
        assert [url for url in browser.requests() if not url.startswith("data:")] == [page.resolve().as_uri()]
        sizes = browser.ask("[...document.images].map(i => [i.complete, i.naturalWidth, i.width])")
        assert len(sizes) == FIGURES[task]
        assert all(complete and natural > 200 and shown > 200 for complete, natural, shown in sizes)
        assert "<script>" in browser.ask("document.title")
        assert browser.ask("document.documentElement.scrollWidth") <= width
        brightness = browser.ask("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
        assert (brightness > 128) == (scheme == "light")
    assert browser.screenshot().startswith(b"\x89PNG")
    assert browser.print().startswith(b"%PDF")


def test_the_written_text_is_explained_as_on_the_page_of_the_service(
    runs: dict[str, Path], browser: Browser
) -> None:
    browser.prefer("light", 1100)
    browser.open(runs["language-model"] / "report.html")
    assert browser.ask("document.querySelectorAll('.reading .token').length") == 300
    browser.ask("document.querySelectorAll('.reading .token')[7].focus()")
    bars = browser.ask("document.querySelectorAll('.detail .bars .track').length")
    assert bars == len(open_posterior(runs["language-model"], Selection("thinned")).labels()) + 1
    strong = "document.querySelectorAll('.reading .token')[7].style.getPropertyValue('--share')"
    before = browser.ask(strong)
    browser.ask("document.querySelector('[value=p]').click()")
    assert browser.ask(strong) != before
    assert not browser.complaints()


def test_the_browser_notices_what_is_wrong(runs: dict[str, Path], tmp_path: Path, browser: Browser) -> None:
    """The test above can fail: a script, a foreign picture and a broken figure are all seen."""
    page = (runs["caption"] / "report.html").read_text()
    broken = tmp_path / "broken.html"
    broken.write_text(page.replace("</main>", "<script>1</script><img src='http://127.0.0.1:9/x.png'></main>"))
    browser.open(broken)
    assert len(browser.complaints()) >= 2
    broken.write_text(page.replace("svg+xml;base64,", "svg+xml;base64,AAAA", 1))
    browser.open(broken)
    assert 0 in browser.ask("[...document.images].map(i => i.naturalWidth)")


def test_an_existing_page_is_kept(cli, runs: dict[str, Path], tmp_path: Path) -> None:
    run, kept = runs["classify"], tmp_path / "kept.html"
    kept.write_text("mine")
    code, _, err = cli("report", run, "--out", kept, "--quiet")
    assert code == 2
    assert "--overwrite" in err
    assert kept.read_text() == "mine"
    code, _, err = cli("report", run, "--quiet")  # report.html is there from before
    assert code == 2
    assert cli("report", run, "--out", tmp_path, "--quiet")[0] == 2
    code, _, err = cli("report", run, "--out", kept, "--overwrite", "--quiet", "--split", "valid")
    assert code == 0
    assert str(kept) in err
    assert "On the valid split" in kept.read_text()


def test_a_folder_that_is_no_run_and_a_split_that_is_none(cli, runs: dict[str, Path], tmp_path: Path) -> None:
    assert cli("report", tmp_path)[0] == 2
    with pytest.raises(LangevinError, match="split must be one of"):
        write_report(runs["caption"], tmp_path / "page.html", split="tset")
    assert not (tmp_path / "page.html").exists()


def test_a_run_without_samples_and_one_that_never_began(tmp_path: Path, tiny) -> None:
    run = tmp_path / "run"
    trainer = start(tiny("burn_in=1.5"), run)
    with pytest.raises(Interrupted):
        trainer.run(stop=lambda: bool(trainer.history))
    assert not len(trainer.store)
    write_report(run, tmp_path / "young.html")
    assert "No samples were kept yet" in (tmp_path / "young.html").read_text()
    assert len(Reader((tmp_path / "young.html").read_text()).of("img")) == 1  # the learning curve
    (run / "checkpoint.safetensors").unlink()
    write_report(run, tmp_path / "empty.html")
    assert "Nothing was recorded yet" in (tmp_path / "empty.html").read_text()
    assert (run / RECIPE).is_file()


def test_too_few_samples_for_a_diagnosis_are_said(tmp_path: Path, tiny) -> None:
    start(tiny("sample_every=1"), tmp_path / "run").run()
    write_report(tmp_path / "run", tmp_path / "page.html")
    assert "No diagnosis: expected at least 4 samples" in (tmp_path / "page.html").read_text()


def test_several_chains_make_one_page(tmp_path: Path, tiny) -> None:
    folder = start_chains(tiny(), tmp_path / "run", 2)
    for chain in folder.chains:
        resume(chain.path).run()
    write_report(tmp_path / "run", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "chain 1, average of 4" in page
    assert "average of 8 samples" in page
    assert "summed over 2 chains" in page
    assert "No diagnosis" not in page


def test_what_validation_chose_is_told_beside(runs: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs["language-model"], run)
    chosen = open_posterior(run, Selection(BEST))
    choice = chosen.opened.chosen.choice
    write_report(run, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    told = f"The {choice.how} collection of {choice.samples}, which validation chose"
    assert told in page
    assert f"has a mean nll of {chosen.evaluate().averaged.nll:.4f} nats." in page
    assert "which validation chose" not in (runs["language-model"] / "report.html").read_text()


def test_the_page_is_headed_by_its_data_which_are_read_once(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, once = [], LanguageModelTask.__init__

    def counted(*arguments: object) -> None:
        reads.append(arguments)
        once(*arguments)

    monkeypatch.setattr(LanguageModelTask, "__init__", counted)
    write_report(runs["language-model"], tmp_path / "page.html")
    assert len(reads) == 1
    assert "<h1>night.txt: " in (tmp_path / "page.html").read_text()


def test_the_better_number_stands_out(runs: dict[str, Path]) -> None:
    story = gather(runs["classify"], split="test", tokens=100)
    low, high = (Scores(nll, 9, error=nll) for nll in (0.25, 0.5))
    for last, averaged in ((low, high), (high, low)):
        evaluation = replace(story.evaluation, last=last, averaged=averaged)
        page = headline(replace(story, evaluation=evaluation))
        assert "<strong>an error of 25.00 %</strong>" in page
        assert "<strong>an error of 50.00 %</strong>" not in page

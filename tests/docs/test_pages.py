"""The pages of docs/: what they tell works, their links lead somewhere, their site is built."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commands import blocks, commands, run_page
from tests.docs.paragraphs import LINK, paragraphs, shown_length

__all__ = ["run_page"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.name: path.read_text("utf-8") for path in sorted(DOCS.glob("*.md"))}
LONGEST = 600


def without_code(page: str) -> str:
    return re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_paragraphs_are_short(name):
    long = [text[:80] for text in paragraphs(PAGES[name]) if shown_length(text) > LONGEST]
    assert not long, f"split or cut: {long}"


def test_a_long_paragraph_is_seen():
    page = "# Title\n\n- short\n- " + "word " * 130 + "\n\n```\n" + "code " * 200 + "\n```\n"
    assert [shown_length(text) > LONGEST for text in paragraphs(page)] == [False, True]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    for target in LINK.findall(without_code(PAGES[name])):
        file = target.partition("#")[0]
        assert target.startswith("https://") or not file or (DOCS / file).exists(), target


@pytest.mark.parametrize("name", [name for name in PAGES if commands(PAGES[name])])
def test_commands_run_and_python_after_them(name, run_page, tmp_path):
    """Of a page in one folder, the commands first."""
    run_page(PAGES[name], tmp_path)
    for code in blocks(PAGES[name], "python"):
        exec(compile(code, name, "exec"), {})


def test_python_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in blocks(PAGES["python.md"], "python"):
        exec(compile(code, "python.md", "exec"), names)


def test_make_targets_named_in_the_pages_exist():
    makefile = (ROOT / "Makefile").read_text()
    for page in PAGES.values():
        for target in re.findall(r"^make (\S+)", page, flags=re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_scores_are_made_from_the_results():
    """`python -m paper tables` would change nothing."""
    from paper.scores import refresh

    assert refresh(PAGES["results.md"], ROOT / "results") == PAGES["results.md"]


def test_the_site_is_built_without_a_warning(tmp_path):
    """Every page is in its menu, every link and anchor is there, nothing is asked of the
    network."""
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", tmp_path]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    pages = [path.read_text() for path in tmp_path.glob("*.html")]
    assert len(pages) >= len(PAGES)
    for page in pages:
        assert not re.search(r"<(script|link|img)[^>]*(src|href)=.?https?:", page)
    assert "BayesianTextClassifier" in (tmp_path / "api.html").read_text()

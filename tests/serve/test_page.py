"""The page in a real browser: typing, pointing, sliding, a file, the keyboard, hostile text, a dead server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser, find_browser
from tests.serve.running import Client, served

pytestmark = pytest.mark.skipif(find_browser() is None, reason="no Chromium here; 'make browser' installs it")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def wait(browser: Browser, condition: str) -> None:
    """Until it is true in the page, or the page complains."""
    while not browser.ask(f"Boolean({condition})"):
        told = browser.ask("find('message') && !find('message').hidden && find('message').textContent")
        assert not told, told
        time.sleep(0.05)


def open_page(browser: Browser, client: Client, model: str) -> None:
    browser.visit(f"http://127.0.0.1:{client.port}/")
    wait(browser, "document.querySelector('#models option')")
    browser.ask(f"find('models').value = '{model}'; find('models').dispatchEvent(new Event('change'))")


def test_a_text_is_coloured_and_each_token_explained(browser: Browser, client: Client) -> None:
    open_page(browser, client, "words-shared")
    browser.ask("find('text').focus(); find('text').select()")
    words = ["The", "Mason", "said", "<script>alert(1)</script>", "that", "the", "man", "was", "."]
    browser.call("Input.insertText", text=" ".join(words))
    browser.ask("find('score').click()")
    wait(browser, f"find('tokens').children.length == {len(words)}")
    assert browser.ask("find('tokens').textContent").split() == words
    assert browser.ask("document.querySelectorAll('main script').length") == 0
    surprise = browser.ask("find('tokens').children[5].style.getPropertyValue('--share')")
    browser.ask("document.querySelector('[value=mutual_information]').click()")
    other = browser.ask("find('tokens').children[5].style.getPropertyValue('--share')")
    assert surprise != other
    browser.ask("find('tokens').children[5].focus()")  # as the Tab key does
    wait(browser, "find('detail').querySelectorAll('.bars').length == 2")
    samples = browser.ask("state.model.samples")
    bars = browser.ask("find('detail').querySelector('.bars').querySelectorAll('.bar').length")
    assert bars == samples + 1
    assert browser.ask("find('disputed').children.length") == 8
    assert not browser.complaints()


def test_the_text_goes_on_beside_two_samples(browser: Browser, client: Client) -> None:
    open_page(browser, client, "bytes")
    browser.ask("find('text').value = 'The man'; find('length').value = 20; find('write').click()")
    wait(browser, "find('continuations').children.length == 3 && find('stop').disabled")
    texts = browser.ask("[...find('continuations').querySelectorAll('.text')].map((n) => n.textContent.length)")
    assert min(texts) >= 18


def test_a_slider_moves_what_is_accepted(browser: Browser, client: Client, tmp_path: Path) -> None:
    open_page(browser, client, "questions")
    table = tmp_path / "some.csv"
    table.write_text('id,text\n1,"who was Homer, the poet ?"\n2,<img src=x onerror=alert(1)>\n3,where is Rome ?\n')
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    node = browser.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(table)])
    wait(browser, "find('answers').querySelectorAll('td').length == 18")
    assert "3 of 3 answers accepted" in browser.ask("find('promise').textContent")
    browser.ask("find('coverage').value = 34; find('coverage').dispatchEvent(new Event('input'))")
    assert "1 of 3 answers accepted, 2 for a person" in browser.ask("find('promise').textContent")
    assert browser.ask("document.querySelectorAll('main #answers img').length") == 0
    written = browser.ask("[quoted('=1+1'), quoted('a\"b'), quoted(-1)].join()")
    assert written == '"\'=1+1","a""b","-1"'
    assert not browser.complaints()


def test_it_fits_a_narrow_screen_in_the_dark(browser: Browser, client: Client) -> None:
    browser.prefer("dark", width=360)
    open_page(browser, client, "bytes")
    assert browser.ask("document.documentElement.scrollWidth") <= 360
    dark = browser.ask("getComputedStyle(document.body).backgroundColor")
    browser.prefer("light", width=1100)
    assert browser.ask("getComputedStyle(document.body).backgroundColor") != dark
    assert len(browser.screenshot()) > 10_000


def test_how_to_ask_is_told(browser: Browser, client: Client) -> None:
    browser.visit(f"http://127.0.0.1:{client.port}/api")
    wait(browser, "document.querySelectorAll('h2').length > 5")
    assert "/v1/models/{name}/score" in browser.ask("document.body.textContent")


def test_a_dead_server_is_told(browser: Browser, folders: Path) -> None:
    with served("bytes", cwd=folders) as (client, process):
        open_page(browser, client, "bytes")
        process.kill()
        process.wait()
        browser.ask("find('score').click()")
        while browser.ask("find('message').hidden"):
            time.sleep(0.05)
    assert "does not answer" in browser.ask("find('message').textContent")

"""The page in a real browser: typing, pointing, sliding, files, the keyboard, hostile text, a dead
server."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser
from tests.serve.running import Client, served

HOSTILE = ["The", "Mason", "said", "<script>alert(1)</script>", "that", "the", "man", "was", "."]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def wait(browser: Browser, condition: str) -> None:
    """Until it is true in the page, or the page complains."""
    while not browser.ask(f"Boolean({condition})"):
        told = browser.ask("!find('message').hidden && find('message').textContent")
        assert not told, told
        time.sleep(0.03)


def open_page(browser: Browser, client: Client, model: str) -> None:
    browser.prefer("light", 1100)
    browser.visit(f"http://127.0.0.1:{client.port}/")
    while not browser.ask("Boolean(typeof state === 'object' && state.model)"):
        time.sleep(0.03)
    browser.ask(f"document.querySelector('#models button[value=\"{model}\"]').click()")


def type_text(browser: Browser, field: str, text: str) -> None:
    browser.ask(f"find('{field}').focus(); find('{field}').select()")
    browser.call("Input.insertText", text=text)


def press(browser: Browser, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def strength(browser: Browser, token: int) -> float:
    """Of the colour of a token."""
    found = f"document.querySelectorAll('#reader .token')[{token}].style.getPropertyValue('--share')"
    return float(browser.ask(found))


def test_a_text_is_coloured_as_one_types(browser: Browser, client: Client) -> None:
    open_page(browser, client, "words-shared")
    wait(browser, "languageView.scored")
    type_text(browser, "text", " ".join(HOSTILE))
    wait(browser, f"document.querySelectorAll('#reader .token').length == {len(HOSTILE)}")
    assert browser.ask("document.querySelector('#reader .text').textContent").split() == HOSTILE
    assert browser.ask("document.querySelectorAll('main script').length") == 0
    scored = client.post("/v1/models/words-shared/score", {"text": " ".join(HOSTILE)})[1]
    by_p = sorted(range(len(HOSTILE)), key=lambda at: scored["tokens"][at]["p"])
    assert strength(browser, by_p[0]) >= strength(browser, by_p[-1])
    browser.ask("document.querySelector('[name=by][value=p]').click()")
    assert strength(browser, by_p[0]) == pytest.approx(scored["tokens"][by_p[0]]["p"], abs=1e-3)
    browser.ask("document.querySelector('[name=by][value=mutual_information]').click()")
    most = max(range(len(HOSTILE)), key=lambda at: scored["tokens"][at]["mutual_information"])
    assert strength(browser, most) == 1
    assert not browser.complaints()


def test_a_token_is_explained_to_who_points_and_to_who_walks(browser: Browser, client: Client) -> None:
    open_page(browser, client, "words-shared")
    wait(browser, "languageView.scored")
    place = browser.ask("(({x, y}) => [x + 3, y + 3])(document.querySelectorAll('#reader .token')[1]"
                        ".getBoundingClientRect())")  # fmt: skip
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    wait(browser, "document.querySelectorAll('.detail .bars').length == 2")
    bars = "document.querySelector('.detail .bars').querySelectorAll('.track').length"
    assert browser.ask(bars) == browser.ask("state.model.samples") + 1
    assert "prince" in browser.ask("document.querySelector('.detail h3').textContent")
    browser.ask("document.querySelectorAll('#reader .token')[1].focus()")
    press(browser, "ArrowRight")
    wait(browser, "document.querySelector('.detail h3').textContent.includes('looked')")
    wait(browser, "document.querySelectorAll('.detail .bars').length == 2")
    likeliest = client.post("/v1/models/words-shared/next", {"text": "The prince", "top": 1})[1]
    shown = browser.ask("document.querySelectorAll('.detail .bars')[1].firstChild.textContent")
    assert shown.strip("“”") == likeliest["tokens"][0]["token"] or "\n" in shown
    browser.ask("document.querySelector('#disputed button').click()")
    assert browser.ask("document.activeElement.classList.contains('token')")
    assert browser.ask("find('disputed').children.length") == 8
    assert not browser.complaints()


def test_the_text_goes_on_beside_two_samples(browser: Browser, client: Client) -> None:
    open_page(browser, client, "bytes")
    browser.ask("find('text').value = 'The man'; find('length').value = 20; find('write').click()")
    wait(browser, "find('continuations').children.length == 3 && find('stop').disabled")
    shown = "[...find('continuations').querySelectorAll('.text')].map((n) => n.textContent.length)"
    assert min(browser.ask(shown)) >= len("The man") + 18
    browser.ask("find('length').value = 2000; find('write').click()")
    wait(browser, "!find('stop').disabled")
    browser.ask("find('stop').click()")
    assert browser.ask("find('stop').disabled && find('message').hidden")
    assert not browser.complaints()


def test_a_slider_moves_what_is_accepted_and_what_is_promised(
    browser: Browser, client: Client, tmp_path: Path
) -> None:
    open_page(browser, client, "questions")
    table = tmp_path / "some.csv"
    table.write_text('id,text\n1,"who was Homer, the poet ?"\n2,<img src=x onerror=alert(1)>\n'
                     '3,where is Rome ?\n')  # fmt: skip
    browser.choose_file("#file", table)
    wait(browser, "find('answers').querySelectorAll('tbody tr').length == 3")
    assert "3 of 3 answers here are accepted" in browser.ask("find('promise').textContent")
    assert browser.ask("document.querySelectorAll('#answers img').length") == 0
    dots = browser.ask("find('answers').querySelectorAll('.track')[0].querySelectorAll('.dot').length")
    assert dots == browser.ask("state.model.samples")
    points = client.get("/v1/models/questions/decisions")[1]["points"]
    browser.ask("find('level').focus()")
    press(browser, "Home")
    told = browser.ask("find('promise').textContent")
    assert "3 of 3" not in told
    assert f"{points[0]['errors']} of {points[0]['accepted']} accepted" in told
    assert browser.ask("document.querySelectorAll('tr.person').length") >= 1
    browser.ask("document.querySelector('[name=slide][value=risk]').click()")
    assert "Errors among the accepted" in browser.ask("find('level-name').textContent")
    browser.ask("find('alpha').value = '0.2'; find('alpha').dispatchEvent(new Event('change'))")
    wait(browser, "document.querySelectorAll('.set').length == 3")
    assert not browser.complaints()


def test_answers_are_taken_home(browser: Browser, client: Client, tmp_path: Path) -> None:
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    open_page(browser, client, "questions")
    type_text(browser, "texts", '=1+1\nwhere is "Rome" ?')
    wait(browser, "find('answers').querySelectorAll('tbody tr').length == 2")
    browser.ask("find('download').click()")
    file = tmp_path / "answers.csv"
    while not file.exists():
        time.sleep(0.03)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["text"] for row in rows] == ["'=1+1", 'where is "Rome" ?']
    found = client.post("/v1/models/questions/classify", {"texts": ["=1+1", 'where is "Rome" ?']})[1]
    for row, answer in zip(rows, found["answers"], strict=True):
        assert row["label"] == answer["label"]
        assert float(row["probability"]) == pytest.approx(answer["p"][answer["label"]], abs=1e-6)


def test_without_an_extractor_no_picture_is_asked_for(browser: Browser, client: Client) -> None:
    open_page(browser, client, "captions")
    assert browser.ask("find('drop').hidden && !find('blind').hidden")
    browser.ask("document.querySelector('summary').click()")
    assert "[sampler]" in browser.ask("find('origin').textContent")
    assert "samples" in browser.ask("find('about').textContent")


def test_it_fits_a_narrow_screen_in_the_dark(browser: Browser, client: Client) -> None:
    open_page(browser, client, "bytes")
    wait(browser, "languageView.scored")
    light = browser.ask("getComputedStyle(document.body).backgroundColor")
    browser.prefer("dark", width=360)
    for model in ("bytes", "questions", "captions"):
        browser.ask(f"choose('{model}')")
        assert browser.ask("document.documentElement.scrollWidth") <= 360
    assert browser.ask("getComputedStyle(document.body).backgroundColor") != light


def test_how_to_ask_is_told(browser: Browser, client: Client) -> None:
    browser.visit(f"http://127.0.0.1:{client.port}/api")
    while browser.ask("document.querySelectorAll('h2').length") <= 5:
        time.sleep(0.03)
    told = browser.ask("document.body.textContent")
    assert "POST /v1/models/{name}/score" in told
    assert "curl http://127.0.0.1" in told
    assert "Counts go on counting while they read" in told


def test_a_token_is_asked_for_and_a_dead_server_is_told(
    browser: Browser, folders: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("0123456789abcdef0123\n")
    options = ("--token-file", str(tmp_path / "token"))
    with served("bytes", cwd=folders, options=options) as (client, process):
        browser.visit(f"http://127.0.0.1:{client.port}/")
        while browser.ask("find('token-field').hidden"):
            time.sleep(0.03)
        type_text(browser, "token", "0123456789abcdef0123")
        browser.ask("document.querySelector('#token-field button').click()")
        wait(browser, "languageView.scored")
        process.kill()
        process.wait()
        type_text(browser, "text", "Somebody there?")
        while browser.ask("find('message').hidden"):
            time.sleep(0.03)
    assert "does not answer" in browser.ask("find('message').textContent")

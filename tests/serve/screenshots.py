"""Pictures of the page for docs/: a server, a browser, and a look at each view.

    python -m tests.serve.screenshots LANGUAGE_MODEL CLASSIFIER CAPTIONER [--out docs]
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

from tests.browser import Browser
from tests.serve.running import Client, served

WIDTH, COLOURS = 1180, 200
TEXT = ("The prince smiled, looked at the count, and then the database server answered that the "
        "old man was not in Moscow.")  # fmt: skip
QUESTIONS = """Who was the first man in space ?
How far is it from Denver to Aspen ?
What is an atom ?
Where is the highest point in Japan ?
Name a film about a shark .
What does NASA stand for ?
When did it all begin to go wrong ?
How do you get there ?"""


def shoot(browser: Browser, file: Path) -> None:
    """The view as it stands, with few colours: a small file."""
    picture = Image.open(io.BytesIO(browser.screenshot())).convert("RGB")
    picture.quantize(COLOURS).save(file, optimize=True)
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


def wait(browser: Browser, condition: str) -> None:
    while not browser.ask(f"Boolean({condition})"):
        time.sleep(0.1)


def open_model(browser: Browser, client: Client, folder: Path) -> None:
    browser.visit("about:blank")
    browser.visit(f"http://127.0.0.1:{client.port}/#{folder.resolve().name}")
    wait(browser, f"typeof state === 'object' && state.model && state.model.name === {folder.resolve().name!r}")


def language(browser: Browser, client: Client, folder: Path, out: Path) -> None:
    open_model(browser, client, folder)
    wait(browser, "languageView.scored")
    browser.ask(f"find('text').value = {TEXT!r}; languageView.score()")
    browser.ask("document.querySelector('[name=by][value=mutual_information]').click()")
    place = "(state.model.level === 'word' ? find('text').value.split(' ') : find('text').value)"
    browser.ask(f"languageView.reader.focus({place}.indexOf('server')); find('write').click()")
    wait(browser, "find('stop').disabled && document.querySelectorAll('.detail .bars').length > 1")
    browser.ask("scrollTo(0, 0)")
    shoot(browser, out / "serve-language.png")


def classifier(browser: Browser, client: Client, folder: Path, out: Path) -> None:
    open_model(browser, client, folder)
    wait(browser, "classifierView.decisions")
    browser.ask(f"find('texts').value = {QUESTIONS!r}; find('ask').click()")
    wait(browser, "find('answers').querySelector('td')")
    browser.ask("find('level').value = 2; find('level').dispatchEvent(new Event('input'))")
    shoot(browser, out / "serve-classifier.png")


def beach(file: Path) -> Path:
    """A picture that is nobody's: sky, sea, sand, a running dog of sorts."""
    picture = Image.new("RGB", (640, 440), "#9cc9ee")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 190, 640, 290), fill="#2f6fa8")
    for row in range(195, 290, 12):
        draw.line((0, row, 640, row + 4), fill="#4d8bc0", width=3)
    draw.rectangle((0, 285, 640, 440), fill="#dcc595")
    dog = "#5b3a1e"
    draw.ellipse((230, 255, 400, 325), fill=dog)
    draw.ellipse((375, 225, 440, 280), fill=dog)
    draw.polygon([(430, 245), (465, 258), (430, 272)], fill=dog)
    draw.polygon([(385, 235), (375, 205), (402, 228)], fill=dog)
    for x, y in ((250, 370), (275, 375), (360, 372), (385, 365)):
        draw.line((x + 10, 305, x, y), fill=dog, width=15)
    draw.line((235, 280, 190, 245), fill=dog, width=12)
    picture.filter(ImageFilter.GaussianBlur(2)).save(file, quality=90)
    return file


def captions(browser: Browser, client: Client, folder: Path, out: Path) -> None:
    open_model(browser, client, folder)
    with tempfile.TemporaryDirectory() as place:
        browser.choose_file("#picture", beach(Path(place) / "beach.jpg"))
        wait(browser, "find('captions').querySelector('.others')")
    shoot(browser, out / "serve-captions.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs=3)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    given = parser.parse_args()
    with served(*given.folders, options=("--select", "thinned")) as (client, _), tempfile.TemporaryDirectory() as profile:
        with Browser(Path(profile)) as browser:
            browser.prefer("light", WIDTH)
            for view, folder in zip((language, classifier, captions), given.folders, strict=True):
                view(browser, client, folder, given.out)


if __name__ == "__main__":
    main()

"""Pictures that are sent: seen by the extractor, refused when they are too large or none, shown on
the page."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import langevin
from langevin.models.resnet import FEATURES, ResNet50
from langevin.predict.captioning import CaptionPosterior
from langevin.training.session import start
from tests.browser import Browser
from tests.serve.running import Client, served
from tests.tiny_captions import tiny_recipe, write_tiny


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captioner of as many features as a ResNet-50 makes, the weights of one, and a picture."""
    place = tmp_path_factory.mktemp("pictures")
    write_tiny(place)
    features = np.load(place / "features.npy")
    np.save(place / "features.npy", np.pad(features, ((0, 0), (0, FEATURES - features.shape[1]))))
    start(tiny_recipe(place, "epochs=2"), place / "animals").run()
    torch.manual_seed(0)
    weights = {name: tensor.half().numpy() for name, tensor in ResNet50().state_dict().items()}
    np.savez(place / "resnet.npz", **weights)
    Image.effect_noise((60, 40), 90).convert("RGB").save(place / "noise.png")
    return place


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[Client]:
    with served("animals", cwd=place, options=("--extractor", "resnet.npz")) as (client, _):
        yield client


def send(client: Client, body: bytes, query: str = "", kind: str = "image/png") -> tuple[int, dict]:  # type: ignore[type-arg]
    path = f"/v1/models/animals/caption{query}"
    status, _, content = client.ask("POST", path, body, Content_Type=kind)
    return status, json.loads(content)


def test_a_picture_is_described_as_at_the_door(client: Client, place: Path) -> None:
    assert client.get("/v1/models")[1]["models"][0]["pictures"] is True
    with chdir(place):
        posterior = langevin.load("animals")
        assert isinstance(posterior, CaptionPosterior)
        row = posterior.open_extractor("resnet.npz").features([Path("noise.png")])[0].half()
        (expected,) = posterior.caption(row.float(), beam=3)
    status, found = send(client, (place / "noise.png").read_bytes(), "?beam=3&top=2&per_sample=2")
    assert status == 200, found
    assert (len(found["captions"]), len({one["step"] for one in found["per_sample"]})) == (2, 2)
    assert found["captions"][0]["caption"] == expected.caption
    assert found["captions"][0]["log_p"] == pytest.approx(expected.log_p, abs=1e-5)


def huge_png() -> bytes:
    """A picture of 10⁹ pixels, by its header alone."""
    header = struct.pack(">IIBBBBB", 40_000, 25_000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", len(header)) + b"IHDR" + header
    whole = chunk + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return b"\x89PNG\r\n\x1a\n" + whole + struct.pack(">I", 99) + b"IDAT" + bytes(99)


def gif() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (9, 9)).save(made, "GIF")
    return made.getvalue()


@pytest.mark.parametrize(
    ("body", "query", "status", "says"),
    [
        (huge_png(), "", 413, "at most 40,000,000 pixels"),
        (b"\x89PNG\r\n\x1a\nno", "", 422, "a JPEG or PNG picture"),
        (gif(), "", 422, "a JPEG or PNG picture"),
        (b"", "", 422, "a JPEG or PNG picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "", 422, "a JPEG or PNG picture"),
        (b"", "?beam=x", 422, "beam"),
        (b"", "?file=/etc/passwd", 422, "file"),
    ],
)
def test_what_is_no_picture_is_refused(
    client: Client, body: bytes, query: str, status: int, says: str
) -> None:
    found, answer = send(client, body, query)
    assert found == status, answer
    assert says in json.dumps(answer)
    assert client.get("/healthz")[0] == 200


def test_a_damaged_picture_is_refused(client: Client, place: Path) -> None:
    status, answer = send(client, (place / "noise.png").read_bytes()[:1500])
    assert status == 422, answer
    assert str(place) not in json.dumps(answer)


def test_the_page_shows_average_and_samples_side_by_side(
    client: Client, place: Path, tmp_path: Path
) -> None:
    with Browser(tmp_path / "profile") as browser:
        browser.visit(f"http://127.0.0.1:{client.port}/")
        while not browser.ask("Boolean(state.model)"):
            pass
        assert browser.ask("!find('drop').hidden && find('blind').hidden")
        browser.choose_file("#picture", place / "noise.png")
        while not browser.ask("Boolean(document.querySelector('.others li'))"):
            assert browser.ask("find('message').hidden"), browser.ask("find('message').textContent")
        said = browser.ask("document.querySelector('.said').textContent.trim()")
        assert said == send(client, (place / "noise.png").read_bytes())[1]["captions"][0]["caption"]
        samples = client.get("/v1/models")[1]["models"][0]["samples"]
        assert browser.ask("document.querySelector('.others').children.length") == min(5, samples)
        assert browser.ask("find('seen').naturalWidth") == 60
        assert not browser.complaints()

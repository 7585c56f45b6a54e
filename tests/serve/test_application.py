"""What is answered over a real socket is what `langevin.load(...)` answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import langevin
from langevin.data.features import ImageFeatures
from langevin.predict.captioning import BeamSettings
from langevin.predict.classification import ClassificationPosterior
from langevin.predict.decision import RiskTarget, learn
from langevin.predict.foreign import compare_surprise
from langevin.predict.language import LanguagePosterior
from tests.serve.running import Client

TEXT = "The Mason said that the man"
TEXTS = ["where is Rome ?", "", "who was Homer ?"]


@pytest.fixture
def here(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folders)
    return folders


def assert_same(found: object, expected: object) -> None:
    """To 1e-6: batching changes the last bits."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, list | tuple):
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)
    else:
        assert found == expected


@pytest.mark.parametrize("name", ["bytes", "words-shared", "chains", "counted"])
@pytest.mark.parametrize("adapt", [False, True])
def test_scores_are_those_of_the_door(client: Client, here: Path, name: str, adapt: bool) -> None:
    posterior = langevin.load(name)
    assert isinstance(posterior, LanguagePosterior)
    status, found = client.post(f"/v1/models/{name}/score", {"text": TEXT, "adapt": adapt})
    assert status == 200
    surprise, expected = found.pop("surprise"), posterior.score(TEXT, adapt=adapt)
    assert_same(found, expected.to_dict())
    told = compare_surprise(posterior, expected.nll)
    assert_same(surprise, told and told.to_dict())
    assert (surprise is None) == (name != "counted")


def test_members_of_a_pool_are_told(client: Client, here: Path) -> None:
    models = {model["name"]: model for model in client.get("/v1/models")[1]["models"]}
    assert set(models["counted"]["members"]) == {"network", "counts"}
    assert sum(models["counted"]["members"].values()) == pytest.approx(1)
    assert models["counted"]["labels"][-1] == "counts"
    assert set(models["joined"]["members"]) == {"network", "n-grams"}
    assert models["bytes"]["members"] == {}
    text = client.post("/v1/models/counted/score", {"text": TEXT})[1]
    assert len(text["tokens"][0]["parts"]) == models["counted"]["samples"] + 1


def test_so_are_continuations(client: Client, here: Path) -> None:
    status, found = client.post("/v1/models/bytes/next", {"text": TEXT, "top": 3})
    assert status == 200
    expected = [token.to_dict() for token in langevin.load("bytes").next(TEXT, top=3)]
    assert_same(found["tokens"], expected)
    begun = client.post("/v1/models/bytes/next", {"text": TEXT, "top": 3, "tokens": 7})[1]
    expected = [token.to_dict() for token in langevin.load("bytes").next(TEXT[:7], top=3)]
    assert_same(begun["tokens"], expected)


@pytest.mark.parametrize("name", ["questions", "questions-shared", "joined"])
def test_so_are_classes(client: Client, here: Path, name: str) -> None:
    posterior = langevin.load(name)
    assert isinstance(posterior, ClassificationPosterior)
    path = f"/v1/models/{name}/classify"
    status, found = client.post(path, {"texts": TEXTS})
    assert status == 200
    expected = posterior.predict(TEXTS)
    assert_same(found["answers"], [one.to_dict() for one in expected])
    alone = client.post(path, {"text": TEXTS[0]})[1]["answers"]
    assert_same(alone, [found["answers"][0]])
    more = client.post(path, {"texts": TEXTS, "draws": True, "members": True})[1]["answers"]
    log_p = posterior.log_probs(posterior.encode(TEXTS, free=True))
    for at, answer in enumerate(more):
        for column, label in enumerate(posterior.labels):
            assert answer["draws"][label] == pytest.approx(log_p[:, at, column].exp().tolist(), abs=1e-6)
    members = {"network", "n-grams"} if name == "joined" else {"network"}
    assert all(set(answer["members"]) == members for answer in more)
    if name != "joined":
        assert more[0]["members"]["network"] == pytest.approx(more[0]["p"], abs=1e-6)


def test_sets_of_classes_keep_the_level_that_is_asked_for(client: Client, here: Path) -> None:
    posterior = langevin.load("questions")
    assert isinstance(posterior, ClassificationPosterior)
    before = (here / "questions" / "decision.json").read_bytes()
    sizes = []
    for alpha in (0.05, 0.3):
        found = client.post("/v1/models/questions/classify", {"texts": TEXTS, "alpha": alpha})[1]
        rule = posterior.set_rule_for(alpha)
        inside = rule.sets(posterior.predictive(posterior.encode(TEXTS, free=True)).probabilities)
        assert [answer["labels"] for answer in found["answers"]] == [
            [label for label, there in zip(posterior.labels, row, strict=True) if there]
            for row in inside.tolist()
        ]
        assert (found["sets"]["alpha"], found["sets"]["items"]) == (alpha, rule.items)
        sizes.append(sum(len(answer["labels"]) for answer in found["answers"]))
    assert sizes[0] > sizes[1]
    (here / "questions" / "decision.json").write_bytes(before)  # what set_rule_for learnt
    status, answer = client.post("/v1/models/questions/classify", {"text": "a", "alpha": 0.001})
    assert status == 422
    assert "cannot be promised" in json.dumps(answer)


def test_what_is_promised_of_accepted_answers(client: Client, here: Path) -> None:
    posterior = langevin.load("questions")
    assert isinstance(posterior, ClassificationPosterior)
    status, found = client.get("/v1/models/questions/decisions")
    assert status == 200
    assert found["rule"] == posterior.rule.to_dict()
    risk = max(point["risk_bound"] for point in found["points"]) - 1e-9
    learnt = learn(RiskTarget("risk", risk, found["confidence"]), posterior.predict_splits(("valid",))["valid"])
    within = [point for point in found["points"] if point["risk_bound"] <= risk]
    assert within[-1]["accepted"] == learnt.accepted
    assert within[-1]["risk_bound"] == pytest.approx(learnt.risk_bound)
    assert found["statistic"] == learnt.statistic


def test_so_are_captions(client: Client, here: Path) -> None:
    row = np.load("data/features.npy")[27].astype(np.float32)
    asked = {"features": row.tolist(), "beam": 3, "top": 2, "per_sample": 2}
    status, found = client.post("/v1/models/captions/caption", asked)
    assert status == 200
    images = ImageFeatures.of_row("the request", row.tolist())
    (expected,) = langevin.load("captions").describe(images, BeamSettings(3, 2), per_sample=2)
    assert_same(found, expected.to_dict())


def test_a_text_is_streamed(client: Client) -> None:
    asked = {"prompt": "The ", "length": 12, "softmax_temperature": 0}
    body = json.dumps(asked).encode()
    path = "/v1/models/bytes/generate"
    status, headers, content = client.ask("POST", path, body, Content_Type="application/json")
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in content.decode().split("\n\n") if line]
    assert events[-1]["done"] is True
    assert len(events) == 13
    again = client.ask("POST", path, body, Content_Type="application/json")[2]
    assert again == content


def test_it_tells_what_it_serves(client: Client) -> None:
    status, found = client.get("/v1/models")
    assert status == 200
    tasks = {model["name"]: model["task"] for model in found["models"]}
    assert tasks["bytes"] == "language-model"
    assert tasks["questions"] == "classify"
    assert tasks["captions"] == "caption"
    assert client.get("/healthz")[1]["status"] == "ready"
    told = client.get("/openapi.json")[1]
    answer = told["paths"]["/v1/models/{name}/score"]["post"]["responses"]["200"]["content"]
    assert answer["application/json"]["schema"]["$ref"].endswith("/ScoreAnswer")
    assert "p" in told["components"]["schemas"]["TokenScore"]["properties"]
    counted = client.ask("GET", "/metrics")[2].decode()
    assert 'langevin_requests_total{route="/v1/models",status="200"}' in counted


@pytest.mark.parametrize(
    ("path", "asked", "status", "says"),
    [
        ("bytes/score", {"text": 7}, 422, "text"),
        ("bytes/score", {"text": "a", "more": 1}, 422, "more"),
        ("bytes/score", {}, 422, "text"),
        ("bytes/score", {"text": "a" * 30_000}, 413, "at most 20,000 characters"),
        ("bytes/next", {"text": "a", "top": 0}, 422, "top"),
        ("bytes/next", {"text": "a", "top": "3"}, 422, "top"),
        ("bytes/generate", {"prompt": "a", "length": 10**9}, 422, "length of at most 2,000"),
        ("bytes/generate", {"prompt": "a", "softmax_temperature": 1e400}, 422, "temperature"),
        ("bytes/classify", {"text": "a"}, 404, "a classifier"),
        ("questions/score", {"text": "a"}, 404, "a language model"),
        ("questions/classify", {}, 422, "1 to 1,000 texts"),
        ("questions/classify", {"texts": ["a"] * 1001}, 422, "1 to 1,000 texts"),
        ("questions/classify", {"text": "a", "alpha": 1}, 422, "alpha"),
        ("bytes/generate", {"prompt": "a", "sample": 99}, 422, "a sample from 0 to"),
        ("bytes/next", {"text": "a", "top": 10**5}, 422, "top of at most 1,000"),
        ("captions/caption", {"features": [0.0] * 6, "per_sample": 21}, 422, "per_sample of at"),
        ("captions/caption", {"features": [0.0] * 6, "top": 9}, 422, "beam of 5"),
        ("captions/caption", {"features": [1.0]}, 422, "features an image"),
        ("captions/caption", {"features": [1.0], "beam": 500}, 422, "beam of at most 20"),
        ("captions/caption", {"features": "no"}, 422, "features"),
        ("absent/score", {"text": "a"}, 404, "one of the models"),
        ("../../../../etc/passwd", {"text": "a"}, 404, "a path of this API"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    client: Client, path: str, asked: object, status: int, says: str
) -> None:
    found, answer = client.post(f"/v1/models/{path}", asked)
    assert found == status, answer
    error = answer["error"]
    assert set(error) == {"expected", "got", "do"}
    assert says in json.dumps(answer, ensure_ascii=False)
    assert "Traceback" not in json.dumps(answer)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 422),
        (b"\xff\xfe", "application/json", 422),
        (b"[" * 5000, "application/json", 400),
        (b'{"text": "a"}', "text/plain", 415),
        (b'{"text": "a"}', "application/x-www-form-urlencoded", 415),
        (b'{"text": "\\ud800"}', "application/json", 422),
        (b'{"\\udfff": "a"}', "application/json", 422),
        (b'{"text": "a", "text": NaN}', "application/json", 422),
        (b"GIF89a", "image/gif", 415),
        (b"no picture", "image/png", 422),
    ],
)
def test_broken_bodies(client: Client, body: bytes, kind: str, status: int) -> None:
    path = "captions/caption" if kind.startswith("image") else "bytes/score"
    found, _, content = client.ask("POST", f"/v1/models/{path}", body, Content_Type=kind)
    assert found == status
    assert set(json.loads(content)["error"]) == {"expected", "got", "do"}


def test_a_large_body_is_refused_while_it_comes(client: Client) -> None:
    path = "/v1/models/bytes/score"
    status, _, _ = client.ask("POST", path, b"", Content_Length="100000000")
    assert status == 413
    sent = iter([b"a" * 1_000_000] * 100)
    try:
        status = client.ask(
            "POST", path, sent, Transfer_Encoding="chunked", Content_Type="application/json"
        )[0]  # type: ignore[arg-type]
    except (BrokenPipeError, ConnectionResetError):
        status = 413  # it hung up before all was sent
    assert status == 413
    assert client.get("/healthz")[0] == 200


def test_headers_protect_the_page(client: Client) -> None:
    status, headers, content = client.ask("GET", "/")
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    assert b"http" not in content.replace(b"http-equiv", b"")
    assert client.ask("GET", "/", Host="evil.example")[0] == 400
    assert client.ask("OPTIONS", "/v1/models/bytes/score", Origin="http://evil.example")[0] == 405


def test_no_file_of_a_request_is_opened(client: Client) -> None:
    for path in ("/page.css/../../application.py", "/%2e%2e/application.py", "/static/../x"):
        assert client.ask("GET", path)[0] == 404
    status, answer = client.post("/v1/models/bytes/score", {"text": "recipe"})
    assert status == 200
    assert [token["token"] for token in answer["tokens"]] == list("recipe")

"""The routes: what is asked becomes a call of a posterior, its result is the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from ..data.features import ImageFeatures
from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..models.extractor import Extractor
from ..predict.captioning import BeamSettings
from ..predict.generation import Letters
from .guard import Guard
from .limits import Limits
from .metrics import Metrics
from .models import Pictures, Served
from .pictures import features_of_picture
from .problems import Problem, of_refusal, of_validation
from .requests import CaptionRequest, ClassifyRequest, GenerateRequest, NextRequest, ScoreRequest

PAGE = Path(__file__).parent / "page"
FILES = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js", "/api": "api.html",
         "/api.js": "api.js"}  # fmt: skip
T = TypeVar("T")
Body = dict[str, Any]


def application(
    models: Mapping[str, Served],
    limits: Limits,
    metrics: Metrics,
    *,
    token: str | None = None,
    hosts: set[str] | None = None,
    extractor: Extractor | None = None,
) -> ASGIApp:
    """What a server serves: the page, the API, and what watches both."""
    app = FastAPI(title="langevin", docs_url=None, redoc_url=None)
    add_handlers(app, models)
    add_pages(app, models, metrics)
    add_language(app, models, limits)
    add_classification(app, models, limits)
    add_captions(app, models, limits, extractor)
    return Guard(app, limits, metrics, token, hosts)


def add_handlers(app: FastAPI, models: Mapping[str, Served]) -> None:
    """Every refusal in one form."""
    secrets = [text for served in models.values()
               for text in (str(served.posterior.path), str(served.posterior.path.resolve()))]  # fmt: skip

    def answer(problem: Problem) -> JSONResponse:
        return JSONResponse(problem.to_dict(), problem.status, problem.headers)

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        return answer(error)

    @app.exception_handler(LangevinError)
    async def refused(request: Request, error: LangevinError) -> Response:
        return answer(of_refusal(error, secrets))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return answer(of_validation(error.errors()))

    @app.exception_handler(HTTPException)
    @app.exception_handler(404)
    @app.exception_handler(405)
    async def absent(request: Request, error: HTTPException) -> Response:
        if error.status_code in (404, 405):
            got = f"{request.method} {request.url.path[:80]}"
            return answer(Problem(error.status_code, "a path of this API", got, "see /openapi.json"))
        return answer(Problem(error.status_code, "a body of JSON", "another", "see /openapi.json"))


def add_pages(app: FastAPI, models: Mapping[str, Served], metrics: Metrics) -> None:
    """The page with its files, and what machines ask first."""

    def add(path: str, name: str) -> None:
        async def page() -> FileResponse:
            return FileResponse(PAGE / name)

        app.get(path, include_in_schema=False)(page)

    for path, name in FILES.items():
        add(path, name)

    @app.get("/healthz")
    async def health() -> Body:
        return {"status": "ready", "models": len(models)}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def counted() -> str:
        return metrics.text()

    @app.get("/v1/models")
    async def all_models() -> Body:
        return {"models": [served.about() for served in models.values()]}


def add_language(app: FastAPI, models: Mapping[str, Served], limits: Limits) -> None:
    """Score, next, generate."""

    @app.post("/v1/models/{name}/score")
    async def score(name: str, asked: ScoreRequest) -> Body:
        served = find_model(models, name)
        served.language()
        limits.check_text(asked.text)
        return (await in_time(limits, served.score(asked.text, asked.adapt))).to_dict()

    @app.post("/v1/models/{name}/next")
    async def following(name: str, asked: NextRequest) -> Body:
        served = find_model(models, name)
        served.language()
        limits.check_text(asked.text)
        found = await in_time(limits, served.next(asked.text, asked.top))
        return {"tokens": [token.to_dict() for token in found]}

    @app.post("/v1/models/{name}/generate")
    async def generate(name: str, asked: GenerateRequest) -> StreamingResponse:
        served = find_model(models, name)
        vocabulary = served.language().vocabulary
        limits.check_text(asked.prompt)
        limits.check_number("length", asked.length, limits.tokens)
        tokens = served.writer.write(asked)
        first = await in_time(limits, anext(tokens))
        return StreamingResponse(events(vocabulary, asked.prompt, first, tokens), media_type="text/event-stream")


async def events(
    vocabulary: Vocabulary, prompt: str, first: int, tokens: AsyncIterator[int]
) -> AsyncIterator[str]:
    """Server-sent events: a piece of text each, then one that says that it is the end."""
    letters = Letters(vocabulary, prompt)

    def event(text: str, **more: Any) -> str:
        return f"data: {json.dumps({'text': text} | more)}\n\n"

    yield event(letters.add(first))
    async for token in tokens:
        yield event(letters.add(token))
    yield event(letters.end(), done=True)


def add_classification(app: FastAPI, models: Mapping[str, Served], limits: Limits) -> None:
    """Classify."""

    @app.post("/v1/models/{name}/classify")
    async def classify(name: str, asked: ClassifyRequest) -> Body:
        served, texts = find_model(models, name), asked.all_texts()
        served.classifier()
        limits.check_texts(texts)
        found = await in_time(limits, served.classify(texts))
        return {"answers": [prediction.to_dict() for prediction in found]}


def add_captions(
    app: FastAPI, models: Mapping[str, Served], limits: Limits, extractor: Extractor | None
) -> None:
    """Caption: a row of features as JSON, or a picture."""

    async def read(served: Served, request: Request) -> CaptionRequest:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await request.body()
        if kind == "application/json":
            try:
                return CaptionRequest.model_validate_json(body)
            except ValidationError as error:
                raise of_validation(error.errors()) from None
        if kind not in ("image/jpeg", "image/png"):
            raise Problem(415, "application/json, image/jpeg or image/png", kind[:60] or "no type",
                          "name the type in Content-Type")  # fmt: skip
        seeing = extractor or served.extractor
        row = await served.worker.run(features_of_picture, body, seeing, limits.pixels)
        return CaptionRequest(features=row, per_sample=min(2, len(served.posterior)))

    @app.post("/v1/models/{name}/caption")
    async def caption(name: str, request: Request) -> Body:
        served = find_model(models, name)
        served.captioner()
        asked = await read(served, request)
        limits.check_number("beam", asked.beam, limits.beam)
        rows = ImageFeatures.of_row("the request", asked.features)
        search = BeamSettings(asked.beam, asked.top)
        found = await in_time(limits, served.caption(Pictures(rows, search, asked.per_sample)))
        return found[0].to_dict()


def find_model(models: Mapping[str, Served], name: str) -> Served:
    if name not in models:
        known = ", ".join(models)
        raise Problem(404, f"one of the models {known}", repr(name[:80]), "see /v1/models")
    return models[name]


async def in_time(limits: Limits, work: Awaitable[T]) -> T:
    """Its result, unless it takes longer than a request may."""
    try:
        return await asyncio.wait_for(work, limits.seconds)
    except TimeoutError:
        raise Problem(408, f"an answer within {limits.seconds:g} seconds", "none",
                      "ask for less at a time") from None  # fmt: skip

"""What each path of the API asks of its model."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import ValidationError

from ..data.features import ImageFeatures
from ..data.vocabulary import Vocabulary
from ..predict.captioning import BeamSettings
from ..predict.generation import Letters
from ..predict.results import PictureCaptions
from .answers import ClassifyAnswer, Decisions, NextAnswer, ScoreAnswer, encode
from .captioning import Picture, ServedCaptioner
from .classification import ServedClassifier
from .language import ServedLanguage
from .limits import Limits
from .models import Served, find_model
from .pictures import features_of_picture
from .problems import Problem, of_failure, of_validation
from .requests import (
    CaptionRequest,
    CaptionSearch,
    ClassifyRequest,
    GenerateRequest,
    NextRequest,
    ScoreRequest,
)

log = logging.getLogger("langevin")
Models = Mapping[str, Served[Any]]
T = TypeVar("T")
JSON, PICTURES = "application/json", ("image/jpeg", "image/png")
MODEL = "/v1/models/{name}"
EITHER_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": CaptionRequest.model_json_schema()},
            **{kind: {"schema": {"type": "string", "format": "binary"}} for kind in PICTURES},
        },
    }
}


def answer_of(body: bytes) -> Response:
    return Response(body, media_type=JSON)


def type_of(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def expect_json(request: Request) -> None:
    """A form of a foreign page can send no such type without asking first."""
    if type_of(request) != JSON:
        raise Problem(415, JSON, type_of(request)[:60] or "no type", "name it in Content-Type")


STRICT = [Depends(expect_json)]


async def in_time(limits: Limits, work: Awaitable[T]) -> T:
    """Its result, unless it takes longer than a request may."""
    try:
        return await asyncio.wait_for(work, limits.seconds)
    except TimeoutError:
        raise Problem(408, f"an answer within {limits.seconds:g} seconds", "none",
                      "ask for less at a time") from None  # fmt: skip


def language_routes(models: Models, limits: Limits) -> APIRouter:
    """Score, next, generate."""
    router = APIRouter(tags=["language models"])

    @router.post(f"{MODEL}/score", response_model=ScoreAnswer, dependencies=STRICT)
    async def score(name: str, asked: ScoreRequest) -> Response:
        """The probability of each token of a text: averaged, by part, and how sure that is."""
        served = find_model(models, name, ServedLanguage)
        limits.check_text(asked.text)
        return answer_of(await in_time(limits, served.scores.ask(asked)))

    @router.post(f"{MODEL}/next", response_model=NextAnswer, dependencies=STRICT)
    async def likeliest(name: str, asked: NextRequest) -> Response:
        """The likeliest tokens after a text, with their spread."""
        served = find_model(models, name, ServedLanguage)
        limits.check_text(asked.text)
        limits.check_number("top", asked.top, limits.top)
        return answer_of(await in_time(limits, served.nexts.ask(asked)))

    @router.post(f"{MODEL}/generate", response_class=StreamingResponse, dependencies=STRICT)
    async def generate(name: str, asked: GenerateRequest) -> StreamingResponse:
        """A text that goes on: server-sent events with pieces of `text`, the last one `done`."""
        served = find_model(models, name, ServedLanguage)
        limits.check_text(asked.prompt)
        limits.check_number("length", asked.length, limits.tokens)
        tokens = served.writer.write(asked)
        first = await in_time(limits, anext(tokens))
        pieces = events(served.posterior.vocabulary, asked.prompt, first, tokens, limits)
        return StreamingResponse(pieces, media_type="text/event-stream")

    return router


async def events(
    vocabulary: Vocabulary, prompt: str, first: int, tokens: AsyncIterator[int], limits: Limits
) -> AsyncIterator[str]:
    """Server-sent events: a piece of text each, then one that says that it is the end, or why."""
    letters, clock = Letters(vocabulary, prompt), asyncio.get_running_loop().time
    until = clock() + limits.seconds

    def event(text: str, **more: Any) -> str:
        return f"data: {json.dumps({'text': text} | more)}\n\n"

    late = Problem(408, f"a text written within {limits.seconds:g} seconds", "a longer one",
                   "ask for fewer tokens")  # fmt: skip
    yield event(letters.add(first))
    try:
        async for token in tokens:
            yield event(letters.add(token))
            if clock() > until:
                raise late
    except Problem as problem:
        yield event(letters.end(), done=False, **problem.to_dict())
    except Exception:
        log.exception("a text could not be written to its end")
        yield event(letters.end(), done=False, **of_failure().to_dict())
    else:
        yield event(letters.end(), done=True)


def class_routes(models: Models, limits: Limits) -> APIRouter:
    """Classify, and what may be promised of it."""
    router = APIRouter(tags=["classifiers"])

    @router.post(f"{MODEL}/classify", response_model=ClassifyAnswer, dependencies=STRICT)
    async def classify(name: str, asked: ClassifyRequest) -> Response:
        """The class of each text, the probability of every class, and how sure that is."""
        served = find_model(models, name, ServedClassifier)
        limits.check_texts(asked.all_texts)
        return answer_of(await in_time(limits, served.answers.ask(asked)))

    @router.get(f"{MODEL}/decisions", response_model=Decisions)
    async def decisions(name: str) -> Response:
        """Thresholds with the errors that validation found below them, and bounds for new texts."""
        served = find_model(models, name, ServedClassifier)
        found = await in_time(limits, served.worker.run(served.promises.decisions))
        return answer_of(encode(found))

    return router


def caption_routes(models: Models, limits: Limits) -> APIRouter:
    """Caption: a row of features as JSON, or a picture as it is."""
    router = APIRouter(tags=["captioners"])

    async def read(served: ServedCaptioner, request: Request, search: CaptionSearch) -> Picture:
        kind, body = type_of(request), await request.body()
        if kind == JSON:
            try:
                asked = CaptionRequest.model_validate_json(body)
            except ValidationError as error:
                raise of_validation(error.errors()) from None
            row, search = asked.features, asked
        elif kind in PICTURES:
            row = await in_time(
                limits, served.worker.run(features_of_picture, body, served.extractor, limits.pixels)
            )
        else:
            raise Problem(415, f"{JSON} or {' or '.join(PICTURES)}", kind[:60] or "no type",
                          "name it in Content-Type")  # fmt: skip
        for key, value in search.model_dump(include={"beam", "top", "per_sample"}).items():
            limits.check_number(key, value, limits.beam)
        features = ImageFeatures.of_row("the request", row)
        features.expect_width(served.posterior.width)
        return Picture(features, BeamSettings(search.beam, search.top), search.per_sample)

    @router.post(f"{MODEL}/caption", response_model=PictureCaptions, openapi_extra=EITHER_BODY)
    async def caption(
        name: str, request: Request, search: Annotated[CaptionSearch, Query()]
    ) -> Response:
        """Captions of a picture by the average of the samples, and by single ones."""
        served = find_model(models, name, ServedCaptioner)
        limits.check_waiting(served.answers.length)
        picture = await read(served, request, search)
        return answer_of(await in_time(limits, served.answers.ask(picture)))

    return router

"""The service as one application: routes, page, refusals, and what watches over all of them."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from .. import __version__
from ..errors import LangevinError
from ..report.components import SHARED
from .answers import Health, ModelList, encode
from .guard import Guard
from .limits import Limits
from .metrics import Metrics
from .problems import Problem, of_failure, of_refusal, of_validation
from .routes import Models, answer_of, caption_routes, class_routes, language_routes

PAGE = Path(__file__).parent / "page"
FILES = {"/": PAGE / "index.html", "/api": PAGE / "api.html"} | {
    f"/{file.name}": file for folder in (PAGE, SHARED)
    for file in sorted(folder.iterdir()) if file.suffix in (".css", ".js")
}  # fmt: skip
"""All files that are sent. No name in a request leads to another."""
SCHEMA, HEALTH = "/openapi.json", "/healthz"


def application(
    models: Models, limits: Limits, metrics: Metrics, *, token: str | None = None,
    hosts: set[str] | None = None,
) -> ASGIApp:  # fmt: skip
    """What a server serves: the page, the API, and what watches both."""
    app = FastAPI(title="langevin", version=__version__, docs_url=None, redoc_url=None,
                  openapi_url=SCHEMA)  # fmt: skip
    add_refusals(app, models)
    add_pages(app, models, metrics)
    for routes in (language_routes, class_routes, caption_routes):
        app.include_router(routes(models, limits))
    public = {*FILES, SCHEMA, HEALTH}
    return Guard(app, limits, metrics, token=token, hosts=hosts, open=public)


def add_refusals(app: FastAPI, models: Models) -> None:
    """Every refusal in one form. What is ours to mend is logged, and told without a detail."""
    paths = [served.posterior.path for served in models.values()]
    folders = [str(name) for path in paths for name in (path, path.resolve())]

    def answer(problem: Problem) -> Response:
        return Response(problem.body, problem.status_code, problem.headers)

    @app.exception_handler(LangevinError)
    async def refused(request: Request, error: LangevinError) -> Response:
        return answer(of_refusal(error, folders))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return answer(of_validation(error.errors()))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return answer(of_failure())

    @app.exception_handler(HTTPException)
    @app.exception_handler(404)
    @app.exception_handler(405)
    async def absent(request: Request, error: HTTPException) -> Response:
        if isinstance(error, Problem):
            return answer(error)
        if error.status_code in (404, 405):
            got = f"{request.method} {request.url.path[:80]}"
            return answer(Problem(error.status_code, "a path of this API", got, f"see {SCHEMA}"))
        return answer(Problem(error.status_code, "a body of JSON", "another", f"see {SCHEMA}"))


def add_pages(app: FastAPI, models: Models, metrics: Metrics) -> None:
    """The page with its files, and what machines ask first."""

    def add(path: str, file: Path) -> None:
        async def page() -> FileResponse:
            return FileResponse(file)

        app.get(path, include_in_schema=False)(page)

    for path, file in FILES.items():
        add(path, file)

    @app.get(HEALTH, response_model=Health)
    async def health() -> Response:
        """Whether the samples are loaded."""
        return answer_of(encode(Health("ready", len(models))))

    @app.get("/metrics", response_class=PlainTextResponse)
    async def counted() -> PlainTextResponse:
        """Requests, seconds, batch sizes, queues and memory, for Prometheus."""
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/v1/models", response_model=ModelList)
    async def all_models() -> Response:
        """What is served: recipe, samples, what an answer costs, the limits."""
        return answer_of(encode(ModelList(tuple(served.about for served in models.values()))))

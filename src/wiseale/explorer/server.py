"""The server behind the page: Starlette routes over a session."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from wiseale.errors import WiseAleError
from wiseale.explorer.assets import load_assets
from wiseale.explorer.manifest import contour_lines, geometry, manifest
from wiseale.explorer.observation import Values
from wiseale.explorer.security import Address, Guard, TooLargeError
from wiseale.explorer.session import MOST_CODES, OwnRows, Session, ShownRun


def make_app(session: Session, address: Address, token: str) -> Starlette:
    """The application; every address begins with the token."""
    routes = _Routes(session)
    table: list[tuple[str, str, Callable[..., Any]]] = [
        ("GET", "/", routes.page),
        ("GET", "/session.json", routes.manifest),
        ("GET", "/geometry/{run:int}", routes.geometry),
        ("GET", "/colouring/{number:int}", routes.colouring),
        ("GET", "/contours/{run:int}/{axes}", routes.contours),
        ("GET", "/original/{row:int}", routes.original),
        ("GET", "/thumbnails", routes.thumbnails),
        ("POST", "/decode/{run:int}", routes.decode),
        ("POST", "/own/{run:int}/{suffix}", routes.own_rows),
        ("GET", "/{name}", routes.asset),  # last: it takes any single word
    ]
    return Starlette(
        routes=[Route(f"/{{token}}{path}", endpoint, methods=[method]) for method, path, endpoint in table],
        middleware=[Middleware(Guard, address=address, token=token)],
        exception_handlers={WiseAleError: _refused, TooLargeError: _too_large, HTTPException: _http_error},
    )


class _Routes:
    """One method for each address."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._assets = load_assets()
        # Ready before the first request: the description, and the contours of the plane that is shown first.
        self._manifest = manifest(session)
        for run in session.runs:
            if run.latent_dim > 1:
                run.contours("0,1" if all(one.latent_dim == 2 for one in session.runs) else "pca")

    async def page(self, request: Request) -> Response:
        return self._asset("index.html")

    async def asset(self, request: Request) -> Response:
        return self._asset(request.path_params["name"])

    async def manifest(self, request: Request) -> Response:
        return JSONResponse(self._manifest)

    async def geometry(self, request: Request) -> Response:
        return _binary(geometry(self._run(request)))

    async def colouring(self, request: Request) -> Response:
        number = request.path_params["number"]
        if number >= len(self._session.colourings):
            raise HTTPException(404)
        return _binary(self._session.colourings[number].values.astype("<f4").tobytes())

    async def contours(self, request: Request) -> Response:
        axes: str = request.path_params["axes"]
        return JSONResponse(contour_lines(await run_in_threadpool(self._run(request).contours, axes)))

    async def original(self, request: Request) -> Response:
        row = request.path_params["row"]
        if row >= len(self._session.shown.rows) or self._session.shown.codes:
            raise HTTPException(404)
        return _binary(self._session.x(np.array([row])).astype("<f4").tobytes())

    async def thumbnails(self, request: Request) -> Response:
        return _binary((await run_in_threadpool(self._session.thumbnails)).tobytes())

    async def decode(self, request: Request) -> Response:
        """Codes in float32, one after another, to observations in float32."""
        run = self._run(request)
        body = await request.body()
        if len(body) > 4 * MOST_CODES * run.latent_dim:
            return JSONResponse({"error": f"at most {MOST_CODES} codes are decoded at once"}, 413)
        if len(body) % (4 * run.latent_dim):
            return JSONResponse({"error": f"codes of this model have {run.latent_dim} numbers each"}, 422)
        z = np.frombuffer(body, "<f4").reshape(-1, run.latent_dim)
        return _binary((await run_in_threadpool(run.decode, z)).astype("<f4").tobytes())

    async def own_rows(self, request: Request) -> Response:
        run, body = self._run(request), await request.body()
        own = await run_in_threadpool(run.own_rows, body, request.path_params["suffix"])
        return JSONResponse(own_rows_json(own))

    def _run(self, request: Request) -> ShownRun:
        number: int = request.path_params["run"]
        if number >= len(self._session.runs):
            raise HTTPException(404)
        return self._session.runs[number]

    def _asset(self, name: str) -> Response:
        if name not in self._assets:
            raise HTTPException(404)
        return Response(self._assets[name].text, media_type=self._assets[name].media_type)


def own_rows_json(own: OwnRows) -> dict[str, Any]:
    """Dropped rows and their posteriors."""
    assert own.codes.error is not None
    return {
        "available": own.available,
        "x": _without_nan(own.x.reshape(len(own.x), -1)),
        "x_hat": own.x_hat.reshape(len(own.x), -1).tolist(),
        "mu": own.codes.mu.tolist(),
        "sigma": None if own.codes.sigma is None else own.codes.sigma.tolist(),
        "error": _without_nan(own.codes.error[None])[0],  # a row without an observed cell has none
    }


def _without_nan(rows: Values) -> list[list[float | None]]:
    """JSON has no NaN: a missing cell is null."""
    return [[None if math.isnan(value) else value for value in row] for row in rows.tolist()]


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": " ".join(str(error).split())}, 422)


async def _too_large(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "the body is too large"}, 413)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)

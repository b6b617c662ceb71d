"""The server behind the page: Starlette routes over a session, served by uvicorn until Ctrl-C."""

from __future__ import annotations

import math
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from wiseale.errors import ConfigError, WiseAleError
from wiseale.explorer.assets import load_assets
from wiseale.explorer.manifest import contour_lines, geometry, manifest
from wiseale.explorer.observation import Values
from wiseale.explorer.security import Address, Guard
from wiseale.explorer.session import MOST_CODES, Session, ShownRun

T = TypeVar("T")

_MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def serve(session: Session, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Listen on the address (port 0: a free one) and call ``ready`` with the page's URL; returns when interrupted."""
    with listen(host, port) as listener:
        address, token = Address(host, listener.getsockname()[1]), secrets.token_urlsafe(16)  # 128 random bits
        settings = uvicorn.Config(
            make_app(session, address, token),
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="off",
            timeout_keep_alive=30,
        )
        named = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        ready(f"http://{f'[{named}]' if ':' in named else named}:{address.port}/{token}/")
        with suppress(KeyboardInterrupt):  # the way to end it
            uvicorn.Server(settings).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on the address; port 0 is a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named asyncio turns Nagle's algorithm off, which would delay every answer by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # before the address is printed: who opens it at once waits instead of failing
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {host}, port {port}: {error.strerror}; try another --port") from None
    return listener


def make_app(session: Session, address: Address, token: str) -> Starlette:
    """The application; every address begins with the token."""
    routes = _Routes(session)
    table: list[tuple[str, str, Callable[..., Any]]] = [
        ("GET", "/", routes.asset),
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
        exception_handlers={WiseAleError: _refused, HTTPException: _http_error},
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

    async def asset(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._assets:
            raise HTTPException(404)
        return Response(self._assets[name], media_type=_MEDIA_TYPES[name.rpartition(".")[2]])

    async def manifest(self, request: Request) -> Response:
        return JSONResponse(self._manifest)

    async def geometry(self, request: Request) -> Response:
        return _binary(geometry(self._run(request)))

    async def colouring(self, request: Request) -> Response:
        return _binary(_at(self._session.colourings, request.path_params["number"]).values)

    async def contours(self, request: Request) -> Response:
        axes: str = request.path_params["axes"]
        return JSONResponse(contour_lines(await run_in_threadpool(self._run(request).contours, axes)))

    async def original(self, request: Request) -> Response:
        row = request.path_params["row"]
        if row >= len(self._session.shown.rows) or self._session.shown.codes:
            raise HTTPException(404)
        return _binary(self._session.x(np.array([row])))

    async def thumbnails(self, request: Request) -> Response:
        return _binary((await run_in_threadpool(self._session.thumbnails)).tobytes())

    async def decode(self, request: Request) -> Response:
        """Codes in float32, one after another, to observations in float32."""
        run = self._run(request)
        body = await request.body()
        if len(body) > 4 * MOST_CODES * run.latent_dim:
            raise HTTPException(413, f"at most {MOST_CODES} codes are decoded at once")
        if len(body) % (4 * run.latent_dim):
            raise HTTPException(422, f"codes of this model have {run.latent_dim} numbers each")
        z = np.frombuffer(body, "<f4").reshape(-1, run.latent_dim)
        return _binary(await run_in_threadpool(run.decode, z))

    async def own_rows(self, request: Request) -> Response:
        """Dropped rows and their posteriors."""
        run, body = self._run(request), await request.body()
        own = await run_in_threadpool(run.own_rows, body, request.path_params["suffix"])
        codes = own.codes
        assert codes.error is not None
        return JSONResponse(
            {
                "available": own.available,
                "x": _without_nan(own.x.reshape(len(own.x), -1)),
                "x_hat": own.x_hat.reshape(len(own.x), -1).tolist(),
                "mu": codes.mu.tolist(),
                "sigma": None if codes.sigma is None else codes.sigma.tolist(),
                "error": _without_nan(codes.error[None])[0],  # a row without an observed cell has none
            }
        )

    def _run(self, request: Request) -> ShownRun:
        return _at(self._session.runs, request.path_params["run"])


def _at(items: Sequence[T], number: int) -> T:
    if number >= len(items):
        raise HTTPException(404)
    return items[number]


def _without_nan(rows: np.ndarray[Any, Any]) -> list[list[float | None]]:
    """JSON has no NaN: a missing cell is null."""
    return [[None if math.isnan(value) else value for value in row] for row in rows.tolist()]


def _binary(content: bytes | Values) -> Response:
    """Bytes, or numbers as little-endian float32."""
    body = content if isinstance(content, bytes) else content.astype("<f4").tobytes()
    return Response(body, media_type="application/octet-stream")


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": " ".join(str(error).split())}, 422)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)

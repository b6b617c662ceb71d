"""The explorer's server on a free port of this machine, and requests to it exactly as written."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from wiseale.explorer.security import Address
from wiseale.explorer.server import listen, make_app
from wiseale.explorer.session import Session

TOKEN = "secret-token"


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True)
class LocalServer:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{TOKEN}/"

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Send a request; the path is not normalised, and headers given replace our own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        given = {name.lower() for name in headers or {}}
        try:
            connection.putrequest(method, path, skip_host="host" in given, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if isinstance(body, bytes) and "content-length" not in given:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body if isinstance(body, bytes) else None)
            reply = connection.getresponse()
            return Answer(reply.status, reply.read(), {name.lower(): value for name, value in reply.getheaders()})
        finally:
            connection.close()

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        return self.ask("GET", f"/{TOKEN}/{path}", headers=headers)

    def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> Answer:
        return self.ask("POST", f"/{TOKEN}/{path}", body, headers)


@contextmanager
def local_server(session: Session) -> Iterator[LocalServer]:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        app = make_app(session, Address("127.0.0.1", port), TOKEN)
        settings = uvicorn.Config(app, log_level="error", access_log=False, ws="none", lifespan="off")
        server = uvicorn.Server(settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield LocalServer(port)
        finally:
            server.should_exit = True
            thread.join()

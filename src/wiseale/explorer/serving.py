"""Run the server until Ctrl-C."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from wiseale.errors import ConfigError
from wiseale.explorer.security import Address, new_token
from wiseale.explorer.server import make_app
from wiseale.explorer.session import Session


def serve(session: Session, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Listen on the address (port 0: a free one) and call ``ready`` with the page's URL; returns when interrupted."""
    listener = listen(host, port)
    address = Address(host, listener.getsockname()[1])
    token = new_token()
    app = make_app(session, address, token)
    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        timeout_keep_alive=30,
    )
    named = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    ready(f"http://{f'[{named}]' if ':' in named else named}:{address.port}/{token}/")
    try:
        uvicorn.Server(settings).run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # the way to end it
    finally:
        listener.close()


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

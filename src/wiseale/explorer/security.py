"""What protects the server: a token in every address, checks of Host and Origin, bounded bodies, strict headers.

A page of another site open in the same browser can send requests to 127.0.0.1. It knows neither the token nor can it
read answers; a name of its own that resolves to 127.0.0.1 (DNS rebinding) is refused by the Host header.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY_BYTES = 32 << 20

POLICY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Address:
    """Where the server listens."""

    host: str
    port: int

    def accepts(self, host_header: str) -> bool:
        """Whether a Host header names this server.

        Listening on every interface (0.0.0.0), any IP address is accepted, and this machine's name: a foreign name
        cannot be.
        """
        host, colon, port = host_header.lower().rpartition(":")
        if not colon or port.endswith("]"):
            host, port = host_header.lower(), "80"
        host = host.strip("[]")
        if port != str(self.port):
            return False
        if host in {"localhost", self.host} or _is_loopback(host):
            return True
        local = self.host == "localhost" or _is_loopback(self.host)  # only this machine can reach it
        return not local and (_is_loopback(host) is not None or host == socket.gethostname().lower())


def _is_loopback(host: str) -> bool | None:
    """Whether an IP address is this machine's own; None for what is no IP address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return None


class Guard:
    """ASGI middleware: refuses what does not come from our own page, bounds bodies, and adds the policy's headers."""

    def __init__(self, app: ASGIApp, address: Address, token: str) -> None:
        self.app, self.address, self.token = app, address, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on one request."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(Headers(scope=scope), scope["path"])
        if refusal is not None:
            status, reason = refusal
            await JSONResponse({"error": reason}, status)(scope, receive, _with_policy(send))
            return
        await self.app(scope, _bounded(receive), _with_policy(send))

    def _refusal(self, headers: Headers, path: str) -> tuple[int, str] | None:
        if not self.address.accepts(headers.get("host", "")):
            return 403, "this server answers only under its own address"
        scheme, _, origin = headers.get("origin", f"http://{headers['host']}").partition("://")
        site = headers.get("sec-fetch-site", "same-origin")
        if scheme != "http" or not self.address.accepts(origin) or site not in ("same-origin", "none"):
            return 403, "this server answers only its own page"
        given = path.split("/")[1] if path.startswith("/") else ""
        if not secrets.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
            return 403, "open the address that `wiseale explore` printed: it carries a token"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MOST_BODY_BYTES:
            return 413, f"at most {MOST_BODY_BYTES >> 20} MB are accepted"
        return None


def _bounded(receive: Receive) -> Receive:
    """Receive at most MOST_BODY_BYTES, whatever length was declared."""
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MOST_BODY_BYTES:
            raise HTTPException(413, "the body is too large")
        return message

    return counted


def _with_policy(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(POLICY)
        await send(message)

    return send_with_headers

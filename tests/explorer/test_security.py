"""What the server refuses, and that it refuses politely: one line of JSON, no traceback, and it goes on serving."""

import asyncio
import io

import numpy as np
import pytest
from tests.explorer.local_server import TOKEN, local_server

from wiseale.explorer.security import MOST_BODY_BYTES, Address
from wiseale.explorer.server import make_app
from wiseale.explorer.session import MOST_CODES


@pytest.fixture(scope="module")
def server(image_session):
    with local_server(image_session) as server:
        yield server


def codes(*values):
    return np.array(values, "<f4").tobytes()


def test_the_page_and_its_files_are_served_with_a_strict_policy(server):
    page = server.get("")
    assert page.status == 200
    assert "<title>" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert not any(inline in page.text for inline in ("onclick=", "<style", "style=", "<script>"))
    assert server.get("explorer.js").headers["content-type"].startswith("text/javascript")


FOREIGN = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1:9",
    "127.0.0.1",
    "localhost.evil.example:{port}",
    "",
    "a:b:c",
]


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_host_is_refused(server, host):
    answer = server.get("session.json", {"host": host.format(port=server.port)})
    assert answer.status in (400, 403)
    assert b"numbers" not in answer.content


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_this_machine_is_accepted(server, host):
    assert server.get("session.json", {"host": f"{host}:{server.port}"}).status == 200


ORIGINS = [
    "https://evil.example",
    "http://evil.example:{port}",
    "null",
    "http://127.0.0.1:80",
    "https://127.0.0.1:{port}",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_foreign_origin_is_refused(server, origin):
    answer = server.post("decode/0", codes(0, 0), {"origin": origin.format(port=server.port)})
    assert answer.status == 403


def test_the_own_origin_is_accepted(server):
    answer = server.post("decode/0", codes(0, 0), {"origin": f"http://127.0.0.1:{server.port}"})
    assert answer.status == 200
    assert len(answer.content) == 4 * 12 * 12


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_that_the_browser_says_come_from_elsewhere_are_refused(server, site):
    assert server.get("session.json", {"sec-fetch-site": site}).status == 403


WITHOUT = [
    "/",
    "/session.json",
    "/wrong/session.json",
    "/secret-toke/",
    "/secret-token2/",
    "//",
    "/%C3%A9/",
    "/?secret-token",
]


@pytest.mark.parametrize("path", WITHOUT)
def test_without_the_token_nothing_is_served(server, path):
    answer = server.ask("GET", path)
    assert answer.status == 403
    assert "token" in answer.json["error"]


TRAVERSALS = [
    *(
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "..%5cserver.py",
        "static/../../server.py",
        "....//server.py",
    ),
    *("/etc/passwd", "%2fetc%2fpasswd", "server.py", "main.js%00.html", "C:%5cwindows%5cwin.ini", "..", "."),
    *("original/-1", "original/999999", "original/..%2f..%2fetc%2fpasswd", "original/1e9", f"original/{'9' * 400}"),
    *("geometry/7", "colouring/99", "contours/0/..%2f..%2fserver.py"),
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_reaches_the_file_system(server, path):
    answer = server.get(path)
    assert answer.status in (400, 403, 404, 405, 422)
    assert "def " not in answer.text
    assert "root:" not in answer.text


def test_a_declared_body_of_1_gb_is_refused_before_it_is_read(server):
    answer = server.ask("POST", f"/{TOKEN}/own/0/npy", headers={"content-length": str(1 << 30)})
    assert answer.status == 413


@pytest.mark.parametrize("length", ["-1", "abc", "1e3"])
def test_a_length_that_is_no_number_is_refused(server, length):
    assert server.ask("POST", f"/{TOKEN}/own/0/npy", headers={"content-length": length}).status in (400, 413)


def test_of_a_streamed_gigabyte_no_more_than_the_limit_is_read(image_session):
    app = make_app(image_session, Address("127.0.0.1", 8808), TOKEN)
    read, status = asyncio.run(_streamed(app, 1 << 30))
    assert status == 413
    assert read <= MOST_BODY_BYTES + (1 << 20)


async def _streamed(app, total):
    """How many bytes of a body of undeclared length the application reads before it answers, and its status."""
    read, status, block = 0, [], bytes(1 << 20)

    async def receive():
        nonlocal read
        read += len(block)
        return {"type": "http.request", "body": block, "more_body": read < total}

    async def send(message):
        if message["type"] == "http.response.start":
            status.append(message["status"])

    path = f"/{TOKEN}/own/0/npy"
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
    }
    scope |= {"query_string": b"", "headers": [(b"host", b"127.0.0.1:8808")], "http_version": "1.1"}
    await app(scope, receive, send)
    return read, status[0]


def test_10_000_codes_in_one_request_are_refused(server):
    answer = server.post("decode/0", codes(*np.zeros(20_000)))
    assert answer.status == 413
    assert str(MOST_CODES) in answer.json["error"]
    assert server.post("decode/0", codes(*np.zeros(2 * MOST_CODES))).status == 200


BAD_CODES = [
    *((codes(np.nan, 0), "finite"), (codes(np.inf, 0), "finite"), (codes(1e30, 0), "far outside")),
    *((codes(0, 0, 0), "2 numbers"), (b"", "2 numbers"), (b"abc", "2 numbers")),
]


@pytest.mark.parametrize(("content", "word"), BAD_CODES)
def test_bad_codes_are_answered_politely(server, content, word):
    answer = server.post("decode/0", content)
    assert answer.status == 422
    assert word in answer.json["error"]


@pytest.mark.parametrize("axes", ["0", "0,1,2", "0,9", "-1,0", "a,b", "0,%C2%B2", "pca2"])
def test_bad_axes_are_answered_politely(server, axes):
    answer = server.get(f"contours/0/{axes}")
    assert answer.status == 422
    assert "latent units" in answer.json["error"]


@pytest.mark.parametrize("suffix", ["exe", "pkl", "npz", "html", "..", "%2e%2e%2fx"])
def test_other_kinds_of_files_are_refused(server, suffix):
    assert server.post(f"own/0/{suffix}", b"MZ").status in (404, 405, 422)


def test_a_pickled_array_is_never_loaded(server):
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    answer = server.post("own/0/npy", file.getvalue())
    assert answer.status == 422
    assert "real numbers" in answer.json["error"]


def test_other_methods_are_refused(server):
    assert server.get("decode/0").status == 405
    assert server.ask("DELETE", f"/{TOKEN}/session.json").status == 405


def test_an_address_for_all_interfaces_accepts_ip_addresses_but_no_foreign_names():
    everywhere = Address("0.0.0.0", 8808)
    assert everywhere.accepts("192.168.1.7:8808")
    assert not everywhere.accepts("evil.example:8808")
    assert not everywhere.accepts("192.168.1.7:80")
    assert not everywhere.accepts("192.168.1.7:" + "1" * 5000)
    assert not Address("127.0.0.1", 8808).accepts("192.168.1.7:8808")

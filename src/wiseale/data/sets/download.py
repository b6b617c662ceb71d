"""Download one file over HTTP in chunks; a broken download is resumed, and a file that is too long is refused."""

from __future__ import annotations

import errno
import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

Report = Callable[[int, int | None], None]
"""Called with the bytes on disk and the total; the total is None if the server does not send it."""

_CHUNK_BYTES = 1 << 16
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ATTEMPTS = 10  # per URL, as long as each brings new bytes


class DownloadError(Exception):
    """A URL did not deliver the file; the message gives the reason in a few words."""


def download(url: str, part: Path, max_bytes: int, report: Report, timeout: float) -> None:
    """Download ``url`` into ``part``, continuing after the bytes it already holds if the server supports ranges.

    Args:
        url: where the file is.
        part: the partial file; complete afterwards.
        max_bytes: raise if the server sends more.
        report: called after each chunk.
        timeout: seconds without any data before the connection is given up.
    """
    for _ in range(_ATTEMPTS):
        before = _size(part)
        try:
            if _download_rest(url, part, max_bytes, report, timeout):
                return
        except urllib.error.HTTPError as error:
            with error:
                raise DownloadError(f"HTTP {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            if _is_disk_error(error):
                raise
            if _size(part) <= before:  # no progress: do not retry
                raise DownloadError(_reason(error)) from None
    raise DownloadError("the connection keeps breaking off")


def _download_rest(url: str, part: Path, max_bytes: int, report: Report, timeout: float) -> bool:
    """Request the missing bytes; False if the connection broke before the end."""
    have = _size(part)
    headers = {"User-Agent": "wiseale", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # the file ends here: it is complete, or the checksum will show it is another
            error.close()
            return True
        raise
    with response, part.open("ab") as file:
        if have and not _resumes_at(response, have):
            file.truncate(0)
            have = 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else None
        if total is not None and total > max_bytes:
            raise DownloadError(f"sends {total} bytes, more than the file can have")
        while piece := response.read(_CHUNK_BYTES):
            file.write(piece)
            have += len(piece)
            if have > max_bytes:
                file.truncate(0)
                raise DownloadError("sends more bytes than the file can have")
            report(have, total)
        file.flush()
        os.fsync(file.fileno())
    return total is None or have >= total


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _resumes_at(response: http.client.HTTPResponse, have: int) -> bool:
    begins = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return response.status == 206 and begins is not None and int(begins[1]) == have


def _is_disk_error(error: Exception) -> bool:
    """Whether the disk failed, not the network: only errors of local files carry a file name."""
    return isinstance(error, OSError) and (error.filename is not None or error.errno in _DISK_FULL)


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "timed out"
    text = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
    return " ".join(text.split())

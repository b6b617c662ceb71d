"""One file over HTTP: in pieces, continued where it broke off, never longer than expected."""

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
"""Told the bytes on disk so far, and how many there will be where the server says."""

_CHUNK = 1 << 16
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ATTEMPTS = 10  # at one address, as long as each brings something


class DownloadError(Exception):
    """Why an address did not give the file, in a few words."""


def download(url: str, part: Path, most: int, report: Report, timeout: float) -> None:
    """Bring ``part`` to its full length from an address; what it already holds is kept where the server allows."""
    for _ in range(_ATTEMPTS):
        before = _size(part)
        try:
            if _continue(url, part, most, report, timeout):
                return
        except urllib.error.HTTPError as error:
            with error:
                raise DownloadError(f"HTTP {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            if _is_local(error):
                raise
            if _size(part) <= before:  # no use asking again
                raise DownloadError(_reason(error)) from None
    raise DownloadError("the connection keeps breaking off")


def _continue(url: str, part: Path, most: int, report: Report, timeout: float) -> bool:
    """Fetch what is missing; False if the connection broke off before the end."""
    have = _size(part)
    headers = {"User-Agent": "wiseale", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing after what we have: it is complete, or not of this server
            error.close()
            return True
        raise
    with response, part.open("ab") as file:
        if have and not _continues_at(response, have):
            file.truncate(0)
            have = 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else None
        if total is not None and total > most:
            raise DownloadError(f"sends {total} bytes, more than the file can have")
        while piece := response.read(_CHUNK):
            file.write(piece)
            have += len(piece)
            if have > most:
                file.truncate(0)
                raise DownloadError("sends more bytes than the file can have")
            report(have, total)
        file.flush()
        os.fsync(file.fileno())
    return total is None or have >= total


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _continues_at(response: http.client.HTTPResponse, have: int) -> bool:
    begins = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return response.status == 206 and begins is not None and int(begins[1]) == have


def _is_local(error: Exception) -> bool:
    """Whether the disk failed rather than the network, whose errors have no file name."""
    return isinstance(error, OSError) and (error.filename is not None or error.errno in _DISK_FULL)


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "timed out"
    text = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
    return " ".join(text.split())

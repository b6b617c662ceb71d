"""Put the files of a dataset under the data root, from mirrors or a folder, each checked by its SHA-256."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import http.client
import os
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

from wiseale import registry
from wiseale.errors import ConfigError, DataError
from wiseale.platform.atomic_files import replacing

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes received so far and, where it is known, their total."""

_CHUNK = 1 << 20
_RECEIVED_CHUNK = 1 << 16
_ATTEMPTS = 10  # per URL, as long as each brings new bytes
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class KnownFile:
    """One file of a dataset: its name, and the size and SHA-256 of its decompressed content."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class KnownFiles:
    """The files of a dataset. A dataset class that declares ``files: ClassVar[KnownFiles]`` can be fetched.

    Attributes:
        name: of the dataset, as registered; ``title`` is what people write.
        folders: where the files may be under the data root; they are fetched into the first.
        mirrors: base addresses; ``mirror + file.name + remote_suffix`` is downloaded, gzip-compressed or not.
        files: in the order the dataset reads them.
    """

    name: str
    title: str
    folders: tuple[str, ...]
    mirrors: tuple[str, ...]
    files: tuple[KnownFile, ...]
    remote_suffix: str = ".gz"


def find_file(known: KnownFiles, file: KnownFile, data_root: Path) -> Path:
    """The path of one file under the data root, ``.gz`` or not; where it is missing, an error says how to fetch it."""
    for folder in known.folders:
        for name in (file.name, f"{file.name}.gz"):
            if (path := data_root / folder / name).is_file():
                return path
    command = f"wiseale data fetch {known.name}"
    raise DataError(
        f"no {known.title} in {data_root / known.folders[0]} ({file.name} is missing): "
        f"run `{command}`, or `{command} --from DIR` if you have its files"
    )


def open_content(path: Path) -> IO[bytes]:
    """Open a file for reading; it is decompressed if its first bytes are gzip's, whatever its name."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if zipped else path.open("rb")


def fetch(
    name: str,
    data_root: Path,
    source: Path | None = None,
    progress: Progress | None = None,
    *,
    mirrors: Sequence[str] | None = None,
    timeout: float = 30.0,
) -> list[Path]:
    """Put a dataset's files under the data root and return their paths; files already there and intact are kept.

    Files are stored decompressed, which loads faster. An interrupted download is continued by the next call.

    Args:
        name: a registered dataset that declares ``files`` (:class:`KnownFiles`).
        data_root: folder with the files of all datasets.
        source: a folder that has the files, decompressed or gzipped; without it they are downloaded.
        progress: called as bytes arrive.
        mirrors: addresses to try in turn instead of the known ones.
        timeout: seconds without an answer after which the next mirror is tried.
    """
    known, report = _files_of(name), progress or (lambda name, done, total: None)
    try:
        folder = data_root / known.folders[0]
        folder.mkdir(parents=True, exist_ok=True)
        if source is not None and not source.is_dir():
            raise DataError(f"{source} is not a folder: --from needs the one that holds the files of {known.title}")
        paths = []
        for file in known.files:
            path = _intact(known, file, data_root)
            if path is None and source is not None:
                path = _copy(known, file, source, folder)
            elif path is None:
                path = _download(known, file, folder, report, mirrors or known.mirrors, timeout)
            paths.append(path)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise DataError(f"cannot fetch {known.title} into {data_root}: {error.strerror or error}{where}") from None
    return paths


class _WrongContentError(Exception):
    """A file's size or checksum is not the known one; the message says how."""


class _DownloadError(Exception):
    """A URL did not deliver the file; the message gives the reason in a few words."""


def _files_of(name: str) -> KnownFiles:
    """The files that a registered dataset declares."""
    declared = {known: getattr(registry.lookup("dataset", known), "files", None) for known in registry.names("dataset")}
    fetchable = {known: files for known, files in declared.items() if isinstance(files, KnownFiles)}
    if name not in fetchable:
        near = registry.did_you_mean(name, fetchable)
        raise ConfigError(f"cannot fetch {name!r}{near} (known: {', '.join(fetchable)})")
    return fetchable[name]


def _intact(known: KnownFiles, file: KnownFile, data_root: Path) -> Path | None:
    """The file that loading would use, if its size and checksum are the known ones."""
    with contextlib.suppress(DataError, _WrongContentError):
        path = find_file(known, file, data_root)
        _check(path, file)
        return path
    return None


def _copy(known: KnownFiles, file: KnownFile, source: Path, folder: Path) -> Path:
    places = (source, source / "data", source / "raw", *(source / name for name in known.folders))
    names = (file.name, file.name.replace("-idx", ".idx"))  # the spelling in some archives of IDX files
    for path in (place / f"{name}{end}" for place in places for name in names for end in ("", ".gz")):
        if path.is_file():
            try:
                return _install(path, file, folder)
            except _WrongContentError as error:
                raise DataError(f"{path} is not the {known.title} file of that name: {error}") from None
    raise DataError(f"{source} holds no {file.name} (or {file.name}.gz): --from needs the files of {known.title}")


def _install(path: Path, file: KnownFile, folder: Path) -> Path:
    """Decompress into a temporary file and rename it, so that a file of this name is always complete."""
    target = folder / file.name
    with replacing(target) as temporary, temporary.open("wb") as copy:
        _check(path, file, copy.write)
    return target


def _check(path: Path, file: KnownFile, write: Callable[[bytes], object] = len) -> None:
    """Read the decompressed content, pass it to ``write``, and refuse it unless size and SHA-256 are the known ones."""
    digest, size = hashlib.sha256(), 0
    try:
        with open_content(path) as content:
            while piece := content.read(_CHUNK):
                size += len(piece)
                if size > file.size:
                    raise _WrongContentError(f"it has more than {file.size} bytes")
                digest.update(piece)
                write(piece)
    except (zlib.error, gzip.BadGzipFile, EOFError):
        raise _WrongContentError("it is damaged or cut short") from None
    if size < file.size:
        raise _WrongContentError(f"it has {size} bytes, not {file.size}")
    if digest.hexdigest() != file.sha256:
        raise _WrongContentError(f"checksum mismatch, SHA-256 of the content is {digest.hexdigest()[:12]}…")


def _download(
    known: KnownFiles, file: KnownFile, folder: Path, progress: Progress, mirrors: Sequence[str], timeout: float
) -> Path:
    remote = f"{file.name}{known.remote_suffix}"
    part = folder / f"{remote}.part"
    most = file.size + file.size // 100 + 1024  # gzip enlarges incompressible content by less than this
    failures = []
    for mirror in mirrors:
        for continued in (part.exists(), False):  # again from the start, if the first part came from another mirror
            try:
                for _ in range(_ATTEMPTS):
                    if _receive(f"{mirror}{remote}", part, most, partial(progress, file.name), timeout):
                        break
                else:
                    raise _DownloadError("the connection keeps breaking off")
                path = _install(part, file, folder)
                part.unlink()
                return path
            except (_DownloadError, _WrongContentError) as error:
                wrong = isinstance(error, _WrongContentError)
                if wrong or _size(part) == 0:
                    part.unlink(missing_ok=True)
                if not (wrong and continued):
                    failures.append(f"{mirror} ({error})")
                    break
    raise DataError(
        f"could not download {remote} from {', '.join(failures)}: try again later, or get the files of "
        f"{known.title} yourself and run `wiseale data fetch {known.name} --from DIR`"
    )


def _receive(url: str, part: Path, max_bytes: int, report: Callable[[int, int | None], None], timeout: float) -> bool:
    """Append the bytes that ``part`` lacks; False if the connection broke after some of them."""
    before = have = _size(part)
    headers = {"User-Agent": "wiseale", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=timeout) as response, part.open("ab") as file:
            if not (response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")):
                file.truncate(0)
                have = 0
            length = response.headers.get("Content-Length", "")
            total = have + int(length) if length.isdigit() else None
            if total is not None and total > max_bytes:
                raise _DownloadError(f"sends {total} bytes, more than the file can have")
            while piece := response.read(_RECEIVED_CHUNK):
                file.write(piece)
                have += len(piece)
                if have > max_bytes:
                    file.truncate(0)
                    raise _DownloadError("sends more bytes than the file can have")
                report(have, total)
            file.flush()
            os.fsync(file.fileno())
        return total is None or have >= total
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and before:  # complete, or the checksum will show that it is another file
                return True
            raise _DownloadError(f"HTTP {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and (error.filename is not None or error.errno in _DISK_FULL):
            raise  # of the disk, not of the network: only errors of local files carry a file name
        if _size(part) > before:
            return False
        raise _DownloadError(_reason(error)) from None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "timed out"
    text = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
    return " ".join(text.split())

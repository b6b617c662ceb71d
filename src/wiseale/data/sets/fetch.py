"""Put the files of a dataset under the data root, from mirrors or a folder, each checked by its SHA-256."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from wiseale import registry
from wiseale.data.sets.download import DownloadError, download
from wiseale.data.sets.idx import open_content
from wiseale.data.sets.known_files import KnownFile, KnownFiles, find_file
from wiseale.errors import ConfigError, DataError

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes received so far and, where it is known, their total."""

_CHUNK = 1 << 20


class _WrongContentError(Exception):
    """A file's size or checksum is not the known one; the message says how."""


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
        name: a registered dataset that declares ``files`` (:class:`~wiseale.data.sets.known_files.KnownFiles`).
        data_root: folder with the files of all datasets.
        source: a folder that has the files, decompressed or gzipped; without it they are downloaded.
        progress: called as bytes arrive.
        mirrors: addresses to try in turn instead of the known ones.
        timeout: seconds without an answer after which the next mirror is tried.
    """
    known = _files_of(name)
    try:
        folder = data_root / known.folders[0]
        folder.mkdir(parents=True, exist_ok=True)
        if source is not None and not source.is_dir():
            raise DataError(f"{source} is not a folder: --from needs the one that holds the files of {known.title}")
        paths = []
        for file in known.files:
            present = _intact(known, file, data_root)
            if present is None and source is not None:
                present = _copy(known, file, source, folder)
            elif present is None:
                present = _download(known, file, folder, progress or _silent, mirrors or known.mirrors, timeout)
            paths.append(present)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise DataError(f"cannot fetch {known.title} into {data_root}: {error.strerror or error}{where}") from None
    return paths


def _files_of(name: str) -> KnownFiles:
    """The files that a registered dataset declares."""
    declared = {one: getattr(registry.lookup("dataset", one), "files", None) for one in registry.names("dataset")}
    fetchable = {one: files for one, files in declared.items() if isinstance(files, KnownFiles)}
    if name not in fetchable:
        near = registry.did_you_mean(name, fetchable)
        raise ConfigError(f"cannot fetch {name!r}{near} (known: {', '.join(fetchable)})")
    return fetchable[name]


def _intact(known: KnownFiles, file: KnownFile, data_root: Path) -> Path | None:
    """The file that loading would use, if its size and checksum are the known ones."""
    with contextlib.suppress(DataError, _WrongContentError):
        path = find_file(known, file, data_root)
        _check(path, file, None)
        return path
    return None


def _copy(known: KnownFiles, file: KnownFile, source: Path, folder: Path) -> Path:
    places = (source, source / "data", source / "raw", *(source / name for name in known.folders))
    dotted = file.name.replace("-idx", ".idx")  # the spelling in some archives of IDX files
    for place in places:
        for name in (file.name, dotted):
            for path in (place / name, place / f"{name}.gz"):
                if path.is_file():
                    try:
                        return _install(path, file, folder)
                    except _WrongContentError as error:
                        raise DataError(f"{path} is not the {known.title} file of that name: {error}") from None
    raise DataError(f"{source} holds no {file.name} (or {file.name}.gz): --from needs the files of {known.title}")


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
                download(f"{mirror}{remote}", part, most, lambda n, of: progress(file.name, n, of), timeout)
                path = _install(part, file, folder)
                part.unlink()
                return path
            except DownloadError as error:
                if part.exists() and part.stat().st_size == 0:
                    part.unlink()
                failures.append(f"{mirror} ({error})")
                break
            except _WrongContentError as error:
                part.unlink()
                if not continued:
                    failures.append(f"{mirror} ({error})")
                    break
    raise DataError(
        f"could not download {remote} from {', '.join(failures)}: try again later, or get the files of "
        f"{known.title} yourself and run `wiseale data fetch {known.name} --from DIR`"
    )


def _install(path: Path, file: KnownFile, folder: Path) -> Path:
    """Decompress into a temporary file and rename it, so that a file of this name is always complete."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=folder)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as copy:
            _check(path, file, copy.write)
            copy.flush()
            os.fsync(copy.fileno())
        temporary.chmod(0o644)
        temporary.replace(folder / file.name)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(folder)
    return folder / file.name


def _check(path: Path, file: KnownFile, write: Callable[[bytes], object] | None) -> None:
    """Read the decompressed content, pass it to ``write``, and refuse it unless size and SHA-256 are the known ones."""
    digest, size = hashlib.sha256(), 0
    try:
        with open_content(path) as content:
            while piece := content.read(_CHUNK):
                size += len(piece)
                if size > file.size:
                    raise _WrongContentError(f"it has more than {file.size} bytes")
                digest.update(piece)
                if write is not None:
                    write(piece)
    except (zlib.error, gzip.BadGzipFile, EOFError):
        raise _WrongContentError("it is damaged or cut short") from None
    if size < file.size:
        raise _WrongContentError(f"it has {size} bytes, not {file.size}")
    if digest.hexdigest() != file.sha256:
        raise _WrongContentError(f"checksum mismatch, SHA-256 of the content is {digest.hexdigest()[:12]}…")


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every platform opens folders
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _silent(name: str, done: int, total: int | None) -> None:
    """Report nothing."""

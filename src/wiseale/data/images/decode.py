"""Decode image files into rows of bytes, in worker processes: run as a program, this file is the worker.

It imports only the standard library and Pillow, not even this package: a worker then starts in 60 ms instead of 160.
No image, however broken, is decoded in the user's own process. Workers are plain programs that communicate through
pipes, not ``multiprocessing``: forking a process with threads (torch has many) is unsafe, and spawning would run the
user's script again. When the parent dies, even by SIGKILL, its pipes close and the workers end.

Every image is rotated as its EXIF orientation says, cropped to a centred square and resized with Pillow's antialiased
bilinear filter, the one torchvision's ``Resize`` uses. Transparent pixels are blended with white.
"""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import sys
import warnings
import zlib
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from PIL import Image, UnidentifiedImageError

if TYPE_CHECKING:
    import subprocess

DECODER_VERSION = 1  # raise it when the same file decodes to other bytes: packs are then rebuilt
MAX_PIXELS = 1 << 26  # 67 million, 270 MB decoded: images that declare more are refused before decoding
_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "WEBP", "TIFF")  # Pillow decodes these without starting programs
_REDUCED_GAP = 4  # decode a JPEG at 1/2, 1/4 or 1/8 only if that is still 4 times the target size: ≤ 2 grey levels off
_EXIF_TRANSPOSE = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class Form(NamedTuple):
    """A centred square of ``crop`` pixels (None: the largest) resized to ``size``: uint8 (channels, size, size)."""

    size: int
    crop: int | None
    channels: int  # 1 (grey) or 3 (RGB)


class BadImageError(Exception):
    """A file cannot be decoded; the message gives the reason in a few words."""


def decode(file: BinaryIO | str, form: Form) -> bytes:
    """Decode an image, given as an open file or a path, into (channels, size, size) bytes."""
    try:
        with Image.open(file, formats=_FORMATS) as image:
            return _channel_bytes(_crop_and_resize(image, form), form.channels)
    except BadImageError:
        raise
    except Image.DecompressionBombError:
        raise BadImageError(f"claims more than {MAX_PIXELS:,} pixels") from None
    except UnidentifiedImageError:
        raise BadImageError("not an image") from None
    except MemoryError:
        raise BadImageError("too large for the memory") from None
    except Exception as error:  # Pillow passes on errors of its decoders: OSError, SyntaxError, struct.error, ...
        if refusal := getattr(error, "strerror", None):
            raise BadImageError(refusal) from None
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadImageError("cut short" if "truncated" in reason else f"damaged: {reason[:80]}") from None


def _crop_and_resize(image: Image.Image, form: Form) -> Image.Image:
    """Crop and resize an image; the result has mode L, LA, RGB, RGBA, or F for 16-bit images."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise BadImageError(f"claims {width}×{height} pixels, more than {MAX_PIXELS:,}")
    shorter, least = min(width, height), form.crop or form.size
    if shorter < least:
        minimum = f"crop {form.crop}" if form.crop else f"size {form.size}"
        raise BadImageError(f"{width}×{height}, smaller than {minimum}")
    crop = form.crop or shorter
    scale = next((s for s in (8, 4, 2) if crop >= s * _REDUCED_GAP * form.size), 1)
    if scale > 1 and image.draft(None, (width // scale, height // scale)) is None:
        scale = 1  # only JPEG can be decoded at a reduced size
    image.load()
    transpose = _exif_transpose(image)
    image = _to_resizable_mode(image)
    target, bilinear = (form.size, form.size), Image.Resampling.BILINEAR
    if scale > 1:  # transpose last: a reduced image may end in part of a pixel, which must stay at the right and bottom
        left, top = (width - crop) / 2 / scale, (height - crop) / 2 / scale
        image = image.resize(target, bilinear, (left, top, left + crop / scale, top + crop / scale))
        return image if transpose is None else image.transpose(transpose)
    if transpose is not None:
        image = image.transpose(transpose)
    left, top = (image.width - crop) // 2, (image.height - crop) // 2
    return image.crop((left, top, left + crop, top + crop)).resize(target, bilinear)


def _exif_transpose(image: Image.Image) -> Image.Transpose | None:
    try:
        return _EXIF_TRANSPOSE.get(image.getexif().get(0x0112, 1))
    except Exception:  # damaged EXIF data does not make the pixels unusable
        return None


def _to_resizable_mode(image: Image.Image) -> Image.Image:
    mode = image.mode
    if mode.startswith("I;16") or (mode == "I" and image.format in ("PNG", "PPM")):
        return image.convert("I").convert("F")
    if mode in ("I", "F"):
        raise BadImageError("has 32-bit pixels, which have no agreed range")
    if mode not in ("LA", "RGBA") and ("transparency" in image.info or mode in ("PA", "La", "RGBa")):
        return image.convert("RGBA")
    return image if mode in ("L", "LA", "RGB", "RGBA") else image.convert("L" if mode == "1" else "RGB")


def _channel_bytes(image: Image.Image, channels: int) -> bytes:
    """The image as L or RGB bytes, one whole channel after the other (CHW)."""
    if image.mode == "F":
        image = image.point(lambda value: value * (1 / 257) + 0.5).convert("L")  # 16 to 8 bits, rounded
    elif image.mode in ("LA", "RGBA"):
        background = Image.new("RGB", image.size, "white")
        background.paste(image.convert("RGB"), mask=image.getchannel("A"))
        image = background
    image = image.convert("L" if channels == 1 else "RGB")
    return b"".join(band.tobytes() for band in image.split())


def read_member(archive: BinaryIO, offset: int, packed: int, size: int, crc: int, method: int) -> bytes:
    """Read one member of a zip and check its size and CRC; ``method`` is 0 (stored) or 8 (deflated).

    Decompression stops one byte after the declared size, so a zip bomb cannot fill the memory.
    """
    archive.seek(offset)
    header = archive.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise BadImageError("damaged in the zip")
    archive.seek(sum(struct.unpack("<HH", header[26:])), io.SEEK_CUR)
    content = archive.read(packed)
    if method:
        try:
            content = zlib.decompressobj(-15).decompress(content, size + 1)
        except zlib.error:
            raise BadImageError("damaged in the zip") from None
    if len(content) > size:
        raise BadImageError("unpacks to more than the zip declares")
    if len(content) < size or zlib.crc32(content) != crc:
        raise BadImageError("damaged in the zip")
    return content


class Block(NamedTuple):
    """Images to decode: the file for their rows, the byte offset there, and each image (name, or place in the zip)."""

    target: str
    offset: int
    places: list[str | tuple[int, ...]]


class BlockResult(NamedTuple):
    """CRC of a block's rows, and index → reason for bad images; or why decoding failed.

    A worker reports ``errno`` and ``problem`` if it cannot write, ``fault`` (a traceback) for an error in our code;
    ``exit_code`` is set if the worker died.
    """

    crc: int = 0
    bad: dict[str, str] = {}  # noqa: RUF012 - never written to
    errno: int | None = None
    problem: str = ""
    fault: str = ""
    exit_code: int | None = None


def decode_blocks(
    origin: str, is_zip: bool, form: Form, blocks: Sequence[Block], processes: int
) -> Generator[BlockResult, None, None]:
    """Decode blocks of images of a folder or zip and yield their results in order; closing stops the workers."""
    from concurrent.futures import ThreadPoolExecutor  # not at the top: workers do not need it
    from queue import SimpleQueue

    workers = [_start_worker(origin, is_zip, form) for _ in range(processes)]
    idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def result_of(block: Block) -> BlockResult:
        worker = idle.get()
        try:
            return _exchange(worker, block)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(processes)
    try:
        yield from pool.map(result_of, blocks)
    finally:
        for worker in workers:
            worker.kill()
        pool.shutdown(cancel_futures=True)
        for worker in workers:
            with suppress(BrokenPipeError), worker:  # leaving the context waits for the worker and closes its pipes
                pass


def _start_worker(origin: str, is_zip: bool, form: Form) -> subprocess.Popen[str]:
    import subprocess

    worker = subprocess.Popen(
        [sys.executable, "-P", __file__],  # -P: do not import modules from the folder of this file
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # image libraries print their own warnings there
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        text=True,
    )
    with suppress(BrokenPipeError):
        _send(worker, (origin, is_zip, form))
    return worker


def _exchange(worker: subprocess.Popen[str], block: Block) -> BlockResult:
    """Send a block to a worker and wait for its answer."""
    reply = ""
    with suppress(BrokenPipeError):
        _send(worker, block)
        assert worker.stdout is not None
        reply = worker.stdout.readline()
    return BlockResult(**json.loads(reply)) if reply else BlockResult(exit_code=worker.wait())


def _send(worker: subprocess.Popen[str], values: object) -> None:
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(values) + "\n")
    worker.stdin.flush()


def main() -> None:
    """Answer each block, one line of JSON, with one line; the first line says where the images are and their form."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the parent stops its workers
    warnings.simplefilter("ignore")
    parent = os.getppid()
    origin, is_zip, form = json.loads(sys.stdin.readline())
    archive = open(origin, "rb") if is_zip else None  # noqa: SIM115 - open as long as the process lives
    for line in sys.stdin:
        answer: dict[str, Any]
        try:
            target, offset, places = json.loads(line)
            rows, bad = _decode_block(origin, archive, Form(*form), places)
            if os.getppid() != parent:
                break  # the parent was killed: a process that resumes the packing may be writing this file now
            with open(target, "r+b") as file:
                file.seek(offset)
                file.write(rows)
            answer = {"crc": zlib.crc32(rows), "bad": bad}
        except OSError as error:
            answer = {"errno": error.errno, "problem": error.strerror}
        except Exception:
            import traceback

            answer = {"fault": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


def _decode_block(
    origin: str, archive: BinaryIO | None, form: Form, places: Sequence[Any]
) -> tuple[bytearray, dict[int, str]]:
    """The rows of some images; a bad image becomes a row of zeros, with its reason under its index in the block."""
    rows, bad = bytearray(), {}
    for index, place in enumerate(places):
        try:
            image = io.BytesIO(read_member(archive, *place)) if archive else os.path.join(origin, place)
            rows += decode(image, form)
        except BadImageError as error:
            rows += bytes(form.channels * form.size**2)
            bad[index] = str(error)
    return rows, bad


if __name__ == "__main__":
    main()

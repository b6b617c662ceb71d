"""One image file to the bytes of one row; run as a program, a worker that does so for blocks of files.

It imports nothing but the standard library and Pillow, not even this package: a worker then starts in 60 ms instead of
160, and no image, however broken, is decoded inside the user's own process.

Every image is turned upright (EXIF), cropped to a centred square and resized with Pillow's antialiased bilinear
filter, the one torchvision's ``Resize`` uses. Transparency is laid on white.
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
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

from PIL import Image, UnidentifiedImageError

RECIPE = 1  # to be raised when the same file would give other bytes: packs are then made anew
MAX_PIXELS = 1 << 26  # 67 million, 270 MB decoded: what claims more is refused before decoding
_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "WEBP", "TIFF")  # none of them starts other programs
_REDUCED_GAP = 4  # a JPEG may be decoded at 1/2, 1/4 or 1/8 while it stays this much larger than asked: ≤ 2 grey levels
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class Form(NamedTuple):
    """What images become: (channels, size, size), from a centred square of ``crop`` pixels, or the largest (None)."""

    size: int
    crop: int | None
    channels: int


class BadImageError(Exception):
    """This file gives no image; the message says why, in a few words."""


def decode(file: BinaryIO | str, form: Form) -> bytes:
    """The pixels of an image, a file or its path, as (channels, size, size) bytes."""
    try:
        with Image.open(file, formats=_FORMATS) as image:
            return _planes(_fit(image, form), form.channels)
    except BadImageError:
        raise
    except Image.DecompressionBombError:
        raise BadImageError(f"claims more than {MAX_PIXELS:,} pixels") from None
    except UnidentifiedImageError:
        raise BadImageError("not an image") from None
    except MemoryError:
        raise BadImageError("too large for the memory") from None
    except Exception as error:  # Pillow raises what it happens to meet: OSError, SyntaxError, struct.error, ...
        if refusal := getattr(error, "strerror", None):
            raise BadImageError(refusal) from None
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadImageError("cut short" if "truncated" in reason else f"damaged: {reason[:80]}") from None


def _fit(image: Image.Image, form: Form) -> Image.Image:
    """Cropped and resized, in a mode whose values may be averaged: L, LA, RGB, RGBA, or F from 16 bits."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise BadImageError(f"claims {width}×{height} pixels, more than {MAX_PIXELS:,}")
    shorter, least = min(width, height), form.crop or form.size
    if shorter < least:
        asked = f"crop {form.crop}" if form.crop else f"size {form.size}"
        raise BadImageError(f"{width}×{height}, smaller than {asked}")
    crop = form.crop or shorter
    scale = next((s for s in (8, 4, 2) if crop >= s * _REDUCED_GAP * form.size), 1)
    if scale > 1 and image.draft(None, (width // scale, height // scale)) is None:
        scale = 1  # only JPEG can
    image.load()
    turn = _turn(image)
    image = _averageable(image)
    target, bilinear = (form.size, form.size), Image.Resampling.BILINEAR
    if scale > 1:  # turned last: a reduced image may end in part of a pixel, which must stay at the right and bottom
        left, top = (width - crop) / 2 / scale, (height - crop) / 2 / scale
        image = image.resize(target, bilinear, (left, top, left + crop / scale, top + crop / scale))
        return image if turn is None else image.transpose(turn)
    if turn is not None:
        image = image.transpose(turn)
    left, top = (image.width - crop) // 2, (image.height - crop) // 2
    return image.crop((left, top, left + crop, top + crop)).resize(target, bilinear)


def _turn(image: Image.Image) -> Image.Transpose | None:
    try:
        return _UPRIGHT.get(image.getexif().get(0x0112, 1))
    except Exception:  # a damaged note about the image is no damage to the image
        return None


def _averageable(image: Image.Image) -> Image.Image:
    mode = image.mode
    if mode.startswith("I;16") or (mode == "I" and image.format in ("PNG", "PPM")):
        return image.convert("I").convert("F")
    if mode in ("I", "F"):
        raise BadImageError("has 32-bit pixels, which have no agreed range")
    if mode in ("LA", "RGBA"):
        return image
    if "transparency" in image.info or mode in ("PA", "La", "RGBa"):
        return image.convert("RGBA")
    return image if mode in ("L", "RGB") else image.convert("L" if mode == "1" else "RGB")


def _planes(image: Image.Image, channels: int) -> bytes:
    """As L or RGB, one channel after the other."""
    if image.mode == "F":
        image = image.point(lambda value: value * (1 / 257) + 0.5).convert("L")  # 16 to 8 bits, rounded
    elif image.mode in ("LA", "RGBA"):
        paper = Image.new("RGB", image.size, "white")
        paper.paste(image.convert("RGB"), mask=image.getchannel("A"))
        image = paper
    mode = "L" if channels == 1 else "RGB"
    if image.mode != mode:
        image = image.convert(mode)
    return b"".join(band.tobytes() for band in image.split())


def read_member(archive: BinaryIO, offset: int, packed: int, size: int, crc: int, method: int) -> bytes:
    """One member of a zip, never longer than declared; ``method`` 0 is stored, 8 is deflated."""
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


class Worker:
    """Decodes blocks of files and writes them to their places in the packed file."""

    def __init__(self, origin: str, target: str, is_zip: bool, form: Sequence[Any]) -> None:
        self.form, self.parent, self.root = Form(*form), os.getppid(), origin
        self.archive = open(origin, "rb") if is_zip else None  # noqa: SIM115 - open as long as the process lives
        self.target = open(target, "r+b")  # noqa: SIM115
        self.row_bytes = self.form.channels * self.form.size**2

    def block(self, offset: int, places: Sequence[Any]) -> dict[str, Any]:
        """Decode the files at ``places`` (names, or where a zip has them) and write their rows at ``offset``."""
        rows, bad = bytearray(), {}
        for index, place in enumerate(places):
            try:
                rows += self._row(place)
            except BadImageError as error:
                rows += bytes(self.row_bytes)
                bad[index] = str(error)
        if os.getppid() != self.parent:
            raise SystemExit  # the packing was killed: whoever continues it owns the file now
        self.target.seek(offset)
        self.target.write(rows)
        self.target.flush()
        return {"crc": zlib.crc32(rows), "bad": bad}

    def _row(self, place: Any) -> bytes:
        if self.archive is not None:
            return decode(io.BytesIO(read_member(self.archive, *place)), self.form)
        return decode(os.path.join(self.root, place), self.form)


def main() -> None:
    """Answer each line of JSON with one, until there are no more; the first line sets the worker up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started this process decides when it ends
    warnings.simplefilter("ignore")
    worker = Worker(**json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        try:
            answer = worker.block(**json.loads(line))
        except OSError as error:
            answer = {"errno": error.errno, "problem": error.strerror}
        except Exception:
            import traceback

            answer = {"fault": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

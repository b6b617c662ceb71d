"""Image files made for tests, good and bad."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate


def photograph(seed: int, width: int = 80, height: int = 100) -> np.ndarray:
    """Smooth random colours, (height, width, 3) uint8: compresses like a photograph, no two alike."""
    coarse = np.random.default_rng(seed).integers(0, 256, (8, 6, 3), np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def folder_of(path: Path, n: int, suffix: str = ".png", **size: int) -> Path:
    """A folder of n photographs named 000.png, 001.png, ..."""
    path.mkdir(parents=True, exist_ok=True)
    for index in range(n):
        Image.fromarray(photograph(index, **size)).save(path / f"{index:03d}{suffix}")
    return path


def spoil(path: Path) -> None:
    """Overwrite a file with rubbish that no listing can tell from it: same size, same time."""
    status = path.stat()
    path.write_bytes(b"\x00" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def png_claiming(width: int, height: int) -> bytes:
    """A small PNG whose header claims any size."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")


def resized_by_torch(pixels: np.ndarray, size: int) -> np.ndarray:
    """Torch's antialiased bilinear filter on an (H, W, C) array, unrounded."""
    x = torch.from_numpy(pixels.astype(np.float64)).permute(2, 0, 1)[None]
    return interpolate(x, (size, size), mode="bilinear", antialias=True)[0].permute(1, 2, 0).numpy()

"""Pictures of the teapot: a z-buffer for many poses at once, in numpy alone.

Fixed orthographic camera, fixed light; the pot turns about its axis (azimuth) and tips towards the camera (elevation),
so the shading depends on the pose alone. Every number is computed element by element, hence a picture is the same
whatever else is rendered with it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wiseale.data.sets.teapot_mesh import Float32, Float64, Index, Mesh, teapot

SAMPLES = 4
"""Samples per pixel and side: each pixel is the mean of SAMPLES² of them."""

HALF_WIDTH = 3.7
"""Half the width of the picture, in the teapot's units: its farthest point is 3.55 from the centre."""

AMBIENT = 0.2
"""The shade of what takes no light."""

LIGHT = np.array([-0.4, 0.55, 0.73]) / np.linalg.norm([-0.4, 0.55, 0.73])
"""Direction to the light (right, up, towards the camera): over the viewer's left shoulder."""

_BLOCK = 16  # poses in one pass: enough for threads to run side by side, few enough for the processor's cache
_SHADE_BITS = 12  # the low bits of a 31-bit key; the others are depth, in steps of 1.4e-5
_SHADE_LEVELS = (1 << _SHADE_BITS) - 1
_HALF = np.float32(0.5)  # samples lie at half-integers


def render(azimuth: npt.ArrayLike, elevation: npt.ArrayLike, size: int = 64, mesh: Mesh | None = None) -> Float32:
    """Grey shading in [0, 1] of n poses (radians), (n, size, size), on black; at 0, 0 the spout points right."""
    azimuth, elevation = np.atleast_1d(np.asarray(azimuth, float)), np.atleast_1d(np.asarray(elevation, float))
    mesh = mesh or teapot()
    width = size * SAMPLES
    pictures = np.empty((len(azimuth), size, size), np.float32)
    for start in range(0, len(azimuth), _BLOCK):
        poses = slice(start, start + _BLOCK)
        x, y, near, light = _project(mesh, azimuth[poses], elevation[poses], width)
        shade = _z_buffer(x, y, near, light, mesh.corners, width)
        rows = shade.reshape(-1, size, SAMPLES, width).sum(axis=2, dtype=np.int32)
        total = sum(rows[..., offset::SAMPLES] for offset in range(SAMPLES))
        pictures[poses] = total * np.float32(1 / (SAMPLES**2 * _SHADE_LEVELS))
    return pictures


def _project(mesh: Mesh, azimuth: Float64, elevation: Float64, width: int) -> tuple[Float32, Float32, Float32, Float32]:
    """Column, row, nearness and cosine to the light of each vertex, (n, vertices) each; a sample is 1 wide."""
    angles = [function(angle)[:, None] for angle in (azimuth, elevation) for function in (np.cos, np.sin)]
    cos_a, sin_a, cos_e, sin_e = (angle.astype(np.float32) for angle in angles)

    def turned(x: Float32, y: Float32, z: Float32) -> tuple[Float32, Float32, Float32]:
        right, away = cos_a * x - sin_a * y, sin_a * x + cos_a * y
        return right, cos_e * z + sin_e * away, sin_e * z - cos_e * away

    right, up, near = turned(*mesh.positions)
    normal_right, normal_up, normal_near = turned(*mesh.normals)
    light = LIGHT.astype(np.float32)
    scale, middle = np.float32(width / (2 * HALF_WIDTH)), np.float32(width / 2)
    cosine = light[0] * normal_right + light[1] * normal_up + light[2] * normal_near
    return middle + scale * right, middle - scale * up, near, cosine


def _z_buffer(
    x: Float32, y: Float32, near: Float32, light: Float32, corners: Index, width: int
) -> npt.NDArray[np.int32]:
    """The quantised shade at each of (n, width, width) samples, 0 where there is nothing.

    Triangles that face the camera are cut into rows of samples, and each sample keeps the greatest of its keys:
    nearness in the high bits, shade in the low ones.
    """
    image, vertex = _facing(x, y, corners)
    columns, rows = x.ravel().take(vertex), y.ravel().take(vertex)
    values = np.stack([near.ravel().take(vertex), light.ravel().take(vertex)])
    slope_x, slope_y = _slopes(columns, rows, values)
    owner, row, left, count = _spans(columns, rows)
    dx = left + _HALF - columns[0].take(owner)
    dy = row.astype(np.float32) + _HALF - rows[0].take(owner)
    step = slope_x.take(owner, axis=1)
    begin = values[:, 0].take(owner, axis=1) + dx * step + dy * slope_y.take(owner, axis=1)
    first = (image.take(owner) * width + row) * width + left.astype(np.intp)

    span, rank = _expand(count)
    nearness, cosine = begin.take(span, axis=1) + step.take(span, axis=1) * rank.astype(np.float32)
    nearness = (nearness + HALF_WIDTH) * np.float32((1 << (31 - _SHADE_BITS)) / (2 * HALF_WIDTH))
    shade = (AMBIENT + (1 - AMBIENT) * np.clip(cosine, 0, 1)) * _SHADE_LEVELS
    key = nearness.astype(np.int32) << _SHADE_BITS | shade.astype(np.int32)
    seen = np.zeros(len(x) * width * width, np.int32)
    np.maximum.at(seen, first.take(span) + rank, key)
    seen &= _SHADE_LEVELS
    return seen.reshape(len(x), width, width)


def _facing(x: Float32, y: Float32, corners: Index) -> tuple[Index, Index]:
    """The triangles seen from outside: the image of each, (m,), and its corners in the flattened vertices, (3, m)."""
    x0, x1, x2 = (x.take(corner, axis=1) for corner in corners)
    y0, y1, y2 = (y.take(corner, axis=1) for corner in corners)
    outside = (x1 - x0) * (y2 - y0) < (x2 - x0) * (y1 - y0)  # counter-clockwise, and rows count downwards
    image, triangle = np.divmod(np.flatnonzero(outside), corners.shape[1])
    return image, corners.take(triangle, axis=1) + image * x.shape[1]


def _slopes(columns: Float32, rows: Float32, values: Float32) -> tuple[Float32, Float32]:
    """Change per column and per row of values linear over triangles; values: (kinds, 3, m), results: (kinds, m)."""
    (ux, vx), (uy, vy) = columns[1:] - columns[0], rows[1:] - rows[0]
    u, v = values[:, 1] - values[:, 0], values[:, 2] - values[:, 0]
    area = ux * vy - uy * vx
    # Seen edge on, a triangle has no usable slope; the value at a corner serves for the few samples that meet it.
    inverse = 1 / np.where(area < -1e-3, area, np.float32(-np.inf))
    return (u * vy - v * uy) * inverse, (v * ux - u * vx) * inverse


def _spans(columns: Float32, rows: Float32) -> tuple[Index, Index, Float32, Index]:
    """Rows of samples inside each triangle: the triangle, the row, the leftmost column and how many columns.

    Both triangles at an edge compute where it crosses a row from the same numbers in the same order, so no sample
    between them is missed or taken twice.
    """
    x0, y0, x1, y1 = _downwards(columns[0], rows[0], columns[1], rows[1])
    x1, y1, x2, y2 = _downwards(x1, y1, columns[2], rows[2])
    x0, y0, x1, y1 = _downwards(x0, y0, x1, y1)
    top = np.ceil(y0 - _HALF)
    owner, rank = _expand((np.ceil(y2 - _HALF) - top).astype(np.intp))
    row = top.astype(np.intp).take(owner) + rank
    y = row.astype(np.float32) + _HALF
    # One end of the row is on the edge 0-2, the other on 0-1 or, further down, on 1-2.
    long = x0.take(owner) + (y - y0.take(owner)) * _lean(x0, y0, x2, y2).take(owner)
    edge = owner + len(x0) * (y >= y1.take(owner))
    lean = np.concatenate([_lean(x0, y0, x1, y1), _lean(x1, y1, x2, y2)])
    short = np.concatenate([x0, x1]).take(edge) + (y - np.concatenate([y0, y1]).take(edge)) * lean.take(edge)
    left = np.ceil(np.minimum(long, short) - _HALF)
    return owner, row, left, (np.ceil(np.maximum(long, short) - _HALF) - left).astype(np.intp)


def _downwards(xa: Float32, ya: Float32, xb: Float32, yb: Float32) -> tuple[Float32, Float32, Float32, Float32]:
    """Two columns of points, exchanged where the second lies above the first."""
    swap = ya > yb
    return np.where(swap, xb, xa), np.where(swap, yb, ya), np.where(swap, xa, xb), np.where(swap, ya, yb)


def _lean(xa: Float32, ya: Float32, xb: Float32, yb: Float32) -> Float32:
    """Columns per row along edges; a level one crosses no row, any finite number serves it."""
    lean: Float32 = (xb - xa) / np.maximum(yb - ya, np.float32(1e-9))
    return lean


def _expand(counts: Index) -> tuple[Index, Index]:
    """Owner and rank of each item where thing i has counts[i] of them: [2, 0, 1] gives [0, 0, 2] and [0, 1, 0]."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - (np.cumsum(counts) - counts).take(owner)

"""Render Newell's teapot in many poses at once: 32 bicubic Bézier patches as triangles, a z-buffer in NumPy.

The orthographic camera and the light are fixed; the pot turns about its axis (azimuth) and tips towards the camera
(elevation), so the shading depends on the pose alone. All arithmetic is element-wise, so an image does not depend on
the others rendered with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

RIM, SPOUT_LIP, LID = slice(0, 4), slice(18, 20), slice(24, 28)
"""Patches at the edge of an opening."""

CENTRE = (0.0, 0.0, 1.575)
"""The point the camera looks at: on the pot's axis, half-way up."""

_DIVISIONS = 8  # per patch side: the body becomes a 32-gon within 0.01 of the surface, a tenth of a pixel

SAMPLES = 4
"""Antialiasing: each pixel is the mean of SAMPLES × SAMPLES samples."""

HALF_WIDTH = 3.7
"""Half the width of the image, in the teapot's units: its farthest point is 3.55 from the centre."""

AMBIENT = 0.2
"""Shade of unlit surfaces."""

LIGHT = np.array([-0.4, 0.55, 0.73]) / np.linalg.norm([-0.4, 0.55, 0.73])
"""Direction to the light (right, up, towards the camera): over the viewer's left shoulder."""

_BLOCK = 16  # poses per pass: enough work for threads to run in parallel, few enough for the cache
_SHADE_BITS = 12  # low bits of a 31-bit key; the high bits are nearness to the camera, in steps of 1.4e-5
_SHADE_LEVELS = (1 << _SHADE_BITS) - 1
_HALF = np.float32(0.5)  # samples are at half-integer coordinates


@dataclass(frozen=True)
class Mesh:
    """Triangles, counter-clockwise seen from outside; z is up, the spout points along +x."""

    positions: Float32  # (3, vertices), relative to the centre
    normals: Float32  # (3, vertices), outward, of unit length; zero on unlit surfaces
    corners: Index  # (3, triangles), vertex indices


@cache
def teapot() -> Mesh:
    """The closed teapot: the patches, and unlit covers over the openings."""
    patches = control_points()
    unlit = covers(patches)
    return join(tessellate(patches, _DIVISIONS, _DIVISIONS), tessellate(unlit, 1, _DIVISIONS, lit=False))


def control_points() -> Float64:
    """Control points of the patches, (32, 4, 4, 3), z up."""
    table = json.loads(resources.files("wiseale.paper").joinpath("teapot.json").read_text(encoding="utf-8"))
    points: Float64 = np.array(table["points"], np.float64)[np.array(table["patches"])].reshape(-1, 4, 4, 3)
    return points


def covers(patches: Float64) -> Float64:
    """Flat patches over the gap round the lid and the mouth of the spout, (5, 4, 4, 3).

    They close the surface, so that a renderer may skip every triangle facing away from the camera. Unlit, they look
    like the dark inside of the pot.
    """
    lid_edge, rim_edge = patches[LID, 3], patches[RIM, 0]
    lip_right, lip_left = patches[SPOUT_LIP, 3]
    inner = np.concatenate([lid_edge, lip_right[None]])
    outer = np.concatenate([rim_edge, lip_left[None, ::-1]])
    u = np.linspace(0, 1, 4)[:, None, None]
    ruled: Float64 = (1 - u) * inner[:, None] + u * outer[:, None]
    return ruled


def tessellate(patches: Float64, rows: int, columns: int, lit: bool = True) -> Mesh:
    """Split each patch into rows × columns cells of two triangles; positions and normals are exact at the vertices."""
    (a, da), (b, db) = _bernstein(rows), _bernstein(columns)
    positions = _surface(a, b, patches) - CENTRE
    along_u, along_v, twist = _surface(da, b, patches), _surface(a, db, patches), _surface(da, db, patches)
    normals = _unit_normals(along_u, along_v, twist) if lit else np.zeros_like(positions)
    grid = np.arange(positions[..., 0].size).reshape(positions.shape[:3])
    first, down, right, across = grid[:, :-1, :-1], grid[:, 1:, :-1], grid[:, :-1, 1:], grid[:, 1:, 1:]
    corners = np.stack([[first, right, down], [right, across, down]], axis=1).reshape(3, -1)
    return Mesh(
        positions=np.ascontiguousarray(positions.reshape(-1, 3).T, np.float32),
        normals=np.ascontiguousarray(normals.reshape(-1, 3).T, np.float32),
        corners=corners,
    )


def _unit_normals(along_u: Float64, along_v: Float64, twist: Float64) -> Float64:
    """Unit normals from the surface's first derivatives and its mixed second derivative."""
    normals = np.cross(along_v, along_u)
    length = np.linalg.norm(normals, axis=-1, keepdims=True)
    # At a pole (top of the knob, middle of the bottom) the whole side u = 0 is one point and along_v is 0: the normal
    # is the limit of along_v × along_u / u.
    normals = np.where(length > 1e-9, normals, np.cross(twist, along_u))
    unit: Float64 = normals / np.linalg.norm(normals, axis=-1, keepdims=True)
    return unit


def _bernstein(divisions: int) -> tuple[Float64, Float64]:
    """The cubic Bernstein polynomials at divisions + 1 points in [0, 1], and their derivatives: (divisions + 1, 4)."""
    t = np.linspace(0, 1, divisions + 1)
    s = 1 - t
    values = np.stack([s**3, 3 * s**2 * t, 3 * s * t**2, t**3], axis=-1)
    slopes = 3 * np.stack([-(s**2), s**2 - 2 * s * t, 2 * s * t - t**2, t**2], axis=-1)
    return values, slopes


def _surface(a: Float64, b: Float64, patches: Float64) -> Float64:
    return np.asarray(np.einsum("ui,vj,pijc->puvc", a, b, patches))


def join(first: Mesh, second: Mesh) -> Mesh:
    """Combine two meshes into one."""
    return Mesh(
        positions=np.hstack([first.positions, second.positions]),
        normals=np.hstack([first.normals, second.normals]),
        corners=np.hstack([first.corners, second.corners + first.positions.shape[1]]),
    )


def render(azimuth: npt.ArrayLike, elevation: npt.ArrayLike, size: int = 64, mesh: Mesh | None = None) -> Float32:
    """Grey shading in [0, 1] of n poses, (n, size, size), on black.

    ``azimuth`` and ``elevation`` are radians, (n,) each; at 0, 0 the spout points right.
    """
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
    """Column, row, nearness to the camera and cosine to the light of each vertex, (n, vertices) each.

    Columns and rows are in samples.
    """
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
    """The quantised shade of every sample, (n, width, width), 0 for the background.

    Triangles facing the camera are split into horizontal spans of samples. Each sample keeps the largest of its keys:
    nearness in the high bits, shade in the low bits.
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
    """Triangles facing the camera: the image of each, (m,), and its corners in the flattened vertices, (3, m)."""
    x0, x1, x2 = (x.take(corner, axis=1) for corner in corners)
    y0, y1, y2 = (y.take(corner, axis=1) for corner in corners)
    outside = (x1 - x0) * (y2 - y0) < (x2 - x0) * (y1 - y0)  # counter-clockwise, and rows count downwards
    image, triangle = np.divmod(np.flatnonzero(outside), corners.shape[1])
    return image, corners.take(triangle, axis=1) + image * x.shape[1]


def _slopes(columns: Float32, rows: Float32, values: Float32) -> tuple[Float32, Float32]:
    """Slope per column and per row of values interpolated linearly over triangles: (kinds, 3, m) → two (kinds, m)."""
    (ux, vx), (uy, vy) = columns[1:] - columns[0], rows[1:] - rows[0]
    u, v = values[:, 1] - values[:, 0], values[:, 2] - values[:, 0]
    area = ux * vy - uy * vx
    # A triangle seen edge on has no usable slope; its few samples take the value at a corner.
    inverse = 1 / np.where(area < -1e-3, area, np.float32(-np.inf))
    return (u * vy - v * uy) * inverse, (v * ux - u * vx) * inverse


def _spans(columns: Float32, rows: Float32) -> tuple[Index, Index, Float32, Index]:
    """Horizontal spans of samples inside the triangles: triangle, row, leftmost column and number of columns.

    The two triangles at an edge compute its crossing with a row from the same numbers in the same order, so no sample
    between them is missed or counted twice.
    """
    x0, y0, x1, y1 = _sort_by_row(columns[0], rows[0], columns[1], rows[1])
    x1, y1, x2, y2 = _sort_by_row(x1, y1, columns[2], rows[2])
    x0, y0, x1, y1 = _sort_by_row(x0, y0, x1, y1)
    top = np.ceil(y0 - _HALF)
    owner, rank = _expand((np.ceil(y2 - _HALF) - top).astype(np.intp))
    row = top.astype(np.intp).take(owner) + rank
    y = row.astype(np.float32) + _HALF
    # One end of the span is on the edge 0-2, the other on 0-1 or, further down, on 1-2.
    long = x0.take(owner) + (y - y0.take(owner)) * _columns_per_row(x0, y0, x2, y2).take(owner)
    edge = owner + len(x0) * (y >= y1.take(owner))
    lean = np.concatenate([_columns_per_row(x0, y0, x1, y1), _columns_per_row(x1, y1, x2, y2)])
    short = np.concatenate([x0, x1]).take(edge) + (y - np.concatenate([y0, y1]).take(edge)) * lean.take(edge)
    left = np.ceil(np.minimum(long, short) - _HALF)
    return owner, row, left, (np.ceil(np.maximum(long, short) - _HALF) - left).astype(np.intp)


def _sort_by_row(xa: Float32, ya: Float32, xb: Float32, yb: Float32) -> tuple[Float32, Float32, Float32, Float32]:
    """Pairs of points a, b ordered by row: swapped where b is above a."""
    swap = ya > yb
    return np.where(swap, xb, xa), np.where(swap, yb, ya), np.where(swap, xa, xb), np.where(swap, ya, yb)


def _columns_per_row(xa: Float32, ya: Float32, xb: Float32, yb: Float32) -> Float32:
    """Slope of edges, columns per row; a horizontal edge crosses no row, so any finite slope will do."""
    lean: Float32 = (xb - xa) / np.maximum(yb - ya, np.float32(1e-9))
    return lean


def _expand(counts: Index) -> tuple[Index, Index]:
    """Owner of each item, and its number within the owner, if owner i has counts[i] items.

    >>> _expand(np.array([2, 0, 1]))
    (array([0, 0, 2]), array([0, 1, 0]))
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - (np.cumsum(counts) - counts).take(owner)

"""The Utah teapot as a triangle mesh, tessellated from Newell's 32 bicubic Bézier patches."""

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


@dataclass(frozen=True)
class Mesh:
    """Triangles, counter-clockwise seen from outside.

    Attributes:
        positions: (3, vertices), x, y, z relative to the centre; z is up, the spout points along +x.
        normals: (3, vertices), outward, of unit length; zero on unlit surfaces.
        corners: (3, triangles), the vertex indices of each triangle.
    """

    positions: Float32
    normals: Float32
    corners: Index


@cache
def teapot() -> Mesh:
    """The closed teapot: the patches, and unlit covers over the openings."""
    patches = control_points()
    unlit = covers(patches)
    return join(tessellate(patches, _DIVISIONS, _DIVISIONS), tessellate(unlit, 1, _DIVISIONS, lit=False))


def control_points() -> Float64:
    """Control points of the patches, (32, 4, 4, 3), z up."""
    table = json.loads(resources.files("wiseale.paper.teapot").joinpath("patches.json").read_text(encoding="utf-8"))
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
    surface: Float64 = np.einsum("ui,vj,pijc->puvc", a, b, patches)
    return surface


def join(first: Mesh, second: Mesh) -> Mesh:
    """Combine two meshes into one."""
    return Mesh(
        positions=np.hstack([first.positions, second.positions]),
        normals=np.hstack([first.normals, second.normals]),
        corners=np.hstack([first.corners, second.corners + first.positions.shape[1]]),
    )

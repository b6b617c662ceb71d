import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage
from tests.paper import teapot_oracle as oracle

from wiseale.paper import teapot_render
from wiseale.paper.teapot_render import (
    AMBIENT,
    CENTRE,
    HALF_WIDTH,
    LIGHT,
    SAMPLES,
    Mesh,
    control_points,
    covers,
    join,
    render,
    teapot,
    tessellate,
)

BODY, HANDLE, SPOUT = [*range(12), *range(20, 32)], range(12, 16), range(16, 20)


def part(*patches: int, divisions: int = 8) -> Mesh:
    """Some patches, with the covers that belong to them."""
    net = control_points()
    mesh = tessellate(net[list(patches)], divisions, divisions)
    covered = [cover for cover, needs in zip(covers(net), [0, 1, 2, 3, 18], strict=True) if needs in patches]
    return join(mesh, tessellate(np.array(covered), 1, divisions, lit=False)) if covered else mesh


def open_edges(mesh: Mesh) -> np.ndarray:
    """End points, (k, 2, 3), of the directed edges that no neighbour runs along the other way."""
    _, weld = np.unique(mesh.positions.T, axis=0, return_inverse=True)
    triangles = weld.reshape(-1)[mesh.corners].T
    ends = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    ends = ends[ends[:, 0] != ends[:, 1]]  # at a pole one side of a triangle is a point
    edges = Counter(map(tuple, ends.tolist()))
    where = dict(zip(weld.reshape(-1).tolist(), mesh.positions.T, strict=True))
    alone = [edge for edge, count in edges.items() if edges[edge[::-1]] != count]
    return np.array([[where[a], where[b]] for a, b in alone]).reshape(-1, 2, 3) + CENTRE


def test_control_points_are_newells():
    root = os.environ.get("WISEALE_DATA")
    if not root or not (path := Path(root) / "teapot" / "teapot_patches.npz").exists():
        pytest.skip("needs teapot/teapot_patches.npz under $WISEALE_DATA")
    np.testing.assert_array_equal(control_points(), np.load(path)["patches"])


def test_vertices_and_normals_agree_with_de_casteljau_and_differences():
    net, t = control_points(), np.linspace(0, 1, 6)
    mesh = tessellate(net, 5, 5)
    positions, normals = (array.T.reshape(32, 6, 6, 3) for array in (mesh.positions, mesh.normals))
    for patch in range(32):
        points = [[oracle.casteljau(net[patch], u, v) for v in t] for u in t]
        np.testing.assert_allclose(positions[patch] + CENTRE, points, atol=2e-6)
        inner = [[oracle.normal(net[patch], u, v) for v in t[1:-1]] for u in t[1:-1]]
        np.testing.assert_allclose(normals[patch, 1:-1, 1:-1], inner, atol=1e-5)


def test_normals_at_the_poles_are_vertical():
    mesh = teapot()
    top, bottom = (mesh.positions[2] == height for height in (mesh.positions[2].max(), np.float32(-CENTRE[2])))
    axis = np.hypot(*mesh.positions[:2]) < 1e-9
    for pole, up in ((top & axis, 1), (bottom & axis, -1)):
        assert pole.any()
        np.testing.assert_allclose(mesh.normals.T[pole], np.tile([0, 0, up], (pole.sum(), 1)), atol=1e-6)


def test_the_pot_is_closed_and_all_its_triangles_face_outwards():
    assert len(open_edges(part(*BODY))) == 0
    spout, handle = open_edges(part(*SPOUT)), open_edges(part(*HANDLE))
    np.testing.assert_allclose(spout[..., 0], 1.7, atol=1e-5)  # its root, inside the body
    assert len(spout) == 16  # two patches of eight cells round it
    assert len(handle) == 32  # both ends
    assert (handle[..., 0] > -2 - 1e-6).all()  # where the body is 2 wide


def test_the_volume_of_the_body_is_that_of_its_profile():
    mesh = part(*BODY, divisions=30)
    a, b, c = (mesh.positions[:, corner].T.astype(float) for corner in mesh.corners)
    volume = (a * np.cross(b, c)).sum() / 6
    net, t = control_points(), np.linspace(0, 1, 400)
    integral = 0.0  # of r² dz, up the outside
    for patch in (0, 4, 8, 20, 24, 28):
        r, z = np.array([oracle.casteljau(net[patch], u, 0.0) for u in t])[:, [0, 2]].T
        direction = 1 if patch == 28 else -1  # the bottom is written from the middle outwards, the others downwards
        integral += direction * ((r[1:] ** 2 + r[:-1] ** 2) / 2 * np.diff(z)).sum()
    quarter = np.array([oracle.casteljau(net[8], 1.0, v) for v in t])[:, :2] / 1.5  # Newell's circles are 0.3 % wide
    circle = 2 * np.abs(quarter[:-1, 0] * quarter[1:, 1] - quarter[1:, 0] * quarter[:-1, 1]).sum()
    assert volume == pytest.approx(circle * integral, rel=3e-3)


@pytest.mark.parametrize(("azimuth", "elevation"), [(0.6, 0.4), (2.5, 0.9), (4.2, 0.05), (5.5, 1.5)])
def test_pictures_agree_with_a_ray_for_every_sample(azimuth, elevation, traced_triangles, monkeypatch):
    samples = 44
    expected = oracle.cast(*traced_triangles, azimuth, elevation, samples, CENTRE, HALF_WIDTH, LIGHT, AMBIENT)
    monkeypatch.setattr(teapot_render, "SAMPLES", 1)
    seen = render(azimuth, elevation, samples)[0]
    np.testing.assert_array_equal(seen > 0, expected > 0)
    apart = np.abs(seen - expected) > 5e-3
    # The one difference: through the gap round the lid the open pot shows the roots of spout and handle.
    np.testing.assert_allclose(seen[apart], AMBIENT, atol=1e-3)
    assert apart.sum() <= 2


@pytest.fixture(scope="module")
def traced_triangles():
    return oracle.triangles(control_points())


def test_a_pixel_is_the_mean_of_its_samples(monkeypatch):
    pixels = render(1.0, 0.5, 32)[0]
    monkeypatch.setattr(teapot_render, "SAMPLES", 1)
    samples = render(1.0, 0.5, 32 * SAMPLES)[0]
    np.testing.assert_allclose(pixels, samples.reshape(32, SAMPLES, 32, SAMPLES).mean(axis=(1, 3)), atol=1e-6)


def test_no_sample_inside_the_outline_is_missed(monkeypatch):
    monkeypatch.setattr(teapot_render, "SAMPLES", 1)
    rng = np.random.default_rng(0)
    for seen in render(rng.uniform(0, 7, 24), rng.uniform(0, 1.57, 24), 200, part(*BODY)) > 0:
        np.testing.assert_array_equal(seen, ndimage.binary_fill_holes(seen))
        assert ndimage.label(seen)[1] == 1


def test_the_body_looks_the_same_from_all_sides():
    body = part(*BODY)
    first, quarter, other = render([0.3, 0.3 + np.pi / 2, 1.1], [0.6] * 3, 64, body)
    np.testing.assert_allclose(first, quarter, atol=0.03)  # exactly periodic, but for a sample here and there
    assert np.abs(first - quarter).mean() < 1e-4
    assert np.abs(first - other).mean() < 2e-3  # nearly a circle
    assert np.abs(render(0.3, 0.6)[0] - render(1.1, 0.6)[0]).mean() > 0.02  # unlike the whole teapot


def test_the_mirror_image_is_the_mirror_pose(monkeypatch):
    monkeypatch.setattr(teapot_render, "LIGHT", np.array([0.0, 0.6, 0.8]))
    for azimuth, elevation in ((0.4, 0.3), (2.0, 1.2), (4.5, 0.7)):
        there, back = render([azimuth, np.pi - azimuth], [elevation] * 2)
        assert np.abs(there - back[:, ::-1]).mean() < 5e-4
        assert np.abs(there - back).mean() > 0.01


def test_what_is_in_front_hides_what_is_behind():
    body, spout, both = part(*BODY), part(*SPOUT), part(*BODY, *SPOUT)
    behind, towards = (np.pi / 2, 3 * np.pi / 2)
    body_behind, both_behind = (render(behind, 0.4, 64, mesh)[0] for mesh in (body, both))
    full = ndimage.binary_erosion(body_behind > 0)
    np.testing.assert_array_equal(both_behind[full], body_behind[full])
    assert (both_behind[~full] != body_behind[~full]).any()  # its tip shows above the rim
    body_front, spout_front, both_front = (render(towards, 0.1, 64, mesh)[0] for mesh in (body, spout, both))
    full = ndimage.binary_erosion(spout_front > 0)
    assert full.sum() > 30
    assert (both_front[full] == spout_front[full]).mean() > 0.9
    assert (both_front[full] == body_front[full]).mean() < 0.1


def test_neither_the_order_of_triangles_nor_the_company_matters(monkeypatch):
    mesh, rng = teapot(), np.random.default_rng(1)
    azimuth, elevation = rng.uniform(0, 2 * np.pi, 21), rng.uniform(0, np.pi / 2, 21)
    pictures = render(azimuth, elevation, 32)
    shuffled = Mesh(mesh.positions, mesh.normals, rng.permutation(mesh.corners, axis=1))
    np.testing.assert_array_equal(render(azimuth, elevation, 32, shuffled), pictures)
    np.testing.assert_array_equal(
        np.concatenate([render(a, e, 32) for a, e in zip(azimuth, elevation, strict=True)]), pictures
    )
    monkeypatch.setattr(teapot_render, "_BLOCK", 5)
    np.testing.assert_array_equal(render(azimuth, elevation, 32), pictures)


def test_the_whole_pot_is_in_the_picture_and_stands_upright():
    azimuth, elevation = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 6.28, 24), np.linspace(0, np.pi / 2, 5)))
    pictures = render(azimuth, elevation)
    border = np.ones((64, 64), bool)
    border[1:-1, 1:-1] = False
    assert not pictures[:, border].any()
    assert pictures.max() <= 1
    rows, columns = (np.flatnonzero(pictures[0].any(axis=axis)) for axis in (1, 0))
    pixel = 2 * HALF_WIDTH / 64
    # Seen level, spout to the right: z from 0 to 3.15, x from −3 to 3.433.
    assert (rows[0], rows[-1]) == (round(32 - 1.575 / pixel), round(32 + 1.575 / pixel) - 1)
    assert (columns[0], columns[-1]) == (int(32 - 3 / pixel), int(32 + 3.433 / pixel))
    assert (pictures[0, rows[0]] > 0).sum() < 8  # the knob
    assert (pictures[0, rows[-1]] > 0).sum() > 20  # the bottom


def test_shading_follows_the_light():
    # From above, the top of the knob faces the camera: the cosine is the light's own component that way.
    knob = render(1.0, np.pi / 2, 256)[0, 127:129, 127:129]
    assert knob.mean() == pytest.approx(AMBIENT + (1 - AMBIENT) * LIGHT[2], abs=2e-3)
    flat = render(1.0, 0.5, 64, Mesh(teapot().positions, 0 * teapot().normals, teapot().corners))[0]
    np.testing.assert_allclose(flat[flat > 0].max(), AMBIENT, atol=1e-3)

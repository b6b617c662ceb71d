"""A second, slow teapot: de Casteljau's construction and a ray for every sample, in float64, nothing shared."""

import numpy as np


def casteljau(net, u, v):
    """The point of a 4×4 control net at (u, v), by repeated halving of the net."""

    def curve(points, t):
        while len(points) > 1:
            points = (1 - t) * points[:-1] + t * points[1:]
        return points[0]

    return curve(np.stack([curve(row, v) for row in net]), u)


def normal(net, u, v, h=1e-5):
    """The outward unit normal by central differences; the parameters must be inside the patch."""
    along_u = casteljau(net, u + h, v) - casteljau(net, u - h, v)
    along_v = casteljau(net, u, v + h) - casteljau(net, u, v - h)
    n = np.cross(along_v, along_u)
    return n / np.linalg.norm(n)


def grid(net, divisions):
    """Points and normals of a patch, (divisions + 1, divisions + 1, 3) each; the border's normals from just inside."""
    t = np.linspace(0, 1, divisions + 1)
    points = np.array([[casteljau(net, u, v) for v in t] for u in t])
    t = t.clip(2e-5, 1 - 2e-5)
    return points, np.array([[normal(net, u, v) for v in t] for u in t])


def triangles(patches, divisions=8):
    """Corners and their normals, (m, 3, 3) each."""
    corners, normals = [], []
    for net in patches:
        for array, out in zip(grid(net, divisions), (corners, normals), strict=True):
            a, b, c, d = array[:-1, :-1], array[:-1, 1:], array[1:, :-1], array[1:, 1:]
            out += [np.stack([a, b, c], 2).reshape(-1, 3, 3), np.stack([b, d, c], 2).reshape(-1, 3, 3)]
    return np.concatenate(corners), np.concatenate(normals)


def camera(azimuth, elevation):
    """Unit vectors to the camera, to the right and up, in the pot's own frame."""
    towards = np.array([-np.cos(elevation) * np.sin(azimuth), -np.cos(elevation) * np.cos(azimuth), np.sin(elevation)])
    right = np.array([np.cos(azimuth), -np.sin(azimuth), 0.0])
    return towards, right, np.cross(towards, right)


def cast(corners, normals, azimuth, elevation, samples, centre, half_width, light, ambient):
    """Shade at each of samples × samples rays; the pot is open and its inside takes no light."""
    towards, right, up = camera(azimuth, elevation)
    light = light[0] * right + light[1] * up + light[2] * towards
    at = half_width * ((np.arange(samples) + 0.5) / samples * 2 - 1)
    origins = np.array(centre) + 10 * towards + at[None, :, None] * right - at[:, None, None] * up
    a, ab, ac = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    face = np.cross(ab, ac)
    slant = face @ towards  # solve origin − t·towards = a + p·ab + q·ac by Cramer's rule
    slant = np.where(np.abs(slant) < 1e-12, np.nan, slant)
    image = np.zeros((samples, samples))
    for i, line in enumerate(origins):
        offset = line[:, None] - a
        across = np.cross(offset, towards)
        p, q = -(across * ac).sum(-1) / slant, (across * ab).sum(-1) / slant
        t = (offset * face).sum(-1) / slant
        with np.errstate(invalid="ignore"):
            t = np.where((p >= 0) & (q >= 0) & (p + q <= 1), t, np.inf)
        hit = t.argmin(axis=1)
        for j in np.flatnonzero(np.isfinite(t.min(axis=1))):
            k = hit[j]
            n = normals[k, 0] + p[j, k] * (normals[k, 1] - normals[k, 0]) + q[j, k] * (normals[k, 2] - normals[k, 0])
            outside = slant[k] > 0
            image[i, j] = ambient + (1 - ambient) * max(0.0, n @ light) * outside
    return image

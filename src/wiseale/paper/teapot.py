"""Teapots in random poses and colours, 3×64×64, in the style of Eastwood & Williams (2018), with five known factors."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale.config import Settings, setting
from wiseale.data.dataset import Dataset, Preset, Progress, Rows
from wiseale.data.images.pack import Pack
from wiseale.data.images.pack_writer import pack_chunks
from wiseale.paper.teapot_render import render
from wiseale.platform.folders import cache_root
from wiseale.platform.machine import cores
from wiseale.spaces import ImagesSpace

Images = npt.NDArray[np.uint8]
Factors = dict[str, npt.NDArray[np.float64]]

SIZE = 64
RANGES = {"azimuth": 2 * math.pi, "elevation": math.pi / 2, "red": 1.0, "green": 1.0, "blue": 1.0}
"""Each factor is uniform between 0 and this number."""

_VERSION = 1  # raise it when a seed renders other images, or old caches would be reused
_CHUNK = 256  # images per chunk, 3 MB
_DRAWS = 8  # 64-bit random numbers reserved per image: two steps of Philox, which draws four at a time


@dataclass(frozen=True)
class Teapot(Settings):
    """Rendered teapots, every one in a pose and colour of its own.

    The first 80 % are the training split, the next 10 % validation, the last 10 % test. Image i depends on (seed, i)
    alone. The training loop holds out rows of the training split itself, so :meth:`load` does not use the validation
    split; :meth:`rows` returns it for comparison with work that does.
    """

    n: int = setting(200_000, "pictures: .8 train, .1 validation (set aside), .1 test", minimum=10)
    seed: int = setting(0, "seed of the poses and colours", minimum=0)

    def status(self, data_root: Path) -> str:
        """Whether the images are already rendered."""
        return "rendered" if self._folder().exists() else "rendered on first use (wiseale data pack teapot)"

    def load(self, data_root: Path, progress: Progress | None = None) -> Dataset:
        """Open the images in the cache folder, rendering them first if needed; the data root is not used."""
        pack = self._pack(progress)
        return Dataset(
            name="teapot",
            train=self.rows("train"),
            test=self.rows("test"),
            preset=Preset(
                network="conv2d:channels=32,32,64,64,start=none",
                likelihood="gaussian",
                latent_dim=10,
                batch_size=min(64, self.n * 8 // 10),
                max_epochs=30,
            ),
            fingerprint=pack.metadata.images_sha256,
            space=ImagesSpace(pack.x.shape[1:], "unit"),
            circular={"azimuth": 2 * math.pi},
        )

    def rows(self, split: Literal["train", "validation", "test"]) -> Rows:
        """One split, with memory-mapped images."""
        train, test = self.n * 8 // 10, self.n - self.n // 10
        start, stop = {"train": (0, train), "validation": (train, test), "test": (test, self.n)}[split]
        return Rows(self._pack().x[start:stop], reading="unit", factors=self.factors(start, stop))

    def factors(self, start: int, stop: int) -> Factors:
        """Generative factors of images start, …, stop − 1, by name, each (stop − start,); angles in radians."""
        key = np.random.SeedSequence(self.seed).generate_state(2, np.uint64)
        # Counter-based, so that the factors of an image do not depend on the other images.
        generator = np.random.Philox(key=key, counter=start * _DRAWS // 4)
        draws = generator.random_raw((stop - start) * _DRAWS).reshape(-1, _DRAWS)
        uniform = (draws >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return {name: uniform[:, column] * most for column, (name, most) in enumerate(RANGES.items())}

    def images(self, start: int, stop: int) -> Images:
        """Render images start, …, stop − 1, uint8 (stop − start, 3, 64, 64): grey shading of the pose times colour."""
        factors = self.factors(start, stop)
        shading = render(factors["azimuth"], factors["elevation"], SIZE)
        colour = np.stack([factors[name] for name in ("red", "green", "blue")], axis=1).astype(np.float32)
        pictures = shading[:, None] * (255 * colour[:, :, None, None])
        images: Images = np.rint(pictures, out=pictures).astype(np.uint8)
        return images

    def chunks(self, start: int, stop: int, workers: int | None = None) -> Iterator[tuple[Images, Factors]]:
        """Yield images and factors in order, chunk by chunk, rendered by one thread per core."""
        workers = workers or cores()
        parts = [(first, min(first + _CHUNK, stop)) for first in range(start, stop, _CHUNK)]
        with ThreadPoolExecutor(workers) as pool:
            waiting: deque[Future[Images]] = deque()
            ahead = iter(parts)
            try:
                for part in parts:
                    while len(waiting) < 2 * workers and (following := next(ahead, None)):
                        waiting.append(pool.submit(self.images, *following))
                    yield waiting.popleft().result(), self.factors(*part)
            finally:
                for future in waiting:
                    future.cancel()

    def _folder(self) -> Path:
        return cache_root() / "teapot" / f"v{_VERSION}-seed{self.seed}-n{self.n}"

    def _pack(self, progress: Progress | None = None) -> Pack:
        """Open the packed images, rendering them first if needed; interrupted rendering is resumed."""
        return pack_chunks(
            self._folder(),
            self.n,
            (3, SIZE, SIZE),
            lambda start: (images for images, _ in self.chunks(start, self.n)),
            self.factors(0, self.n),
            source=f"teapot v{_VERSION} seed {self.seed}",
            progress=progress,
        )

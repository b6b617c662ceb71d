"""Teapots in random poses and colours, 64×64×3, in the style of Eastwood & Williams (2018): five factors, all known."""

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
from wiseale.data.packs.pack import Pack, pack_chunks
from wiseale.data.sets.teapot_render import render
from wiseale.platform.folders import cache_root
from wiseale.platform.machine import cores

Images = npt.NDArray[np.uint8]
Factors = dict[str, npt.NDArray[np.float64]]

SIZE = 64
RANGES = {"azimuth": 2 * math.pi, "elevation": math.pi / 2, "red": 1.0, "green": 1.0, "blue": 1.0}
"""Each factor is uniform between 0 and this."""

_VERSION = 1  # of the pictures: raise it when a seed no longer means the same ones, or old caches would be read
_CHUNK = 256  # images handed over at a time, 3 MB
_DRAWS = 8  # 64-bit numbers set aside for an image: two steps of Philox, which makes four at a time


@dataclass(frozen=True)
class Teapot(Settings):
    """Rendered teapots, every one in a pose and colour of its own.

    The first 8 tenths train, then 1 validation, then 1 test. Image i is a function of (seed, i) alone. The training
    loop holds out rows of the training part itself, so :meth:`load` leaves the validation tenth aside, for comparison
    with work that uses it; :meth:`rows` returns it.
    """

    n: int = setting(200_000, "pictures: .8 train, .1 validation (set aside), .1 test", minimum=10)
    seed: int = setting(0, "seed of the poses and colours", minimum=0)

    def status(self, data_root: Path) -> str:
        """Rendered already, or on first use."""
        return "rendered" if self._folder().exists() else "rendered on first use (wiseale data pack teapot)"

    def load(self, data_root: Path, progress: Progress | None = None) -> Dataset:
        """Render the set into the cache folder, or find it there; the data root is not used."""
        pack = self._pack(progress)
        return Dataset(
            name="teapot",
            train=self.rows("train"),
            test=self.rows("test"),
            preset=Preset(
                network="conv2d:channels=32,32,64,64",
                likelihood="gaussian",
                latent_dim=10,
                batch_size=min(64, self.n * 8 // 10),
                max_epochs=30,
            ),
            fingerprint=pack.metadata.sha256,
            circular={"azimuth": 2 * math.pi},
        )

    def rows(self, split: Literal["train", "validation", "test"]) -> Rows:
        """One part of the set, its pictures memory-mapped."""
        train, test = self.n * 8 // 10, self.n - self.n // 10
        start, stop = {"train": (0, train), "validation": (train, test), "test": (test, self.n)}[split]
        return Rows(self._pack().x[start:stop], reading="unit", factors=self.factors(start, stop))

    def factors(self, start: int, stop: int) -> Factors:
        """What images start, …, stop − 1 are made from, each (stop − start,)."""
        key = np.random.SeedSequence(self.seed).generate_state(2, np.uint64)
        # Counter-based, so that the numbers of an image depend on no other image.
        generator = np.random.Philox(key=key, counter=start * _DRAWS // 4)
        draws = generator.random_raw((stop - start) * _DRAWS).reshape(-1, _DRAWS)
        uniform = (draws >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return {name: uniform[:, column] * most for column, (name, most) in enumerate(RANGES.items())}

    def images(self, start: int, stop: int) -> Images:
        """Images start, …, stop − 1, (stop − start, 3, 64, 64): the grey shading of the pose times the colour."""
        factors = self.factors(start, stop)
        shading = render(factors["azimuth"], factors["elevation"], SIZE)
        colour = np.stack([factors[name] for name in ("red", "green", "blue")], axis=1).astype(np.float32)
        pictures = shading[:, None] * (255 * colour[:, :, None, None])
        images: Images = np.rint(pictures, out=pictures).astype(np.uint8)
        return images

    def chunks(self, start: int, stop: int, workers: int | None = None) -> Iterator[tuple[Images, Factors]]:
        """Images and factors in order, a few at a time, rendered by as many threads as there are cores."""
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
        """The pictures, rendered first if need be; rendering that was interrupted goes on where it stopped."""
        return pack_chunks(
            self._folder(),
            self.n,
            (3, SIZE, SIZE),
            lambda start: (images for images, _ in self.chunks(start, self.n)),
            self.factors(0, self.n),
            source=f"teapot v{_VERSION} seed {self.seed}",
            progress=progress,
        )

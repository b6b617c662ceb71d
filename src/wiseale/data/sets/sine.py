"""Sine waves x(t) = A·sin(2πft + φ) + ε, the paper's first experiment: generated in memory, three known factors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wiseale.config import Settings, setting
from wiseale.data.dataset import Dataset, Preset, Progress, Rows, fingerprint
from wiseale.platform.machine import require_memory
from wiseale.spaces import SignalsSpace

_CHUNK = 8192  # waves generated at a time, so that temporary arrays stay small


@dataclass(frozen=True)
class Sine(Settings):
    """Sine waves of random frequency, phase and amplitude.

    ``length`` samples over one second; f ~ U(0, 20) Hz, φ ~ U(0, 2π), A ~ U(0, 2), noise ε ~ N(0, noise²).
    """

    n: int = setting(200_000, "training waves", minimum=2)
    n_test: int = setting(10_000, "test waves, drawn from another seed", minimum=1)
    noise: float = setting(0.05, "standard deviation of the noise", minimum=0)
    length: int = setting(256, "samples in a wave", minimum=2)
    max_frequency: float = setting(20.0, "highest frequency in Hz", above=0)
    max_amplitude: float = setting(2.0, "largest amplitude", above=0)
    seed: int = setting(0, "seed of the generator", minimum=0)

    def status(self, data_root: Path) -> str:
        """Always available."""
        return "made in memory"

    def load(self, data_root: Path, progress: Progress | None = None) -> Dataset:
        """Generate the waves; the data root is not used."""
        numbers = (self.n + self.n_test) * (self.length + 6)  # in float32; the three factors are in float64
        require_memory(4 * numbers, f"sine:n={self.n},length={self.length}", "choose fewer waves")
        train, test = self._rows(self.n, stream=0), self._rows(self.n_test, stream=1)
        return Dataset(
            name="sine",
            train=train,
            test=test,
            preset=Preset(
                network="paper_sine" if self.length == 256 else "conv1d:start=none",
                likelihood="gaussian",
                latent_dim=4,
                batch_size=64,
                max_epochs=50,
                lr=5e-4,
            ),
            ours={"lr": 1e-3, "prior_warmup": 2.0},
            fingerprint=fingerprint(train.x, test.x),
            space=SignalsSpace(train.x.shape[1:]),
            circular={"phase": 2 * math.pi},
        )

    def _rows(self, n: int, stream: int) -> Rows:
        generator = np.random.default_rng([self.seed, stream])
        frequency = generator.uniform(0, self.max_frequency, n)
        phase = generator.uniform(0, 2 * np.pi, n)
        amplitude = generator.uniform(0, self.max_amplitude, n)
        t = np.arange(self.length) / self.length
        x = np.empty((n, 1, self.length), np.float32)
        for start in range(0, n, _CHUNK):
            part = slice(start, min(start + _CHUNK, n))
            wave = np.sin(2 * np.pi * frequency[part, None] * t + phase[part, None])
            noise = generator.standard_normal(wave.shape, np.float32)
            x[part, 0] = amplitude[part, None] * wave + self.noise * noise
        return Rows(x, factors={"frequency": frequency, "phase": phase, "amplitude": amplitude})

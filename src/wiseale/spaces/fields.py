"""Signals and images: channels of samples or pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wiseale.errors import counted
from wiseale.spaces.space import Space


@dataclass(frozen=True)
class SignalsSpace(Space):
    """Signals (channels, length)."""

    kind: ClassVar[str] = "signals"
    dimensions: ClassVar[int] = 2

    def describe(self) -> str:
        """``signals of 1 channel and 32 samples``."""
        return f"signals of {counted(self.x_shape[0], 'channel')} and {counted(self.x_shape[1], 'sample')}"


@dataclass(frozen=True)
class ImagesSpace(Space):
    """Images (channels, height, width); 8-bit ones as ``reading`` says."""

    kind: ClassVar[str] = "images"
    dimensions: ClassVar[int] = 3

    def describe(self) -> str:
        """``images of 1 channel, 28 by 28 pixels``."""
        channels, height, width = self.x_shape
        return f"images of {counted(channels, 'channel')}, {height} by {width} pixels"

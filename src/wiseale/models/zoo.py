"""The zoo: small trained models that come with the package, as ``zoo:NAME``.

Each is a model directory with its card, its evaluation, and what the explorer shows without the dataset: the codes of
some test rows, or the spec of a dataset that is generated.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from wiseale.data.dataset import Array
from wiseale.errors import ModelFileError
from wiseale.models.inference import Codes, Numbers
from wiseale.models.tensor_files import read_tensors, write_tensors
from wiseale.platform.json_files import parse_table, read_text, record, to_json
from wiseale.registry import did_you_mean

ENTRY, CODES = "zoo.json", "codes.safetensors"


@dataclass(frozen=True)
class ZooEntry:
    """What zoo.json says of a model.

    Attributes:
        name: as in ``zoo:NAME``.
        dataset: name of the dataset it was trained on.
        shown: the dataset that the explorer shows, generated on the spot; empty where it shows the stored codes.
        available: test rows that the dataset has.
        licence: of the data.
        weights: how the weights are stored.
    """

    name: str
    dataset: str
    shown: str
    available: int
    licence: str
    weights: str = "float16"

    def to_json(self) -> str:
        """The text of zoo.json."""
        return to_json(asdict(self))


@dataclass(frozen=True)
class KeptCodes:
    """Codes of some test rows: their numbers in the split (n,), labels by name, and the codes themselves."""

    numbers: npt.NDArray[np.int64]
    labels: dict[str, Array]
    codes: Codes

    def write(self, folder: Path) -> None:
        """Write the file."""
        codes = {"mu": self.codes.mu, "sigma": self.codes.sigma, "error": self.codes.error}
        arrays = {name: _float32(values) for name, values in codes.items() if values is not None}
        arrays |= {"numbers": self.numbers, **{f"label.{name}": values for name, values in self.labels.items()}}
        write_tensors(folder / CODES, {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()})


def zoo_folder() -> Path:
    """Where the package keeps its models."""
    return Path(str(files("wiseale"))) / "zoo"


def zoo_names() -> list[str]:
    """All models, sorted."""
    folder = zoo_folder()
    return sorted(path.parent.name for path in folder.glob(f"*/{ENTRY}")) if folder.is_dir() else []


def zoo_path(name: str) -> Path:
    """The directory of a model; an unknown name is an error that lists the known ones."""
    known = zoo_names()
    if name not in known:
        raise ModelFileError(f"the zoo has no model {name!r}{did_you_mean(name, known)} (known: {', '.join(known)})")
    return zoo_folder() / name


def read_entry(directory: Path) -> ZooEntry | None:
    """What zoo.json says; None for a directory that has none."""
    path = directory / ENTRY
    if not path.is_file():
        return None
    try:
        return record(ZooEntry, parse_table(read_text(path)))
    except (OSError, ValueError, TypeError) as error:
        raise ModelFileError(f"cannot read {path}: {error}") from None


def read_codes(directory: Path) -> KeptCodes:
    """The stored codes of a model."""
    arrays = {name: tensor.numpy() for name, tensor in read_tensors(directory / CODES).items()}
    try:
        codes = Codes(arrays["mu"], arrays.get("sigma"), arrays["error"])
        labels = {name.removeprefix("label."): values for name, values in arrays.items() if name.startswith("label.")}
        return KeptCodes(arrays["numbers"].astype(np.int64), labels, codes)
    except KeyError as error:
        raise ModelFileError(f"{directory / CODES} holds no {error}") from None


def _float32(values: Numbers) -> Array:
    return np.ascontiguousarray(values, dtype=np.float32)

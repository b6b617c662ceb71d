"""Where a model is: a directory, ``zoo:NAME`` of those that come with the package, or ``hf://owner/name@revision``.

A model of the zoo is a directory with its card, its evaluation, and what the explorer shows without the dataset: the
codes of some test rows, or the spec of a dataset that is generated. From the Hugging Face Hub only the files of a model
are downloaded, all from one commit, into the Hub's own cache folder; nothing is executed, and their checksums are
verified as those of every model directory.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from wiseale.data.dataset import Array
from wiseale.errors import ConfigError, ModelFileError
from wiseale.models.card import Provenance, model_card
from wiseale.models.inference import Codes
from wiseale.models.model_file import CARD, CONFIG, WEIGHTS, ModelConfig, read_tensors, save_model, write_tensors
from wiseale.networks.model import Model
from wiseale.platform.atomic_files import MANIFEST
from wiseale.platform.json_files import parse_table, read_text, record
from wiseale.registry import did_you_mean

if TYPE_CHECKING:
    from huggingface_hub import HfApi

ZOO, HUB = "zoo:", "hf://"
ENTRY, CODES = "zoo.json", "codes.safetensors"


def locate(place: str | os.PathLike[str]) -> Path:
    """The directory that holds the model."""
    text = os.fspath(place)
    if text.startswith(ZOO):
        return zoo_path(text.removeprefix(ZOO))
    return download(text) if text.startswith(HUB) else Path(text).expanduser()


@dataclass(frozen=True)
class ZooEntry:
    """What zoo.json says of a model.

    ``shown`` is the dataset that the explorer shows, generated on the spot; empty where it shows the stored codes.
    ``available`` counts the test rows of the dataset the model was trained on.
    """

    name: str
    dataset: str
    shown: str
    available: int
    licence: str
    weights: str = "float16"


@dataclass(frozen=True)
class KeptCodes:
    """Codes of some test rows: their numbers in the split (n,), labels by name, and the codes themselves."""

    numbers: npt.NDArray[np.int64]
    labels: dict[str, Array]
    codes: Codes

    def write(self, folder: Path) -> None:
        """Write the file."""
        codes = {"mu": self.codes.mu, "sigma": self.codes.sigma, "error": self.codes.error}
        arrays: dict[str, Array] = {
            name: values.astype(np.float32) for name, values in codes.items() if values is not None
        }
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


_ANSWERS = {
    401: "it does not exist, or you must log in (`hf auth login`)",
    403: "you may not do this",
    404: "not found",
}
_PLACE = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")


def download(place: str) -> Path:
    """The directory of a model on the Hub, ``hf://owner/name`` or ``hf://owner/name@revision`` (commit, tag or branch).

    A full commit hash that is in the cache already needs no network.
    """
    match = _PLACE.fullmatch(place.removeprefix(HUB).rstrip("/"))
    if match is None:
        raise ModelFileError(f"{place!r} is not of the form hf://owner/name or hf://owner/name@revision")
    repo, revision = match["repo"], match["revision"] or "main"
    api = _api()
    with _in_one_line(place):
        commit = revision if re.fullmatch("[0-9a-f]{40}", revision) else api.model_info(repo, revision=revision).sha
        paths = [api.hf_hub_download(repo, name, revision=commit) for name in (MANIFEST, CONFIG, WEIGHTS)]
    return Path(paths[0]).parent


def push(repo: str, model: Model, model_config: ModelConfig, *, private: bool, message: str, token: str | None) -> str:
    """Upload a model with its card, in one commit to a repository that is made if it is missing; returns its place."""
    if _PLACE.fullmatch(repo) is None or "@" in repo:
        raise ConfigError(f"repo must be of the form owner/name, got {repo!r}")
    api = _api(token)
    from huggingface_hub import CommitOperationAdd

    card = model_card(repo.partition("/")[2], model_config, Provenance(), place=f"{HUB}{repo}")
    with tempfile.TemporaryDirectory(prefix="wiseale-") as folder, _in_one_line(f"{HUB}{repo}"):
        directory = Path(folder) / "model"
        save_model(directory, model, model_config, {CARD: card})
        api.create_repo(repo, private=private, exist_ok=True)
        files = [CommitOperationAdd(path.name, path.read_bytes()) for path in sorted(directory.iterdir())]
        commit = api.create_commit(repo, files, commit_message=message)
    return f"{HUB}{repo}@{commit.oid}"


def _api(token: str | None = None) -> HfApi:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ConfigError("models on the Hugging Face Hub need a package that is missing: pip install 'wiseale[hub]'")
    from huggingface_hub import HfApi

    return HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=token, library_name="wiseale")


@contextmanager
def _in_one_line(place: str) -> Iterator[None]:
    """What goes wrong between here and the Hub, as one line."""
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        raise ModelFileError(f"{place}: {_ANSWERS.get(status, f'the Hub answered {status}')}") from None
    except (LocalEntryNotFoundError, OfflineModeIsEnabled):
        raise ModelFileError(f"{place} is not in the cache, and the Hub cannot be reached") from None
    except Exception as error:
        if not type(error).__module__.startswith("httpx"):  # httpx or httpx2, by the version of huggingface_hub
            raise
        raise ModelFileError(f"{place}: the Hub cannot be reached ({error})") from None

"""Models on the Hugging Face Hub: ``hf://owner/name@revision`` is downloaded, checked and cached; nothing is executed.

Only the files of a model are downloaded, all from one commit, into the Hub's own cache folder. Their checksums are
those of ``manifest.json``, which every reader of a model directory verifies.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wiseale.errors import ConfigError, ModelFileError
from wiseale.models.card import Provenance, model_card
from wiseale.models.model_file import CARD, CONFIG, WEIGHTS, ModelConfig, save_model
from wiseale.models.places import HUB
from wiseale.networks.model import Model
from wiseale.platform.atomic_files import MANIFEST

if TYPE_CHECKING:
    from huggingface_hub import HfApi

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

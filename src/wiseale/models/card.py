"""The model card: README.md beside an exported model, in the form Hugging Face reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import wiseale
from wiseale import config
from wiseale.config import TrainConfig
from wiseale.models.model_file import ModelConfig
from wiseale.models.onnx import Exported
from wiseale.objectives import make_objective

_PLACE = "path/to/this/directory"
_READINGS = {
    "values": "numbers as they are",
    "unit": "8-bit pixels divided by 255",
    "threshold": "8-bit pixels, 1 where at least 128",
    "dynamic": "8-bit pixels, 1 where at least 128 (drawn anew at every step of training)",
}


@dataclass(frozen=True)
class Provenance:
    """How a model was trained and evaluated; empty for a model without a run.

    ``measures`` are those of ``wiseale evaluate``, None where it could not measure, on the rows that ``evaluated_on``
    describes: ``"2,000 rows (test)"``.
    """

    settings: TrainConfig | None = None
    prior_weight: float | None = None
    n_train: int | None = None
    n_held_out: int | None = None
    measures: Mapping[str, float | None] = field(default_factory=dict)
    evaluated_on: str = ""

    @property
    def data(self) -> str:
        """What the model was trained on; of a path only the name, because folders may be private."""
        return Path(self.settings.data).name if self.settings else ""

    @property
    def values(self) -> dict[str, float]:
        """Measures that have a value, by name."""
        return {name: value for name, value in self.measures.items() if value is not None}


def model_card(
    name: str, model_config: ModelConfig, known: Provenance, onnx: Exported | None = None, place: str = _PLACE
) -> str:
    """The card's whole text; ``place`` is what users load the model from."""
    objective, _ = config.parse_spec(model_config.objective)
    parts = [
        _header(name, objective, known, onnx),
        f"# {name}",
        f"An auto-encoder that turns {_rows(model_config)} into {model_config.latent_dim} "
        f"code{'s' * (model_config.latent_dim > 1)} and back, trained with `{objective}` by "
        f"[wiseale](https://pypi.org/project/wiseale/) {wiseale.__version__}.",
        _USE,
        "## Model\n\n" + _table(_model_facts(model_config)),
        "## Training data\n\n" + _table(_data_facts(model_config, known)),
        "## Training\n\n" + (_table(_training_facts(known)) or "Not recorded."),
        "## Evaluation\n\n" + _evaluation(known),
        "## How to use it\n\n" + (_onnx_usage(model_config, onnx) if onnx else _USAGE.replace(_PLACE, place)),
    ]
    return "\n\n".join(parts) + "\n"


_USE = """## Intended use

Codes for rows of the kind it was trained on: to look at them, to search and cluster them, to find unusual ones by their
reconstruction error. Rows of another kind get codes too, which mean nothing. What is decoded lacks detail and may
resemble rows of the training data; do not publish it where those are confidential. Nothing was done to remove bias that
the data may carry."""

_USAGE = """```python
from wiseale import load

est = load("path/to/this/directory")
codes = est.transform(X)  # posterior means
X_hat = est.inverse_transform(codes)
errors = est.reconstruction_error(X)
```

```sh
wiseale embed path/to/this/directory data.npy -o codes.npz
```"""


def _header(name: str, objective: str, known: Provenance, onnx: Exported | None) -> str:
    """YAML between rules; every value is written as JSON, which YAML reads."""
    tags = ["wiseale", "autoencoder", "representation-learning", objective, *(["onnx"] if onnx else [])]
    lines = ["library_name: wiseale", "pipeline_tag: feature-extraction", f"tags: {json.dumps(tags)}"]
    if known.values:
        result = {
            "task": {"type": "feature-extraction"},
            "dataset": {"name": known.data or "unknown", "type": known.data or "unknown"},
            "metrics": [{"type": key, "value": value} for key, value in known.values.items()],
        }
        lines.append(f"model-index: {json.dumps([{'name': name, 'results': [result]}], ensure_ascii=False)}")
    return "\n".join(["---", *lines, "---"])


def _rows(model_config: ModelConfig) -> str:
    shape = model_config.space.x_shape
    if len(shape) == 1:
        return f"rows of {shape[0]} number{'s' * (shape[0] > 1)}"
    return f"{'signals' if len(shape) == 2 else 'images'} of shape {shape}"


def _model_facts(model_config: ModelConfig) -> dict[str, str]:
    own_prior, space = make_objective(model_config.objective).own_prior, model_config.space
    facts = {
        "objective": f"`{model_config.objective}`",
        "network": f"`{model_config.network}`",
        "likelihood": f"`{model_config.likelihood}`",
        "codes": f"{model_config.latent_dim}, {'with' if model_config.stochastic else 'without'} standard deviations",
        "prior": "its own, kept with the model" if own_prior else "N(0, I)",
        "input": f"{_rows(model_config)}; {_READINGS[space.reading]}",
    }
    if space.names:
        facts["columns"] = ", ".join(f"`{name}`" for name in space.names)
    return {**facts, "units": "not standardised" if space.scaling == "none" else "standardised inside the model"}


def _data_facts(model_config: ModelConfig, known: Provenance) -> dict[str, str]:
    facts = {"data": known.data, "SHA-256 of its content": model_config.data_fingerprint}
    counts = {"rows trained on": known.n_train, "rows held out": known.n_held_out}
    return {
        **{name: f"`{fact}`" if fact else "not recorded" for name, fact in facts.items()},
        **{name: f"{count:,}" for name, count in counts.items() if count is not None},
    }


def _training_facts(known: Provenance) -> dict[str, str]:
    if known.settings is None:
        return {}
    names = ("batch_size", "max_epochs", "lr", "lr_schedule", "prior_warmup", "patience", "seed", "precision")
    facts = {name: f"`{getattr(known.settings, name)}`" for name in names}
    weight = known.prior_weight
    return facts if weight is None else {**facts, "effective prior weight": f"`{weight:g}`"}


def _evaluation(known: Provenance) -> str:
    if not known.values:
        return "Not evaluated."
    about = f"On {known.evaluated_on}; nats per observation unless the name says otherwise."
    return f"{about}\n\n" + _table({key: f"{value:.6g}" for key, value in known.values.items()})


def _onnx_usage(model_config: ModelConfig, onnx: Exported) -> str:
    shape = ", ".join(["n", *map(str, model_config.space.x_shape)])
    named = ", ".join(onnx.outputs)
    return f"""ONNX operator set {onnx.opset}; checked in onnxruntime when exported: largest error of the encoder
{onnx.encoder_error:.1e}, of the decoder {onnx.decoder_error:.1e}. Any batch size.

```python
import onnxruntime

encoder = onnxruntime.InferenceSession("encoder.onnx")
{named} = encoder.run(None, {{"x": x}}){"[0]" if len(onnx.outputs) == 1 else ""}  # x: float32, ({shape}), as trained on
decoder = onnxruntime.InferenceSession("decoder.onnx")
(x_hat,) = decoder.run(None, {{"z": mu}})  # float32, ({shape}), in the same units
```"""


def _table(facts: dict[str, str]) -> str:
    """Two columns of Markdown; a bar or a line break inside would end the cell."""
    if not facts:
        return ""
    rows = [f"| {key} | {' '.join(value.split()).replace('|', chr(92) + '|')} |" for key, value in facts.items()]
    return "\n".join(["| | |", "|---|---|", *rows])

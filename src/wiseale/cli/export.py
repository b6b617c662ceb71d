"""``wiseale export MODEL --format onnx|model -o PATH``."""

from __future__ import annotations

from pathlib import Path

import click

from wiseale.cli.places import MODEL
from wiseale.errors import ModelFileError


@click.command()
@click.argument("model", type=MODEL)
@click.option("--format", "form", type=click.Choice(["onnx", "model"]), required=True, help="what to write")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="directory to write")
def command(model: Path, form: str, out: Path) -> int:
    """Write a trained MODEL (a run or a model directory) to be used elsewhere, with a model card as README.md.

    onnx: encoder.onnx (x to mu and sigma) and decoder.onnx (z to x_hat), in the units of the training data, compared
    with the model in onnxruntime. model: the weights and settings that wiseale.load and `wiseale embed` read.
    """
    from wiseale.evaluation.provenance import provenance
    from wiseale.models.card import Provenance, model_card
    from wiseale.models.inference import open_codec
    from wiseale.models.model_file import CARD, refuse_to_replace, save_model
    from wiseale.platform.atomic_files import write_text
    from wiseale.runs.directory import RunDirectory

    codec = open_codec(model)
    known = provenance(RunDirectory.open(model)) if (model / "model").is_dir() else Provenance()
    name = out.absolute().name
    try:
        if form == "onnx":
            from wiseale.models.onnx import export_onnx

            exported = export_onnx(codec, out)
            write_text(out / CARD, model_card(name, codec.model_config, known, exported))
        else:
            refuse_to_replace(out)
            save_model(out, codec.model, codec.model_config, {CARD: model_card(name, codec.model_config, known)})
    except OSError as error:
        raise ModelFileError(f"cannot write {out}: {error.strerror or error}") from None
    if form == "onnx":
        print(
            f"opset {exported.opset}; largest error in onnxruntime: encoder {exported.encoder_error:.1e}, "
            f"decoder {exported.decoder_error:.1e}"
        )
    print(f"exported: {out}")
    return 0

"""Trained models: ``wiseale explore RUN|MODEL…``, ``export MODEL --format onnx|model -o PATH`` and ``zoo``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import click

from wiseale.cli.options import DATA, MODEL
from wiseale.cli.progress import loading_bar
from wiseale.errors import ConfigError, ModelFileError, counted


@click.command()
@click.argument("models", type=MODEL, nargs=-1, required=True, metavar="RUN|MODEL|zoo:NAME...")
@click.option("--data", type=DATA, help="other rows to show (default: the run's own test or held-out rows)")
@click.option("--data-root", type=click.Path(path_type=Path), help="where datasets lie [default: $WISEALE_DATA]")
@click.option("--most", type=int, help="rows to show at the most [default: 50,000; 10,000 with --html]")
@click.option("--html", type=click.Path(path_type=Path), help="write one self-contained file instead of serving")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="port to listen on [default: a free one]")
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on; another opens it to others")
@click.option("--browser/--no-browser", default=None, help="open the page [default: on a terminal]")
def explore(
    models: tuple[Path, ...],
    data: str | None,
    data_root: Path | None,
    most: int | None,
    html: Path | None,
    port: int,
    host: str,
    browser: bool | None,
) -> None:
    """Explore the latent space of up to four runs or models on a page in the browser.

    Move through the codes and see them decoded, compare runs row by row, drop rows of your own. A comparison's
    directory shows the first seed of each of its systems; `wiseale zoo` lists models that are installed with wiseale.
    """
    if most is not None and most < 2:
        raise ConfigError(f"--most must be at least 2, got {most}")
    if html is None and not all(importlib.util.find_spec(name) for name in ("starlette", "uvicorn")):
        raise ConfigError("the explorer's server needs packages that are missing: pip install 'wiseale[explore]'")

    from wiseale.explorer import html as single_file
    from wiseale.explorer.opening import MOST_ROWS, choose_rows, expand, open_models, shown_dataset, stored_rows
    from wiseale.explorer.session import make_session

    with loading_bar() as loading:
        most = most or (MOST_ROWS if html is None else single_file.MOST_ROWS)
        panels = open_models(expand(models))
        data = data or shown_dataset(panels)
        rows = stored_rows(panels) if data is None else None
        rows = rows or choose_rows(panels, data, data_root, most, loading)
    with loading_bar("encoding") as encoding:
        session = make_session(panels, rows, encoding)
    if html is not None:
        size = single_file.write_page(session, html)
        print(f"{counted(len(session.shown.rows), 'row')}, {size / 1e6:.1f} MB: {html}")
        return

    from wiseale.explorer.server import serve

    def ready(url: str) -> None:
        print(f"{url}  (Ctrl-C ends it)", flush=True)
        if host not in ("127.0.0.1", "localhost", "::1"):
            print(f"listening on {host}: whoever knows this address can use the models", file=sys.stderr)
        if browser or (browser is None and sys.stdout.isatty()):
            import webbrowser

            webbrowser.open(url)

    serve(session, host, port, ready)


@click.command()
@click.argument("model", type=MODEL)
@click.option("--format", "form", type=click.Choice(["onnx", "model"]), required=True, help="what to write")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="directory to write")
def export(model: Path, form: str, out: Path) -> None:
    """Write a trained MODEL (a run or a model directory) to be used elsewhere, with a model card as README.md.

    onnx: encoder.onnx (x to mu and sigma) and decoder.onnx (z to x_hat), in the units of the training data, compared
    with the model in onnxruntime. model: the weights and settings that wiseale.load and `wiseale embed` read.
    """
    from wiseale.evaluation.record import provenance
    from wiseale.models.card import Provenance, model_card
    from wiseale.models.inference import open_codec
    from wiseale.models.model_file import CARD, refuse_to_replace, save_model
    from wiseale.platform.atomic_files import write_text
    from wiseale.runs.run import Run

    codec = open_codec(model)
    origin = provenance(Run.open(model)) if (model / "model").is_dir() else Provenance()
    name = out.absolute().name
    try:
        if form == "onnx":
            from wiseale.models.onnx import export_onnx

            result = export_onnx(codec, out)
            write_text(out / CARD, model_card(name, codec.model_config, origin, result))
        else:
            refuse_to_replace(out)
            save_model(out, codec.model, codec.model_config, {CARD: model_card(name, codec.model_config, origin)})
    except OSError as error:
        raise ModelFileError(f"cannot write {out}: {error.strerror or error}") from None
    if form == "onnx":
        errors = f"encoder {result.encoder_error:.1e}, decoder {result.decoder_error:.1e}"
        print(f"opset {result.opset}; largest error in onnxruntime: {errors}")
    print(f"exported: {out}")


@click.command()
def zoo() -> None:
    """List the trained models that come with wiseale; use them as zoo:NAME wherever a MODEL is asked for."""
    from rich.console import Console
    from rich.table import Table

    from wiseale.evaluation.record import Evaluation
    from wiseale.models.model_file import CONFIG, read_config
    from wiseale.models.places import zoo_names, zoo_path
    from wiseale.runs.directory import RunDirectory, read

    table = Table("model", "codes", "ELBO", "MSE", "aggregate KL", "bytes", box=None, pad_edge=False)
    for name in zoo_names():
        path = zoo_path(name)
        measures = read(Evaluation.from_json, RunDirectory(path).evaluation).measures
        values = [measures.get(measure) for measure in ("elbo", "mse", "kl_aggregate_mc")]
        size = sum(file.stat().st_size for file in path.iterdir())
        cells = ["–" if value is None else f"{value:.4g}" for value in values]
        table.add_row(f"zoo:{name}", str(read_config(path / CONFIG).latent_dim), *cells, f"{size:,}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print("nats per observation of test rows; try: wiseale explore zoo:mnist-wise_ale zoo:mnist-aevb")

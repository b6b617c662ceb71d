"""``wiseale explore RUN|MODEL…``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import click

from wiseale.cli.options import DATA, MODEL
from wiseale.errors import ConfigError, counted


@click.command()
@click.argument("models", type=MODEL, nargs=-1, required=True, metavar="RUN|MODEL|zoo:NAME...")
@click.option("--data", type=DATA, help="other rows to show (default: the run's own test or held-out rows)")
@click.option("--data-root", type=click.Path(path_type=Path), help="where datasets lie [default: $WISEALE_DATA]")
@click.option("--most", type=int, help="rows to show at the most [default: 50,000; 10,000 with --html]")
@click.option("--html", type=click.Path(path_type=Path), help="write one self-contained file instead of serving")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="port to listen on [default: a free one]")
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on; another opens it to others")
@click.option("--browser/--no-browser", default=None, help="open the page [default: on a terminal]")
def command(
    models: tuple[Path, ...],
    data: str | None,
    data_root: Path | None,
    most: int | None,
    html: Path | None,
    port: int,
    host: str,
    browser: bool | None,
) -> int:
    """Explore the latent space of up to four runs or models on a page in the browser.

    Move through the codes and see them decoded, compare runs row by row, drop rows of your own. A comparison's
    directory shows the first seed of each of its systems; `wiseale zoo` lists models that are installed with wiseale.
    """
    if most is not None and most < 2:
        raise ConfigError(f"--most must be at least 2, got {most}")
    if html is None and not all(importlib.util.find_spec(name) for name in ("starlette", "uvicorn")):
        raise ConfigError("the explorer's server needs packages that are missing: pip install 'wiseale[explore]'")

    from wiseale.cli.progress import loading_bar
    from wiseale.explorer import html as single_file
    from wiseale.explorer.opening import MOST_ROWS, choose_rows, expand, open_models, shown_dataset, stored_rows
    from wiseale.explorer.session import make_session

    with loading_bar() as loading:
        most = most or (MOST_ROWS if html is None else single_file.MOST_ROWS)
        opened = open_models(expand(models))
        data = data or shown_dataset(opened)
        stored = stored_rows(opened) if data is None else None
        shown = stored or choose_rows(opened, data, data_root, most, loading)
    with loading_bar("encoding") as encoding:
        session = make_session(opened, shown, encoding)
    if html is not None:
        size = single_file.write_page(session, html)
        print(f"{counted(len(session.shown.rows), 'row')}, {size / 1e6:.1f} MB: {html}")
        return 0

    from wiseale.explorer.server import serve

    def ready(url: str) -> None:
        print(f"{url}  (Ctrl-C ends it)", flush=True)
        if host not in ("127.0.0.1", "localhost", "::1"):
            print(f"listening on {host}: whoever knows this address can use the models", file=sys.stderr)
        if browser or (browser is None and sys.stdout.isatty()):
            import webbrowser

            webbrowser.open(url)

    serve(session, host, port, ready)
    return 0

"""Rebuild ``docs/results`` and the tables of ``docs/choosing.md`` from kept rows; given directories are added first.

python -m bench.paper                 # `make results`
python -m bench.paper DIR [DIR ...]   # adds the finished runs of `wiseale reproduce … --out DIR`
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from wiseale.errors import WiseAleError
from wiseale.experiments.paper.results import Results
from wiseale.platform.atomic_files import write_text
from wiseale.report.choosing import fill_in
from wiseale.report.markdown import to_markdown
from wiseale.report.results import results_document

DOCS = Path(__file__).parents[1] / "docs"


def rebuild(docs: Path, directories: list[Path]) -> Path:
    """Add the directories, write the page, its figures and the tables on what to choose; returns the page."""
    results = Results(docs / "results")
    for directory in directories:
        results.add(directory)
    results.folder.mkdir(parents=True, exist_ok=True)
    page = results.folder / "index.md"
    write_text(page, to_markdown(results_document(results), results.folder))
    choosing = docs / "choosing.md"
    write_text(choosing, fill_in(choosing.read_text(encoding="utf-8"), results.rows()))
    return page


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.paper", description=__doc__.partition("\n")[0])
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIR", help="directories of `wiseale reproduce`")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the documentation")
    arguments = parser.parse_args()
    try:
        print(rebuild(arguments.docs, arguments.directories))
    except WiseAleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

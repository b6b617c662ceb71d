"""Write the pages that are computed from data: results, what to choose, measures; given directories are added first.

python -m docs.pages                 # `make results`
python -m docs.pages DIR [DIR ...]   # adds the finished runs of `wiseale reproduce … --out DIR`
"""

import argparse
import sys
from pathlib import Path

from docs.pages.choosing import fill_in
from docs.pages.kept import Results
from docs.pages.measures import with_definitions
from docs.pages.results import results_document

from wiseale.errors import WiseAleError
from wiseale.platform.atomic_files import write_text
from wiseale.report.document import to_markdown

DOCS = Path(__file__).parents[1]


def rebuild(docs: Path, directories: list[Path]) -> Path:
    """Add the directories, write the page of results, its figures and the tables of other pages; returns the page."""
    results = Results(docs / "results")
    for directory in directories:
        results.add(directory)
    results.folder.mkdir(parents=True, exist_ok=True)
    page = results.folder / "index.md"
    write_text(page, to_markdown(results_document(results), results.folder))
    tables = {"choosing.md": lambda text: fill_in(text, results.rows()), "measures.md": with_definitions}
    for name, filled in tables.items():
        if (docs / name).exists():
            write_text(docs / name, filled((docs / name).read_text(encoding="utf-8")))
    return page


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m docs.pages", description=__doc__.partition("\n")[0])
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

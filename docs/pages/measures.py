"""The tables of docs/measures.md, from the definitions in the package."""

from docs.pages.blocks import fill_in

from wiseale.errors import RunError
from wiseale.evaluation.measures import MEASURES, NOTATION


def with_definitions(page: str) -> str:
    """The page with a table of every group of measures; a group that is not defined is refused."""
    return fill_in(page, "measures", _table)


def _table(group: str) -> str:
    if group == "notation":
        return f"Notation: {NOTATION}"
    if group not in MEASURES:
        raise RunError(f"no measures of {group!r}: known are {', '.join(MEASURES)}")
    rows = [("measure", "definition", "unit", "better"), ("---",) * 4]
    rows += [(f"`{one.name}`", one.definition.replace("|", r"\|"), one.unit, one.better) for one in MEASURES[group]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)

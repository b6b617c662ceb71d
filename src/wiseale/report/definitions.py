"""What the measures of a report mean: the definitions of docs/measures.md, which is part of the installed package.

The page is written once, in ``docs``; the wheel holds a copy beside this file (``force-include`` in pyproject.toml).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from wiseale.report.document import Definitions

_INSTALLED = Path(__file__).with_name("measures.md")
_IN_THE_REPOSITORY = Path(__file__).parents[3] / "docs" / "measures.md"

_ENTRY = re.compile(r"^(?:### (?P<heading>.+)|\*\*(?P<names>`.+?)\*\*[,:]?(?P<rest>.*))$", re.M)
_PLACES = {"NAME": ".+", "FACTOR": ".+", "Q": "[1-4]"}
"""Parts of a defined name that stand for a column, a factor or the number of a quarter."""


def definitions(names: Iterable[str]) -> tuple[Definitions, ...]:
    """The notation and the definitions of these measures in the document's order; nothing if it is not there."""
    names = list(names)
    found = [(", ".join(known), text) for known, text in _entries() if any(_matches(known, name) for name in names)]
    return (Definitions("What each measure means", (*_notation(), *found)),) if found else ()


@cache
def _document() -> str:
    """The text of the document; empty if it is not there."""
    page = next((page for page in (_INSTALLED, _IN_THE_REPOSITORY) if page.exists()), None)
    return "" if page is None else page.read_text(encoding="utf-8")


def _notation() -> tuple[tuple[str, str], ...]:
    """The paragraph that explains the symbols of the definitions."""
    found = re.search(r"^Notation: (.+?)\n\n", _document(), re.M | re.S)
    return (("Notation", _plain(found[1])),) if found else ()


@cache
def _entries() -> tuple[tuple[tuple[str, ...], str], ...]:
    """The names that an entry defines, and its text without marks of Markdown."""
    text = _document()
    marks = [*_ENTRY.finditer(text)]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    entries = []
    for mark, end in zip(marks, ends, strict=True):
        body = (mark["rest"] or "") + re.split(r"^## ", text[mark.end() : end], maxsplit=1, flags=re.M)[0]
        entries.append((tuple(re.findall(r"`([^`]+)`", mark["heading"] or mark["names"])), _plain(body)))
    return tuple(entries)


def _matches(known: tuple[str, ...], name: str) -> bool:
    patterns = (re.sub("NAME|FACTOR|Q$", lambda part: _PLACES[part[0]], one) for one in known)
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _plain(markdown: str) -> str:
    r"""Markdown as one line of text: without code marks, emphasis and the addresses of links.

    >>> _plain("As `mse`, see [the page](a.md#b),\nfrom **z** = μ.")
    'As mse, see the page, from z = μ.'
    """
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", markdown)
    return " ".join(text.replace("`", "").replace("**", "").split())

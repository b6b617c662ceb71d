"""Blocks of a page that are written by a program, between two comment lines; the text around them is written by hand.

<!-- results: weights sine -->
…
<!-- end -->
"""

import re
from collections.abc import Callable

from wiseale.errors import RunError


def fill_in(page: str, mark: str, content: Callable[[str], str]) -> str:
    r"""The page with every block of a mark replaced by its content; a block without an end is refused.

    >>> fill_in("<!-- sum: 1 2 -->\nstale\n<!-- end -->", "sum", lambda items: str(sum(map(int, items.split()))))
    '<!-- sum: 1 2 -->\n\n3\n\n<!-- end -->'
    """
    block = re.compile(rf"(<!-- {mark}: (?P<name>[^\n]*) -->\n)(?P<old>.*?)(<!-- end -->|\Z)", re.S)

    def replacement(match: re.Match[str]) -> str:
        if not match[4] or f"<!-- {mark}:" in match["old"]:
            raise RunError(f"the table '<!-- {mark}: {match['name']} -->' has no end: write <!-- end --> below it")
        return f"{match[1]}\n{content(match['name'])}\n\n{match[4]}"

    return block.sub(replacement, page)

"""Check the built site offline: `python docs/check_links.py docs/_build/html` lists every broken link and exits with 1.

Every relative link, picture, script and style must exist, every `#anchor` too, and nothing may be loaded from another
host (links to other sites are allowed, and not followed). Relative links in the repository's README and other Markdown
files are checked too.
"""

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    ("img", "src"),
    ("script", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "srcset"),
    ("img", "srcset"),
}
NOT_LOADED = {"canonical", "search", "index", "next", "prev", "genindex"}  # <link rel=…> that only names a page
MARKDOWN_LINK = re.compile(r"\]\(([^)\s]+)\)")


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[tuple[str, bool]] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        """Collect ids, and addresses with whether the browser loads them by itself."""
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        for name in ("href", "src", "srcset"):
            loads = (tag, name) in LOADED and given.get("rel") not in NOT_LOADED
            addresses = given.get(name) or ""
            for address in addresses.split(",") if name == "srcset" else [addresses]:
                if address.strip():
                    self.links.add((address.strip().split(" ")[0], loads))


@cache
def read(path: Path) -> Page:
    """A page, parsed once."""
    return Page(path)


def fault(page: Path, address: str, loads: bool) -> str | None:
    """What is wrong with a link on a page, or None."""
    parts = urlsplit(address)
    if parts.scheme in ("data", "mailto", "javascript"):
        return None
    if parts.scheme or parts.netloc:
        return "is loaded from another host" if loads else None
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir() and page.suffix == ".html":
        target /= "index.html"
    if not target.exists():
        return "does not exist"
    if parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read(target).anchors:
        return "has no such anchor"
    return None


def main(site: Path) -> int:
    """Check the site, and the Markdown files of the repository."""
    faults, count = [], 0
    for path in sorted(site.rglob("*.html")):
        if "_static" in path.parts:
            continue
        for address, loads in sorted(read(path).links):
            count += 1
            if wrong := fault(path, address, loads):
                faults.append(f"{path.relative_to(site)}: {address} {wrong}")
    root = Path(__file__).parents[1]
    for path in sorted(root.glob("*.md")):
        for address in MARKDOWN_LINK.findall(path.read_text(encoding="utf-8")):
            count += 1
            if wrong := fault(path, address, loads=False):
                faults.append(f"{path.name}: {address} {wrong}")
    print(*faults, f"{count} links checked, {len(faults)} broken", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))

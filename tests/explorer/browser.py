"""Headless Chromium for the tests of the page, or the reason why there is none."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)

MISSING = (
    "playwright is not installed (pip install playwright)"
    if importlib.util.find_spec("playwright") is None
    else "" if CHROMIUM else "no Chromium found (apt-get install chromium)"
)  # fmt: skip


@dataclass
class Watch:
    """What must not happen on a page: errors in the console, and requests to other hosts."""

    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def follow(self, page: Any) -> None:
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._note(request.url))

    def _note(self, url: str) -> None:
        if not url.startswith(("data:", "blob:")):
            self.hosts.add("/".join(url.split("/")[:3]))


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    # WebGL in software; pages are composited without a GPU, as on a machine that has none.
    options = ["--no-sandbox", "--enable-unsafe-swiftshader"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options, timeout=120_000)
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Any, url: str, *, width: int = 1280, height: int = 860, allow: str = "", **options: Any
) -> Iterator[Any]:
    """A page that has loaded the explorer.

    At the end it must have made no error, except those that hold ``allow``, and asked no other host.
    """
    context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **options)
    page, watch = context.new_page(), Watch()
    watch.follow(page)
    page.set_default_timeout(40_000)  # of a crowded machine; usually a moment
    try:
        page.goto(url)
        page.wait_for_selector("html[data-ready]")
        yield page
        assert [error for error in watch.errors if not allow or allow not in error] == []
        assert watch.hosts <= {"/".join(url.split("/")[:3])}
    finally:
        context.close()


def middle(page: Any, selector: str = ".stage", at: tuple[float, float] = (0.5, 0.5)) -> tuple[float, float]:
    """A point of an element, in pixels of the page."""
    box = page.locator(selector).first.bounding_box()
    return box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"]


def pixels(page: Any, selector: str) -> str:
    """The content of a canvas."""
    return page.locator(selector).first.evaluate("canvas => canvas.toDataURL()")


def decoded_after(page: Any, act: Any, selector: str = "#cursor-x canvas") -> str:
    """The decoded picture once ``act`` has changed it."""
    before = pixels(page, selector)
    act()
    page.wait_for_function(
        "([selector, before]) => document.querySelector(selector).toDataURL() !== before", arg=[selector, before]
    )
    return pixels(page, selector)


def has_count(page: Any, selector: str, n: int) -> None:
    """Wait until so many elements match."""
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_have_count(int(n), timeout=40_000)


def drop(page, name, content):
    """Drop a file on the page."""
    page.evaluate(
        """([name, bytes]) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], name));
            document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        [name, list(content)],
    )


def serious_findings(page: Any) -> list[str]:
    """What axe-core calls serious or critical."""
    import axe_playwright_python

    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate((files(axe_playwright_python) / "axe.min.js").read_text(encoding="utf-8"))
    return [
        f"{one['id']}: {node['html'][:120]}"
        for one in page.evaluate("axe.run()")["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]

"""Several runs on one page in headless Chromium: the same rows in all, and what every page must be."""

import shutil

import numpy as np
import pytest
from PIL import Image
from tests.explorer.browser import decoded_after, has_count, middle, opened, serious_findings
from tests.explorer.conftest import open_session
from tests.explorer.local_server import local_server


@pytest.fixture(scope="module")
def compared(image_run, other_run):
    with local_server(open_session(image_run, other_run)) as server:
        yield server.url


def test_runs_are_linked_by_row(browser, compared):
    with opened(browser, compared) as page:
        has_count(page, ".panel", 2)
        page.locator(".stage").nth(1).focus()
        page.keyboard.press("n")
        page.wait_for_selector("#row-x figure >> nth=2")
        captions = page.locator("#row-x figcaption").all_text_contents()
        assert captions == ["original", "A", "B"]
        has_count(page, "[data-mark=hover]", 2)
        page.wait_for_function("() => document.querySelector('#cursor-title').textContent.includes('by B')")
        page.keyboard.press("s")
        page.wait_for_function("() => document.querySelector('#tab-selection').textContent.includes('1')")
        page.click("#tab-measures")
        page.wait_for_function(
            "() => document.querySelector('#panel-measures').textContent.includes('wiseale evaluate')"
        )


@pytest.fixture(scope="module")
def four(image_run, other_run, folder):
    """Four runs; the last two are copies of the first two under other names."""
    copies = [shutil.copytree(run, folder / f"{run.name}-copy", dirs_exist_ok=True) for run in (image_run, other_run)]
    with local_server(open_session(image_run, other_run, *copies)) as server:
        yield server.url


def test_four_runs_share_rows_selection_and_view(browser, four):
    with opened(browser, four) as page:
        has_count(page, ".panel", 4)
        assert page.locator(".letter").all_text_contents() == ["A", "B", "C", "D"]
        page.locator(".stage").nth(3).focus()
        page.keyboard.press("n")
        has_count(page, "[data-mark=hover]", 4)
        has_count(page, "#row-x figure", 5)  # the original and four reconstructions
        pictures = page.eval_on_selector_all("#row-x canvas", "all => all.map((one) => one.toDataURL())")
        assert pictures[1] == pictures[3] != pictures[2]  # C decodes as A, of which it is a copy
        decoded_after(page, lambda: page.mouse.move(*middle(page, ".stage >> nth=2", (0.4, 0.4))))
        assert "by C" in page.text_content("#cursor-title")
        page.click("#legend button >> nth=0")
        page.wait_for_function("() => document.querySelector('#tab-selection').textContent.includes('(')")
        groups = "document.querySelectorAll('.stage svg g[transform^=translate]')"
        windows = f"[...{groups}].map((group) => group.getAttribute('transform'))"
        before = page.evaluate(windows)
        assert len(before) == 4
        page.click("#zoom-in")
        page.wait_for_function(f"before => {windows}.every((now) => now !== before)", arg=before[0])
        assert len(set(page.evaluate(windows))) == 1  # one window for all


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, compared, scheme):
    with opened(browser, compared, color_scheme=scheme) as page:
        page.mouse.move(*middle(page))
        page.mouse.click(*middle(page))
        page.wait_for_selector("#pins li")
        for tab in ("traversal", "samples", "selection", "measures") if scheme == "light" else ("samples",):
            page.click(f"#tab-{tab}")
            page.wait_for_timeout(150)
            assert serious_findings(page) == []


def test_pictures_are_saved(browser, compared):
    with opened(browser, compared) as page:
        with page.expect_download() as download:
            page.click("#save-svg")
        svg = download.value.path().read_text(encoding="utf-8")
        assert svg.count("<image") == 2  # the points of two panels
        assert "z1" in svg
        with page.expect_download() as download:
            page.click("#save-png")
        saved = Image.open(download.value.path())
        assert saved.width > 1500
        assert len(np.unique(np.asarray(saved.convert("RGB"))[::5, ::5].reshape(-1, 3), axis=0)) > 50

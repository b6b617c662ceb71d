"""The page in headless Chromium, from end to end; each page must make no error and ask no other host."""

import io
import re

import numpy as np
import pytest
from PIL import Image
from tests.explorer.browser import decoded_after, drop, has_count, middle, opened
from tests.explorer.conftest import open_session
from tests.explorer.local_server import local_server

from wiseale.explorer.html import write_page


@pytest.fixture(scope="module")
def images(image_session):
    with local_server(image_session) as server:
        yield server.url


@pytest.mark.parametrize("renderer", ["webgl", "canvas"])
def test_points_are_drawn_and_hovering_shows_what_the_model_decodes(browser, images, image_session, renderer):
    url = f"{images}?renderer=canvas" if renderer == "canvas" else images
    with opened(browser, url) as page:
        assert page.locator(".panel").get_attribute("data-renderer") == renderer
        assert "600 rows" in page.text_content("#about")
        coloured = page.locator(".stage canvas").first.screenshot()
        shown = np.asarray(Image.open(io.BytesIO(coloured)).convert("RGB")).astype(int)
        orange = np.abs(shown - (255, 169, 14)).sum(axis=2) < 60  # the second class's colour
        assert orange.sum() > 20
        first = decoded_after(page, lambda: page.mouse.move(*middle(page, at=(0.4, 0.35))))
        second = decoded_after(page, lambda: page.mouse.move(*middle(page, at=(0.6, 0.4))))
        assert first != second
        shown, expected = shown_and_expected(page, image_session)
        assert np.abs(shown - expected).max() <= 2  # codes are written to the page with three decimals


def shown_and_expected(page, session):
    """Grey levels of the decoded picture, and those the model gives for the code on the page."""
    z = np.array([[float(value) for value in page.get_attribute("#cursor-x", "data-code").split()]], np.float32)
    read = "canvas => [...canvas.getContext('2d').getImageData(0, 0, 12, 12).data]"
    shown = np.array(page.eval_on_selector("#cursor-x canvas", read)).reshape(12, 12, 4)[..., 0]
    return shown, np.clip(session.runs[0].codec.decode(z)[0, 0], 0, 1) * 255


def test_a_hovered_row_shows_its_original_and_its_posterior(browser, images, image_session):
    with opened(browser, images) as page:
        page.locator(".stage").focus()
        page.keyboard.press("n")
        page.wait_for_selector("#row-x canvas")
        row = int(re.search(r"\d+", page.text_content("#row-title"))[0]) - 1  # people count rows from 1
        assert row in image_session.shown.numbers
        label = image_session.shown.rows.factors["quarter"][list(image_session.shown.numbers).index(row)]
        assert f"quarter {label}" in page.text_content("#row-facts")
        has_count(page, "#row-x canvas", 2)
        has_count(page, ".stage svg ellipse", 2)  # 1σ and 2σ


def test_pins_make_a_path_that_plays(browser, images):
    with opened(browser, images) as page:
        for at in ((0.4, 0.5), (0.65, 0.45)):
            page.mouse.move(*middle(page, at=at))
            page.mouse.click(*middle(page, at=at))
        page.wait_for_selector("#path-strip button >> nth=8")
        has_count(page, "#pins li", 2)
        has_count(page, "[data-mark=pin]", 2)
        decoded_after(page, lambda: page.click("#play"))
        assert page.get_attribute("#play", "aria-pressed") == "true"
        page.click("#play")
        page.click("#pins li >> nth=0 >> text=✕")
        page.wait_for_selector("#path", state="hidden")


def test_the_address_brings_back_the_same_view(browser, images):
    with opened(browser, images) as page:
        page.mouse.move(*middle(page, at=(0.45, 0.55)))
        page.mouse.click(*middle(page, at=(0.45, 0.55)))
        page.select_option("#colour", "error")
        page.click("#layer-prior")
        page.click("#zoom-in")
        page.wait_for_function("() => location.hash.includes('pin=') && location.hash.includes('colour=error')")
        page.wait_for_timeout(400)
        address, code = page.url, page.get_attribute("#cursor-x", "data-code")
    with opened(browser, address) as page:
        page.wait_for_selector("#pins li")
        assert page.get_attribute("#cursor-x", "data-code") == code
        assert page.input_value("#colour") == "error"
        assert page.get_attribute("#layer-prior", "aria-pressed") == "false"
        has_count(page, "circle[data-layer=prior]", 0)


def test_selected_rows_are_listed(browser, images, image_session):
    with opened(browser, images) as page:
        page.click("#legend button >> nth=1")
        page.click("#tab-selection")
        quarter = image_session.shown.rows.factors["quarter"]
        page.wait_for_selector("#panel-selection tbody tr")
        has_count(page, "#panel-selection tbody tr", (quarter == 1).sum())
        listed = [int(text) for text in page.locator("#panel-selection tbody th").all_text_contents()]
        assert listed == [number + 1 for number in image_session.shown.numbers[quarter == 1]]
        page.locator(".stage").focus()
        page.keyboard.press("Escape")
        page.wait_for_selector("#panel-selection tbody tr", state="detached")
        left, right = middle(page, at=(0.02, 0.02)), middle(page, at=(0.98, 0.98))
        page.keyboard.down("Shift")
        page.mouse.move(*left)
        page.mouse.down()
        for corner in ((right[0], left[1]), right, (left[0], right[1])):
            page.mouse.move(*corner)
        page.mouse.up()
        page.keyboard.up("Shift")
        page.wait_for_selector("#panel-selection tbody tr >> nth=55")


def test_four_dimensions_have_principal_components_axes_and_sliders(browser, signal_run):
    with local_server(open_session(signal_run, most=500)) as server, opened(browser, server.url) as page:
        assert "500 of 10,000 test rows shown" in page.text_content("#about")
        assert "PC 1 (" in page.locator(".stage svg").first.text_content()
        page.select_option("#axes", "1,3")
        page.wait_for_function("() => document.querySelector('.stage svg').textContent.includes('z4')")
        page.mouse.move(*middle(page))
        page.wait_for_selector(".sliders input >> nth=3")
        decoded_after(page, lambda: page.locator(".sliders input").nth(2).fill("3"))
        assert page.get_attribute("#cursor-x", "data-code").split()[2] == "3.000"
        page.click("#layer-pictures")
        page.wait_for_selector(".stage canvas >> nth=1")  # visible only with pictures


@pytest.mark.parametrize("kind", ["png", "npy"])
def test_a_dropped_file_is_encoded(browser, images, image_session, kind):
    image = np.full((12, 12), 20, np.uint8)
    image[2:6, 2:6] = 220
    file = io.BytesIO()
    if kind == "png":
        Image.fromarray(image).save(file, "PNG")
    else:
        np.save(file, image[None, None])
    with opened(browser, images) as page:
        drop(page, f"mine.{kind}", file.getvalue())
        page.wait_for_selector("[data-mark=own]")
        has_count(page, "#own-rows canvas", 2)
        expected = image_session.runs[0].codec.encode(image[None, None], error=True)
        assert f"{expected.error[0]:.3g}" in page.text_content("#own-rows")
        z = [float(value) for value in page.get_attribute("#cursor-x", "data-code").split()]
        assert np.allclose(z, expected.mu[0], atol=2e-3)


def test_a_dropped_row_of_a_table_is_encoded_and_a_bad_one_is_refused_in_words(browser, table_run):
    with local_server(open_session(table_run)) as server, opened(browser, server.url, allow="422") as page:
        drop(page, "row.csv", b"quantity,price\n190,44.5\n")
        page.wait_for_selector("[data-mark=own]")
        cells = page.locator("#own-rows td").all_text_contents()
        assert "44.50" in cells  # found by its name, in the user's units
        drop(page, "row.csv", b"quantity,price\n190,\n")
        page.wait_for_function("() => document.querySelector('#message').textContent.includes('price')")


def test_everything_works_with_the_keyboard_alone(browser, images):
    with opened(browser, images) as page:
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
        controls = {
            "axes",
            "colour",
            "layer-aggregate",
            "zoom-all",
            "stage",
            "tab-traversal",
            "pin",
            "theme",
            "save-png",
        }
        assert controls <= reached
        page.locator(".stage").focus()
        for key in ("ArrowRight", "ArrowUp", "Shift+ArrowLeft"):
            decoded_after(page, lambda key=key: page.keyboard.press(key))
        page.wait_for_function("() => document.querySelector('#live').textContent.includes('z =')")
        page.keyboard.press("Enter")
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_selector("#path-strip button")
        page.keyboard.press("Space")
        page.wait_for_selector("#play[aria-pressed=true]")


def test_a_phone_needs_no_sideways_scrolling(browser, images):
    with opened(browser, images, width=400, height=800, has_touch=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        decoded_after(page, lambda: page.touchscreen.tap(*middle(page, at=(0.6, 0.55))))


@pytest.mark.parametrize("held", ["network", "stored decodes"])
def test_one_file_works_without_a_server(browser, image_run, other_run, tmp_path, monkeypatch, held):
    if held == "stored decodes":
        monkeypatch.setattr("wiseale.explorer.html.MAX_MULTIPLY_ADDS", 0)
    session = open_session(image_run, other_run)
    write_page(session, tmp_path / "page.html")
    with opened(browser, (tmp_path / "page.html").as_uri()) as page:
        decoded_after(page, lambda: page.mouse.move(*middle(page, at=(0.5, 0.55))))
        page.wait_for_timeout(100)
        shown, expected = shown_and_expected(page, session)
        assert np.abs(shown - expected).mean() < (0.7 if held == "network" else 3)  # rounded, or interpolated
        assert ("does not hold the network" in page.text_content("#decode-note")) == (held == "stored decodes")
        page.locator(".stage").nth(1).focus()
        page.keyboard.press("n")
        page.wait_for_selector("#row-x figure >> nth=2")
        has_count(page, "[data-mark=hover]", 2)
        page.wait_for_selector("path[data-layer=aggregate]")
        drop(page, "mine.npy", b"x")
        page.wait_for_function("() => document.querySelector('#message').textContent.includes('no encoder')")


def test_a_code_that_cannot_be_decoded_is_told_in_words(browser, images):
    with opened(browser, f"{images}#code=0:9000000,0", allow="422") as page:
        page.wait_for_function("() => document.querySelector('#message').textContent.includes('far outside')")


def test_one_finger_moves_the_code_and_two_pan_and_zoom(browser, images):
    with opened(browser, images, width=400, height=800, has_touch=True) as page:
        fingers = Fingers(page)
        x, y = middle(page)
        before = page.url
        decoded_after(page, lambda: fingers.drag([(x, y)], [(x + 60, y - 40)]))
        page.wait_for_function("before => location.href !== before", arg=before)
        span = shown_span(page)
        fingers.drag([(x - 30, y), (x + 30, y)], [(x - 90, y), (x + 90, y)])
        page.wait_for_function(f"() => {SPAN} < {span / 2.5}")  # fingers three times as far apart
        assert abs(shown_span(page) - span / 3) < 0.02 * span


SPAN = "Number(new URLSearchParams(location.hash.slice(1)).get('view').split(',')[2])"


def shown_span(page):
    """Units across the map, as the address tells them."""
    page.wait_for_function("() => location.hash.includes('view=')")
    return page.evaluate(SPAN)


class Fingers:
    """Touches of a page, which Playwright itself has only as taps."""

    def __init__(self, page):
        self._session = page.context.new_cdp_session(page)

    def drag(self, start, end, steps=8):
        """Move each finger along a straight line."""
        self._touch("touchStart", start)
        for k in range(1, steps + 1):
            part = k / steps
            self._touch(
                "touchMove",
                [(a + part * (c - a), b + part * (d - b)) for (a, b), (c, d) in zip(start, end, strict=True)],
            )
        self._touch("touchEnd", [])

    def _touch(self, kind, points):
        touches = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

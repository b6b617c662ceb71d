from __future__ import annotations

import io
import tracemalloc
import zlib
from functools import partial

import numpy as np
import pytest
from PIL import Image
from tests.data.image_samples import photograph, png_claiming, resized_by_torch

from wiseale.data.images.decode import BadImageError, Form, decode, read_member


def encoded(image: Image.Image, kind: str = "PNG", **options) -> io.BytesIO:
    file = io.BytesIO()
    image.save(file, kind, **options)
    file.seek(0)
    return file


def decoded(file: io.BytesIO, size: int = 64, crop: int | None = None, channels: int = 3) -> np.ndarray:
    """(size, size, channels)."""
    rows = decode(file, Form(size, crop, channels))
    return np.frombuffer(rows, np.uint8).reshape(channels, size, size).transpose(1, 2, 0)


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    return 10 * np.log10(255**2 / np.mean((a.astype(float) - b) ** 2))


PIXELS = photograph(0, 64, 64)
GREY = PIXELS @ np.array([0.299, 0.587, 0.114])


@pytest.mark.parametrize(
    ("width", "height", "crop"), [(178, 218, 178), (225, 275, 178), (183, 275, 178), (275, 201, 64)]
)
def test_the_centred_square_is_resized_as_torch_does(width, height, crop):
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    left, top = (width - crop) // 2, (height - crop) // 2
    expected = resized_by_torch(pixels[top : top + crop, left : left + crop], 64)
    assert np.abs(decoded(encoded(Image.fromarray(pixels)), crop=crop) - expected).max() <= 1.0


def test_without_a_crop_the_largest_square_is_taken():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 91, 3), np.uint8)
    np.testing.assert_array_equal(decoded(encoded(Image.fromarray(pixels))), pixels[:, 13:77])


def test_grey_images_get_equal_channels_and_colour_its_luma():
    grey = PIXELS[..., 0]
    np.testing.assert_array_equal(decoded(encoded(Image.fromarray(grey))), np.stack([grey] * 3, -1))
    np.testing.assert_array_equal(decoded(encoded(Image.fromarray(grey)), channels=1)[..., 0], grey)
    assert np.abs(decoded(encoded(Image.fromarray(PIXELS)), channels=1)[..., 0] - GREY).max() <= 1


def test_the_content_counts_not_the_name(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "really-a-png.jpg", "PNG")
    rows = decode(str(tmp_path / "really-a-png.jpg"), Form(64, None, 3))
    np.testing.assert_array_equal(np.frombuffer(rows, np.uint8).reshape(3, 64, 64).transpose(1, 2, 0), PIXELS)


def test_black_and_white_images_are_0_and_255():
    bits = np.random.default_rng(0).integers(0, 2, (64, 64)).astype(bool)
    np.testing.assert_array_equal(decoded(encoded(Image.fromarray(bits)), channels=1)[..., 0], bits * 255)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
@pytest.mark.parametrize("channels", [1, 3])
def test_sixteen_bits_are_scaled_not_clipped(kind, channels):
    values = np.random.default_rng(0).integers(0, 65536, (64, 64)).astype(np.uint16)
    result = decoded(encoded(Image.fromarray(values), kind), channels=channels)
    for channel in range(channels):
        np.testing.assert_array_equal(result[..., channel], np.rint(values / 257))


def test_palettes_are_looked_up():
    paletted = Image.fromarray(PIXELS).quantize(32)
    np.testing.assert_array_equal(decoded(encoded(paletted)), np.asarray(paletted.convert("RGB")))
    indices, colours = np.asarray(paletted), np.array(paletted.getpalette()).reshape(-1, 3)
    np.testing.assert_array_equal(decoded(encoded(paletted)), colours[indices])


def test_transparency_is_laid_on_white():
    alpha = np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    on_white = PIXELS * (alpha / 255)[..., None] + 255 * (1 - alpha / 255)[..., None]
    rgba = Image.fromarray(np.dstack([PIXELS, alpha]))
    assert np.abs(decoded(encoded(rgba)) - on_white).max() <= 1
    grey = Image.fromarray(np.dstack([PIXELS[..., 0], alpha]))
    assert np.abs(decoded(encoded(grey), channels=1)[..., 0] - on_white[..., 0]).max() <= 1


def test_transparent_colours_do_not_bleed_when_resized():
    """A fully transparent half, whatever colour it hides, is white after resizing."""
    pixels = np.zeros((128, 128, 4), np.uint8)
    pixels[:, 64:, 3] = 255  # black, opaque on the right, invisible on the left
    result = decoded(encoded(Image.fromarray(pixels)))
    assert (result[:, :31] == 255).all()
    assert (result[:, 33:] == 0).all()


def test_palette_and_key_colour_transparency_are_white_too():
    indices = np.zeros((64, 64), np.uint8)
    indices[:, 32:] = 1
    paletted = Image.fromarray(indices)
    paletted.putpalette([10, 20, 30, 200, 100, 50])
    keyed = Image.fromarray(np.array([[10, 20, 30], [200, 100, 50]], np.uint8)[indices])
    for file in (
        encoded(paletted, transparency=0),
        encoded(paletted, "GIF", transparency=0),
        encoded(keyed, transparency=(10, 20, 30)),
    ):
        result = decoded(file)
        assert (result[:, :32] == 255).all()
        assert (result[:, 32:] == [200, 100, 50]).all()


def test_cmyk_becomes_rgb():
    inks = np.random.default_rng(0).integers(0, 256, (64, 64, 4), np.uint8)
    expected = (255 - inks[..., :3].astype(float)) * (255 - inks[..., 3:]) / 255
    result = decoded(encoded(Image.fromarray(inks, "CMYK"), "TIFF"))
    assert np.abs(result - expected).max() <= 1


def test_cmyk_jpegs_are_not_inverted():
    file = encoded(Image.new("CMYK", (64, 64), (0, 255, 255, 0)), "JPEG")
    assert np.abs(decoded(file).astype(int) - [255, 0, 0]).max() <= 3


# EXIF 2.3, 4.6.4: where row 0 and column 0 of the stored image are on the upright one.
STORED = {
    1: lambda x: x,
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.swapaxes(0, 1),
    6: lambda x: np.rot90(x, 1),
    7: lambda x: x[::-1, ::-1].swapaxes(0, 1),
    8: lambda x: np.rot90(x, -1),
}


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_images_are_turned_upright_before_the_crop(orientation, kind):
    upright = np.random.default_rng(0).integers(0, 256, (91, 64, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](upright)))
    file = encoded(stored, kind, exif=exif, **({"lossless": True} if kind == "WEBP" else {}))
    np.testing.assert_array_equal(decoded(file), upright[13:77])


def test_a_damaged_exif_note_is_no_damage_to_the_image():
    file = encoded(Image.fromarray(PIXELS), exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    np.testing.assert_array_equal(decoded(file), PIXELS)


@pytest.mark.parametrize(("width", "height"), [(1203, 1601), (2050, 2051)])
@pytest.mark.parametrize("orientation", [1, 6])
def test_large_jpegs_decoded_at_a_fraction_are_as_good(width, height, orientation):
    """Noise, worse than any photograph, against all its pixels resized by torch: nearer than a crop 2 pixels off."""
    fine = np.random.default_rng(0).integers(0, 256, (height // 8, width // 8, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = Image.fromarray(fine).resize((width, height), Image.Resampling.BICUBIC)
    file = encoded(picture, "JPEG", quality=90, exif=exif)
    pixels = np.asarray(Image.open(file))
    if orientation == 6:
        pixels = np.rot90(pixels, -1)
    for crop in (None, 1101):
        side = crop or min(width, height)
        top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
        expected = resized_by_torch(pixels[top : top + side, left : left + side], 64)
        off_by_two = resized_by_torch(pixels[top + 2 : top + side, left : left + side - 2], 64)
        assert psnr(decoded(file, crop=crop), expected) > max(43, psnr(off_by_two, expected))


def test_jpegs_near_the_size_asked_for_are_decoded_in_full():
    pixels = np.random.default_rng(0).integers(0, 256, (275, 225, 3), np.uint8)
    file = encoded(Image.fromarray(pixels), "JPEG", quality=95)
    full = np.asarray(Image.open(file))
    assert np.abs(decoded(file, crop=178) - resized_by_torch(full[48:226, 23:201], 64)).max() <= 1


def truncated(image: Image.Image, kind: str, part: float) -> io.BytesIO:
    content = encoded(image, kind).getvalue()
    return io.BytesIO(content[: int(len(content) * part)])


BIG = Image.fromarray(photograph(1, 200, 200))
BAD = {
    "empty": (lambda: io.BytesIO(b""), "not an image"),
    "text": (lambda: io.BytesIO(b"hello " * 1000), "not an image"),
    "cut jpeg": (partial(truncated, BIG, "JPEG", 0.6), "cut short"),
    "jpeg header": (lambda: io.BytesIO(encoded(BIG, "JPEG").getvalue()[:300]), ""),
    "cut png": (partial(truncated, BIG, "PNG", 0.6), "cut short"),
    "cut tiff": (partial(truncated, BIG, "TIFF", 0.6), ""),
    "cut webp": (partial(truncated, BIG, "WEBP", 0.6), ""),
    "cut gif": (partial(truncated, BIG, "GIF", 0.6), "cut short"),
    "cut bmp": (partial(truncated, BIG, "BMP", 0.6), "cut short"),
    "small": (lambda: encoded(Image.new("RGB", (63, 900))), "63×900, smaller than size 64"),
    "one pixel": (lambda: encoded(Image.new("RGB", (1, 1))), "1×1, smaller than size 64"),
    "float": (lambda: encoded(Image.new("F", (80, 80)), "TIFF"), "32-bit pixels"),
    "integer": (lambda: encoded(Image.new("I", (80, 80)), "TIFF"), "32-bit pixels"),
    "bomb": (lambda: io.BytesIO(png_claiming(60_000, 60_000)), "claims more than 67,108,864 pixels"),
    "small bomb": (lambda: io.BytesIO(png_claiming(9000, 8000)), "claims 9000×8000 pixels, more than 67,108,864"),
    "postscript": (lambda: encoded(BIG, "EPS"), "not an image"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_images_say_why_in_a_few_words(kind):
    make, message = BAD[kind]
    with pytest.raises(BadImageError) as caught:
        decoded(make())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 100


def test_an_explicit_crop_may_be_smaller_than_the_size_and_never_larger_than_the_image():
    assert decoded(encoded(Image.fromarray(PIXELS)), size=64, crop=32).shape == (64, 64, 3)
    with pytest.raises(BadImageError, match="64×64, smaller than crop 65"):
        decoded(encoded(Image.fromarray(PIXELS)), size=16, crop=65)


def deflated(content: bytes) -> bytes:
    press = zlib.compressobj(wbits=-15)
    return press.compress(content) + press.flush()


@pytest.mark.parametrize(
    ("declared", "crc", "cut", "message"),
    [
        (1000, None, 0, None),
        (999, None, 0, "more than the zip declares"),
        (1001, None, 0, "damaged in the zip"),
        (1000, 1, 0, "damaged in the zip"),
        (1000, None, 5, "damaged in the zip"),
        (1000, None, 10**6, "damaged in the zip"),
    ],
)
def test_zip_members_are_read_only_as_declared(declared, crc, cut, message):
    content = np.random.default_rng(0).integers(0, 256, 1000, np.uint8).tobytes()
    packed = deflated(content)
    header = b"PK\x03\x04" + bytes(22) + b"\x05\0\x02\0" + b"a.jpg" + b"xx"
    archive = io.BytesIO((b"before" + header + packed)[: len(header) + 6 + max(0, len(packed) - cut) if cut else None])
    if cut > len(packed):
        archive = io.BytesIO(b"before")
    place = (6, len(packed), declared, zlib.crc32(content) if crc is None else crc, 8)
    if message is None:
        assert read_member(archive, *place) == content
    else:
        with pytest.raises(BadImageError, match=message):
            read_member(archive, *place)


def test_a_member_that_unpacks_to_far_more_is_stopped_in_time():
    packed = deflated(bytes(1 << 26))
    archive = io.BytesIO(b"PK\x03\x04" + bytes(26) + packed)
    tracemalloc.start()
    try:
        with pytest.raises(BadImageError, match="more than the zip declares"):
            read_member(archive, 0, len(packed), 1000, 0, 8)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()

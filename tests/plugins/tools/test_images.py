"""Images: what a provider would refuse never gets into the history, with Pillow and without."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import random
import re
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pi_core import Model, PiError, RunContext, ToolContext
from pi_plugins.tools import ImageLimits, ToolsPlugin, _images, prepare_image

RED, BLUE = (255, 0, 0), (0, 0, 255)


def png(width: int, height: int, *, spoil: bool = False) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data) ^ spoil)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" * (width + 1) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    output = io.BytesIO()
    image.save(output, kind, **options)
    return output.getvalue()


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    size = width * height * len(Image.new(mode, (1, 1)).getbands())
    return Image.frombytes(mode, (width, height), random.Random(1).randbytes(size))


@pytest.fixture(params=["pillow", "no pillow"])
def either(request: pytest.FixtureRequest, work: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "no pillow":
        monkeypatch.setattr(_images, "can_resize", lambda: False)
    return work


@pytest.fixture
def without(work: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(_images, "can_resize", lambda: False)
    return work


def shown(work: Any, content: bytes) -> tuple[Image.Image, str, str]:
    """Read an image and return what a model sees of it: the image, its type, and the text beside it."""
    work.write("image", content)
    outcome = work.call("read", path="image")
    assert not outcome.is_error, outcome
    note, block = outcome.result.content
    data = base64.b64decode(block.data)
    assert outcome.result.structured_content == {**block.to_json(), "note": note.text}
    image = Image.open(io.BytesIO(data))
    image.load()
    assert f"image/{image.format.lower()}" == block.mime_type
    return image, block.mime_type, note.text


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_small_image_is_sent_as_it_is(either: Any, kind: str) -> None:
    content = encoded(noise(5, 4), kind)
    either.write("image.txt", content)

    outcome = either.call("read", path="image.txt")

    note, block = outcome.result.content
    assert note.text == f"Read image file [image/{kind.lower()}]"
    assert base64.b64decode(block.data) == content


def test_what_is_no_image_by_its_content_is_text(either: Any) -> None:
    either.write("hello.png", "hello\n")
    either.write("nothing.jpg", "")

    assert either.text("read", path="hello.png") == "hello\n"
    assert either.text("read", path="nothing.jpg") == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(range(200)), "damaged image/png file"),
        (png(2, 3, spoil=True), "a checksum is wrong"),
        (png(2, 3)[:-20], "it ends too early"),
        (png(0, 3), "it has no pixels"),
        (png(90_000, 800), "90000x800 pixels are too many"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "damaged image/jpeg file"),
        (b"GIF89a\x00\x00", "damaged image/gif file"),
        (b"RIFF\x20\x00\x00\x00WEBPVP8 ", "damaged image/webp file"),
        (b"BM\x00\x00\x00\x00\x00\x00", "damaged image/bmp file"),
    ],
)
def test_damaged_images_are_errors(either: Any, content: bytes, words: str) -> None:
    either.write("image", content)

    assert words in either.error("read", path="image")


@pytest.mark.parametrize("kind", ["JPEG", "GIF", "WEBP", "BMP"])
def test_an_image_of_which_the_end_is_missing_is_an_error(work: Any, kind: str) -> None:
    content = encoded(noise(60, 60), kind)
    work.write("image", content[: len(content) * 2 // 3])

    assert f"damaged image/{kind.lower()} file" in work.error("read", path="image")


def test_a_photograph_with_damaged_remarks_is_shown(work: Any) -> None:
    content = encoded(noise(8, 8), "JPEG")
    remarks = b"Exif\0\0II*\0\xff\xff\xff\xff" + b"\xee" * 20
    content = content[:2] + b"\xff\xe1" + struct.pack(">H", len(remarks) + 2) + remarks + content[2:]

    work.write("image", content)
    assert base64.b64decode(work.call("read", path="image").result.content[1].data) == content


def test_large_images_are_made_smaller(work: Any) -> None:
    image, mime, note = shown(work, png(4000, 3001))

    assert (image.size, mime) == ((2000, 1500), "image/png")
    assert note.split("\n")[0] == "Read image file [image/png]"
    assert "4000x3001 pixels" in note
    assert "multiply coordinates by 2.00" in note


@pytest.mark.parametrize(("size", "smaller"), [((4000, 10), (2000, 5)), ((1, 9000), (1, 2000)), ((2001, 1), (2000, 1))])
def test_no_side_vanishes(work: Any, size: tuple[int, int], smaller: tuple[int, int]) -> None:
    assert shown(work, png(*size))[0].size == smaller


def test_the_limit_of_bytes_holds_after_base64(work: Any) -> None:
    work.configure(max_image_bytes=100_000)

    for kind in ("PNG", "JPEG"):
        image, mime, _ = shown(work, encoded(noise(500, 400, "RGB"), kind))
        work.write("image", encoded(noise(500, 400), kind))
        block = work.call("read", path="image").result.content[1]

        assert len(block.data) <= 100_000
        assert mime == "image/jpeg"
        assert max(image.size) <= 500


def test_a_limit_that_nothing_can_meet_is_an_error(work: Any) -> None:
    work.configure(max_image_bytes=10)
    work.write("image", png(100, 100))

    assert "no form of it is within the limit of 10 bytes" in work.error("read", path="image")


def test_limits_of_the_model_win(work: Any) -> None:
    work.write("image", png(100, 60))
    tool = next(tool for tool in ToolsPlugin(work.options).register_tools() if tool.name == "read")
    limits = {"images": {"resize": {"maxWidth": 50, "maxHeight": True, "maxBytes": None}}}
    model = Model.model_validate(
        {"id": "m", "api": "a", "provider": "p", "input": ["text", "image"], "inputLimits": limits}
    )

    result = asyncio.run(tool.run({"path": "image"}, ToolContext("1", run=RunContext(model=model))))

    assert Image.open(io.BytesIO(base64.b64decode(result.content[1].data))).size == (50, 30)


def test_a_photograph_is_turned_upright(work: Any) -> None:
    image = Image.new("RGB", (40, 20), RED)
    image.paste(BLUE, (20, 0, 40, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera lay on its side: turn clockwise

    upright, mime, note = shown(work, encoded(image, "JPEG", exif=exif))

    assert (upright.size, mime, note) == ((20, 40), "image/jpeg", "Read image file [image/jpeg]")
    top, bottom = upright.getpixel((10, 5)), upright.getpixel((10, 35))
    assert (top[0] > 200, bottom[2] > 200) == (True, True)
    assert upright.getexif().get(0x0112, 1) == 1


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_of_an_animation_the_first_frame_is_shown(work: Any, kind: str) -> None:
    frames = [Image.new("RGB", (8, 8), color) for color in (RED, BLUE)]

    image, mime, note = shown(work, encoded(frames[0], kind, save_all=True, append_images=frames[1:]))

    assert mime == "image/png"
    assert image.convert("RGB").getpixel((4, 4))[0] > 200
    assert not getattr(image, "is_animated", False)
    assert note == "Read image file [image/png]\nOf the animation this is the first frame."


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_kind_of_pixels_can_be_made_smaller(mode: str) -> None:
    source = Image.new("RGBA", (200, 100), (128, 128, 128, 255)).convert(mode) if mode != "I;16" else None
    source = source or Image.frombytes("I;16", (200, 100), struct.pack("<H", 128 << 8) * 20_000)

    prepared = prepare_image("a.png", encoded(source, "PNG"), ImageLimits(max_width=50))

    small = Image.open(io.BytesIO(base64.b64decode(prepared.image.data)))
    assert small.size == (50, 25)
    grey = small.convert("L").resize((1, 1), Image.Resampling.BOX).getpixel((0, 0))
    assert 110 < grey < 146


def test_other_color_spaces_become_rgb(work: Any) -> None:
    image, mime, _ = shown(work, encoded(Image.new("CMYK", (3000, 10)), "JPEG"))

    assert (image.mode, mime) == ("RGB", "image/jpeg")


def test_transparency_stays_where_the_type_has_it(work: Any) -> None:
    image, mime, _ = shown(work, encoded(Image.new("RGBA", (3000, 10), (0, 0, 0, 0)), "PNG"))

    assert (image.mode, mime) == ("RGBA", "image/png")


def test_a_bitmap_becomes_a_png(work: Any) -> None:
    image, mime, _ = shown(work, encoded(Image.new("RGB", (6, 5), RED), "BMP"))

    assert (image.size, mime) == ((6, 5), "image/png")


def test_without_pillow_what_is_too_large_is_refused_and_says_what_helps(without: Any) -> None:
    without.write("wide.png", png(2001, 3))
    without.write("small.bmp", encoded(Image.new("RGB", (6, 5)), "BMP"))
    without.write("heavy.png", encoded(noise(1500, 1500), "PNG"))

    assert "2001x3 pixels, over the limit of 2000x2000" in without.error("read", path="wide.png")
    assert "models do not read image/bmp" in without.error("read", path="small.bmp")
    assert "as base64, over the limit of 4.5MB" in without.error("read", path="heavy.png")
    for name in ("wide.png", "small.bmp", "heavy.png"):
        assert "install the extra 'images'" in without.error("read", path=name)


def test_resizing_can_be_switched_off(work: Any) -> None:
    work.configure(resize_images=False)

    assert shown(work, png(2001, 3))[0].size == (2001, 3)
    work.write("image", png(8001, 3))
    assert "over the limit of 8000x8000" in work.error("read", path="image")


def test_without_pillow_sizes_of_jpeg_gif_and_webp_are_found(without: Any) -> None:
    frame = b"\xff\xc0\x00\x0b\x08" + struct.pack(">HH", 4, 5) + b"\x01\x01\x11\x00"
    without.write("a", b"\xff\xd8\xff\xe0\x00\x04ab\xff" + frame + b"\xff\xda\x00\x00\xff\xd9")
    without.write("b", b"GIF89a" + struct.pack("<HH", 4, 5) + b"\x00\x00\x00;")
    body = b"WEBPVP8L\x05\x00\x00\x00\x2f" + struct.pack("<I", 3 | 4 << 14) + b"\x00"
    without.write("c", b"RIFF" + struct.pack("<I", len(body)) + body)

    types = [without.call("read", path=name).result.content[1].mime_type for name in "abc"]

    assert types == ["image/jpeg", "image/gif", "image/webp"]


def test_a_file_that_is_too_large_is_refused_before_it_is_read(work: Any) -> None:
    path = work.write("large.png", png(2, 3))
    os.truncate(path, 3_000_000_000)

    assert "the image is 2861.0MB, over the limit of 64.0MB" in work.error("read", path="large.png")


def test_a_model_without_eyes_gets_no_image(either: Any) -> None:
    either.write("image.png", png(2, 3))
    tool = next(tool for tool in ToolsPlugin(either.options).register_tools() if tool.name == "read")
    blind = Model(id="m", api="a", provider="p")

    result = asyncio.run(tool.run({"path": "image.png"}, ToolContext("1", run=RunContext(model=blind))))

    assert [block.type for block in result.content] == ["text"]
    assert result.details == {"imageUnsupportedByModel": True}


def test_images_are_prepared_for_others_too() -> None:
    assert prepare_image("a.png", png(3000, 3)).image.mime_type == "image/png"
    with pytest.raises(PiError, match=r"a\.txt is no image"):
        prepare_image("a.txt", b"text")


STARTS = [encoded(noise(9, 7), kind)[:300] for kind in ("PNG", "JPEG", "GIF", "WEBP", "BMP")]


@given(st.sampled_from(STARTS), st.integers(2, 300), st.binary(max_size=200), st.booleans())
def test_whatever_follows_the_first_bytes_it_is_an_image_or_an_error(
    start: bytes, kept: int, rest: bytes, pillow: bool
) -> None:
    content = start[:kept] + rest
    try:
        prepared = prepare_image("x", content, ImageLimits(resize=pillow))
    except PiError as error:
        words = str(error)
    else:
        words = "sound"
        assert base64.b64decode(prepared.image.data)
    assert words == "sound" or re.fullmatch(
        r"x( is no image|: damaged image/\w+ file, [ -~]+|: .* pixels.*|: models do not read .*)", words
    )

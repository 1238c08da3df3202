"""Makes an image smaller with Pillow, which comes with the extra ``images``."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator

from PIL import Image, ImageOps

from ._image_headers import BrokenImageError
from ._images import ImageLimits, encoded_size

_LOWER_QUALITIES = (70, 55, 40)
_SHRINK = 0.75
_ORIENTATION_TAG = 0x0112

_one_at_a_time = threading.Lock()
"""A decoded image is large, and the filters of warnings belong to the whole process."""


def fit(data: bytes, mime: str, limits: ImageLimits) -> tuple[bytes, str, tuple[str, ...]] | None:
    """Return an image that may be sent, its MIME type and what was done to it; ``None`` when it may be sent as it is.

    All of it is decoded, so that what is damaged further on is found as well.

    :raises BrokenImageError: it cannot be decoded.
    """
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data)) as source:
                return _fit(source, data, mime, limits)
        except BrokenImageError:
            raise
        except MemoryError:
            raise BrokenImageError("there is not enough memory for it") from None
        except Exception as error:  # the decoders raise whatever their input makes them
            raise BrokenImageError(_words(error)) from None


def _words(error: Exception) -> str:
    """Return what is wrong in one line; the repr of the data it was read from says nothing to anybody."""
    text = str(error).split("<", 1)[0].strip(" :")
    return text or type(error).__name__


def _fit(source: Image.Image, data: bytes, mime: str, limits: ImageLimits) -> tuple[bytes, str, tuple[str, ...]] | None:
    animated = mime != "image/jpeg" and getattr(source, "is_animated", False)  # a JPEG of several is no animation
    source.load()
    turned = _is_turned(source)
    if not animated and not turned and mime != "image/bmp" and limits.allow(*source.size, len(data)):
        return None
    image = _in_eight_bits(ImageOps.exif_transpose(source) if turned else source)
    content, kind, size = _encode_within(image, mime == "image/jpeg", limits)
    notes = []
    if animated:
        notes.append("Of the animation this is the first frame.")
    if size != image.size:
        notes.append(
            f"The image has {image.width}x{image.height} pixels and is shown with {size[0]}x{size[1]}: multiply "
            f"coordinates by {image.width / size[0]:.2f} for those of the file."
        )
    return content, kind, tuple(notes)


def _is_turned(image: Image.Image) -> bool:
    try:
        return image.getexif().get(_ORIENTATION_TAG, 1) in range(2, 9)
    except Exception:  # what a camera wrote beside the pixels may be damaged without any harm to them
        return False


def _in_eight_bits(image: Image.Image) -> Image.Image:
    """Return the image as RGB or RGBA, which every encoder and the scaling take."""
    if image.mode.startswith("I"):
        image = image.point(lambda value: value * (1 / 256)).convert("L")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _encode_within(image: Image.Image, is_photograph: bool, limits: ImageLimits) -> tuple[bytes, str, tuple[int, int]]:
    """Return the first of ever smaller forms that is within the limits, its MIME type and its size in pixels."""
    width, height = image.size
    scale = min(1.0, limits.max_width / width, limits.max_height / height)
    size = (0, 0)
    while size != (1, 1):
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        scaled = image if size == image.size else image.resize(size, Image.Resampling.LANCZOS)
        for content, kind in _forms(scaled, is_photograph, limits.jpeg_quality):
            if encoded_size(len(content)) <= limits.max_bytes:
                return content, kind, size
        scale *= _SHRINK
    raise BrokenImageError(f"no form of it is within the limit of {limits.max_bytes} bytes")


def _forms(image: Image.Image, is_photograph: bool, quality: int) -> Iterator[tuple[bytes, str]]:
    """Encode an image: without loss unless it came as a photograph, then with more and more loss."""
    if not is_photograph:
        yield _encoded(image, "PNG"), "image/png"
    if image.mode == "RGBA":
        background = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(background, image).convert("RGB")
    for step in (quality, *(lower for lower in _LOWER_QUALITIES if lower < quality)):
        yield _encoded(image, "JPEG", quality=step), "image/jpeg"


def _encoded(image: Image.Image, kind: str, **options: int) -> bytes:
    output = io.BytesIO()
    image.save(output, kind, **options)
    return output.getvalue()

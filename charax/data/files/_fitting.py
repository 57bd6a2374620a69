"""Images of different sizes and kinds made alike: resized, cropped, on a white background, grey or colour."""

import warnings
from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8

from charax.data._errors import DataWarning


def fit_size(image: UInt8[np.ndarray, "height width channels"], height: int, width: int) -> np.ndarray:
    """Resize an image until its shorter side fits, and cut out the centre."""
    if image.shape[:2] == (height, width):
        return image
    from PIL import Image, ImageOps  # slow to import

    picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    fitted = np.asarray(ImageOps.fit(picture, (width, height), Image.Resampling.LANCZOS))
    return fitted[..., None] if fitted.ndim == 2 else fitted


def fit_channels(image: UInt8[np.ndarray, "height width channels"], channels: int) -> np.ndarray:
    """Repeat grey for colour, or weigh colours for grey."""
    if image.shape[2] == channels:
        return image
    if channels == 3:
        return np.repeat(image, 3, axis=2)
    # The weights of ITU-R 601, as Pillow has them.
    return np.round(image @ np.array([[0.299], [0.587], [0.114]])).astype(np.uint8)


def find_size(images: Sequence[np.ndarray], size: int | None) -> tuple[int, int]:
    """The height and width of all images: as asked for, as they are, or a square of the shortest side of any."""
    if size is not None:
        return size, size
    shapes = {image.shape[:2] for image in images}
    if len(shapes) == 1:
        return shapes.pop()
    side = min(min(shape) for shape in shapes)
    return side, side


def fit_images(
    images: Sequence[np.ndarray], shape: tuple[int, int, int], *, source: object, transparent: int
) -> UInt8[np.ndarray, "n height width channels"]:
    """Make images alike, and say in one warning what was done to how many of them."""
    height, width, channels = shape
    done = {
        f"resized to {height} x {width} pixels (the shorter side, then the centre cut out)": sum(
            image.shape[:2] != (height, width) for image in images
        ),
        f"converted to {'grey' if channels == 1 else 'colour'}": sum(image.shape[2] != channels for image in images),
        "put on a white background because of transparent pixels": transparent,
    }
    parts = [f"{count} {what}" for what, count in done.items() if count]
    if parts:
        warnings.warn(f"{source}: of {len(images)} images, {', '.join(parts)}", DataWarning, stacklevel=2)
    return np.stack([fit_channels(fit_size(image, height, width), channels) for image in images])

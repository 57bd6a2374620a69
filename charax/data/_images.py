"""Image files: a folder with one subfolder a class, or single files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from charax.data._dataset import Labelled, Raw
from charax.data._errors import DataError

# Pillow tries every format that it knows, and hands some of them to other programs: these it reads itself.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
_LITTER = ("Thumbs.db", "desktop.ini")


def read_labelled_images(folder: Path) -> Raw:
    """Images of one size in one subfolder a class. Grey if all of them are, else RGB."""
    entries = _visible(folder)
    loose = [entry for entry in entries if entry.suffix.lower() in SUFFIXES and entry.is_file()]
    if loose:
        raise DataError(
            f"{loose[0]} is in no class: move it into a subfolder of {folder} that is named after its class"
        )
    classes = [entry for entry in entries if entry.is_dir()]
    if not classes:
        raise DataError(f"{folder} has no subfolders: make one for each class and put its images there")
    files, targets = [], []
    for label, subfolder in enumerate(classes):
        members = _visible(subfolder)
        if not members:
            raise DataError(f"{subfolder} is empty: add images of this class, or remove the folder")
        files += members
        targets += [label] * len(members)
    images = read_images(files)
    names = tuple(subfolder.name for subfolder in classes)
    return Raw(folder, Labelled(images, np.asarray(targets, np.int32)), names, white=255.0)


def find_images(folder: Path) -> list[Path]:
    """The image files of a folder and its subfolders, in order."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not files:
        raise DataError(f"{folder} has no images in it ({', '.join(SUFFIXES)})")
    return files


def read_images(
    files: Sequence[Path], shape: tuple[int, ...] | None = None
) -> UInt8[np.ndarray, "n height width channels"]:
    """All images as one array of `shape`, or of the shape of the first one with as many channels as any of them has."""
    images = [_read_image(file) for file in files]
    channels = max(image.shape[2] for image in images) if shape is None else shape[2]
    height, width = images[0].shape[:2] if shape is None else shape[:2]
    for file, image in zip(files, images, strict=True):
        if image.shape[:2] != (height, width):
            model = f"{files[0]} has" if shape is None else "the model reads"
            raise DataError(
                f"{file} has {image.shape[0]} x {image.shape[1]} pixels (height x width) where {model} "
                f"{height} x {width}: bring it to that size"
            )
    return np.stack([_with_channels(image, channels) for image in images])


def _with_channels(image: np.ndarray, channels: int) -> np.ndarray:
    if image.shape[2] == channels:
        return image
    if channels == 3:
        return np.repeat(image, 3, axis=2)
    # The weights of ITU-R 601, as Pillow has them.
    return np.round(image @ np.array([[0.299], [0.587], [0.114]])).astype(np.uint8)


def _read_image(path: Path) -> UInt8[np.ndarray, "height width channels"]:
    """Bytes with one channel, or three."""
    from PIL import Image  # slow to import, and needed for files only

    if path.is_dir():
        raise DataError(f"{path} is a folder inside a class: put images straight into the folder of their class")
    try:
        with Image.open(path, formats=_FORMATS) as image:
            image.load()
            if image.mode.startswith(("I", "F")):
                raise DataError(f"{path} has more than 8 bits a pixel (mode {image.mode}): save it with 8 bits")
            if image.has_transparency_data and np.asarray(image.convert("RGBA"))[..., 3].min() < 255:
                raise DataError(f"{path} is transparent in places: save it on a background")
            grey = image.mode in ("1", "L", "LA", "La")
            pixels = np.asarray(image.convert("L" if grey else "RGB"))
    except DataError:
        raise
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} cannot be read as an image: {error}") from None
    return pixels[..., None] if grey else pixels


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.name not in _LITTER)

"""Image files: a folder or an archive with one subfolder per class, a folder of images, or a single image."""

import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from charax.data._errors import DataError, DataWarning
from charax.data._limits import LIMITS, check_passed, check_regular
from charax.data._raw import RawDataset, RawSplit, index_classes
from charax.data._stored import ImageRows
from charax.data.files._fitting import find_size, fit_images
from charax.data.files._image_archives import ArchivedImage, list_images, relative_names
from charax.data.files._kind import FileKind, InputSpec, NamedInputs, TableOptions, has_suffix

# Pillow tries every format that it knows, and passes some of them to other programs: these it reads itself.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
_IGNORED = ("Thumbs.db", "desktop.ini")

ImageFile = Path | ArchivedImage
"""An image by itself, or in an archive."""


def _read_labelled(folder: Path, options: TableOptions) -> RawDataset:
    """Images in one subfolder per class."""
    entries = _visible(folder)
    loose = [entry for entry in entries if entry.suffix.lower() in _SUFFIXES and entry.is_file()]
    if loose:
        raise DataError(f"{loose[0]} has no class: move it into a subfolder of {folder} that is named after its class")
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
    stored = _store_images(files, options.size)
    images = _read_images(folder, files, size=options.size) if stored is None else stored
    samples = RawSplit(images, np.asarray(targets, np.int32))
    return RawDataset(folder, samples, tuple(subfolder.name for subfolder in classes), max_value=255.0)


def _read_labelled_archive(path: Path, options: TableOptions) -> RawDataset:
    """Images in one folder per class of an archive."""
    files = list_images(path, _SUFFIXES)
    folders = [name.rpartition("/")[0] for name in relative_names(files)]
    if "" in folders:
        raise DataError(f"{files[folders.index('')]} has no class: put it into a folder that is named after its class")
    targets, classes = index_classes(folders)
    stored = _store_images(files, options.size)
    images = _read_images(path, files, size=options.size) if stored is None else stored
    return RawDataset(path, RawSplit(images, targets), classes, max_value=255.0)


def _read_unlabelled_archive(path: Path, options: TableOptions) -> UInt8[np.ndarray, "n height width channels"]:
    return _read_images(path, list_images(path, _SUFFIXES), size=options.size)


def _read_archive_inputs(path: Path, spec: InputSpec) -> NamedInputs:
    files = list_images(path, _SUFFIXES)
    return _read_inputs(path, files, relative_names(files), spec)


def _read_unlabelled(folder: Path, options: TableOptions) -> UInt8[np.ndarray, "n height width channels"]:
    return _read_images(folder, _find_images(folder), size=options.size)


def _read_folder_inputs(folder: Path, spec: InputSpec) -> NamedInputs:
    files = _find_images(folder)
    return _read_inputs(folder, files, [file.relative_to(folder).as_posix() for file in files], spec)


def _read_file_inputs(path: Path, spec: InputSpec) -> NamedInputs:
    return _read_inputs(path, [path], [path.name], spec)


def _read_inputs(path: Path, files: Sequence[ImageFile], names: list[str], spec: InputSpec) -> NamedInputs:
    if len(spec.shape) != 3 or spec.shape[2] not in (1, 3):
        raise DataError(
            f"{path} is for images, but the model reads inputs of shape {spec.shape}: give an .npz or a table"
        )
    if spec.max_value is None:
        raise DataError(f"{path}: the model was trained on arrays whose brightness has no known scale: give an .npz")
    images = _read_images(path, files, shape=spec.shape)
    return NamedInputs(images if spec.max_value == 255 else images * (spec.max_value / 255), names)


def _find_images(folder: Path) -> list[Path]:
    """Find the image files of a folder and its subfolders, in order."""
    files = sorted(path for path in _list(folder, folder.rglob("*")) if path.suffix.lower() in _SUFFIXES)
    if not files:
        raise DataError(f"{folder} has no images in it ({', '.join(_SUFFIXES)})")
    return files


def _read_images(
    path: Path, files: Sequence[ImageFile], *, shape: tuple[int, ...] | None = None, size: int | None = None
) -> UInt8[np.ndarray, "n height width channels"]:
    """Read images and make them alike, of `shape` if it is given: else gray if all of them are, else RGB."""
    check_pixels(files)
    read = [_read_image(file) for file in files]
    images = [image for image, _ in read]
    if shape is None:
        shape = (*find_size(images, size), max(image.shape[2] for image in images))
    height, width, channels = shape
    transparent = sum(is_transparent for _, is_transparent in read)
    return fit_images(images, (height, width, channels), source=path, transparent=transparent)


def _store_images(files: Sequence[ImageFile], size: int | None) -> ImageRows | None:
    """Images that are decoded when they are asked for, if a size is given and they are too many for memory."""
    if size is None or 3 * size * size * len(files) <= LIMITS["memory"].value:
        return None
    for file in files:
        if isinstance(file, Path):
            check_regular(file)
    return ImageRows(files, (size, size, 3), decode_images)


def decode_images(
    files: Sequence[ImageFile], shape: tuple[int, int, int]
) -> UInt8[np.ndarray, "n height width channels"]:
    """Read images and fit them to one shape."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a size was asked for, and this is one of many mini-batches
        return fit_images([_read_image(file)[0] for file in files], shape, source=files[0], transparent=0)


def check_pixels(files: Sequence[ImageFile]) -> None:
    """Refuse images that have too many pixels together. Their sizes are read first, and nothing else of them."""
    from PIL import Image  # slow to import

    pixels = 0
    for file in files:
        if isinstance(file, Path):
            if file.is_dir():
                raise DataError(
                    f"{file} is a folder inside a class: put images directly into the folder of their class"
                )
            check_regular(file)
        try:
            with Image.open(_open(file), formats=_FORMATS) as image:
                pixels += image.width * image.height
        except Exception as error:  # a damaged file makes its reader fail in any way it can
            raise DataError(f"{file} cannot be read as an image: {error}") from None
        check_passed("pixels", pixels, f"the images up to {file}", "have")


def _open(file: ImageFile) -> Path | io.BytesIO:
    """What Pillow opens."""
    return file if isinstance(file, Path) else io.BytesIO(file.read_bytes())


def _read_image(path: ImageFile) -> tuple[UInt8[np.ndarray, "height width channels"], bool]:
    """Read bytes with one channel, or three, and whether some pixels are transparent. These are put on white."""
    from PIL import Image  # slow to import

    try:
        with Image.open(_open(path), formats=_FORMATS) as image:
            image.load()
            if image.mode.startswith(("I", "F")):
                raise DataError(f"{path} has more than 8 bits per pixel (mode {image.mode}): save it with 8 bits")
            gray, whole, transparent = image.mode in ("1", "L", "LA", "La"), image, False
            if image.has_transparency_data:
                layer = image.convert("RGBA")
                transparent = bool(np.asarray(layer)[..., 3].min() < 255)
                whole = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
            pixels = np.asarray(whole.convert("L" if gray else "RGB"))
    except DataError:
        raise
    except Exception as error:  # a damaged file makes its reader fail in any way it can
        raise DataError(f"{path} cannot be read as an image: {error}") from None
    return pixels[..., None] if gray else pixels, transparent


def _visible(folder: Path) -> list[Path]:
    paths = _list(folder, folder.iterdir())
    return sorted(path for path in paths if not path.name.startswith(".") and path.name not in _IGNORED)


def _list(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """The paths in a folder, if they are not too many."""
    found: list[Path] = []
    for path in paths:
        found.append(path)
        check_passed("files", len(found), folder)
    return found


IMAGE_FOLDER = FileKind(
    name="a folder of images",
    matches=Path.is_dir,
    read_labelled=_read_labelled,
    read_unlabelled=_read_unlabelled,
    read_inputs=_read_folder_inputs,
)
IMAGE_ARCHIVE = FileKind(
    name="a .zip or .tar of images",
    matches=has_suffix(".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"),
    read_labelled=_read_labelled_archive,
    read_unlabelled=_read_unlabelled_archive,
    read_inputs=_read_archive_inputs,
)
IMAGE = FileKind(name="an image", matches=has_suffix(*_SUFFIXES), read_inputs=_read_file_inputs)

"""Architectures and solvers by the name of a preset."""

from dataclasses import fields, replace
from typing import Any, NamedTuple

from charax.models._architecture import AbstractArchitecture
from charax.models._image_architecture import ImageArchitecture
from charax.models._methods import parse_method
from charax.models._names import JacobianForm
from charax.models._paper_models import PAPER_DATASETS, paper_architecture, paper_solver
from charax.models._vector_architecture import VectorArchitecture
from charax.solve import Solver


class Design(NamedTuple):
    """What to build and how to integrate it."""

    architecture: AbstractArchitecture
    solver: Solver


def find_design(
    preset: str,
    method: str,
    shape: tuple[int, ...],
    *,
    dataset: str = "",
    jacobian: JacobianForm = "separate",
    **sizes: int | None,
) -> Design:
    """A preset's design for inputs of one shape; `sizes` that are not None replace fields of the architecture.

    - `small` walks on a grid of about 8x8: 8x8 pixels are learned in half a minute on two cores.
    - `cpu` walks on a grid of about 14x14: for 28x28 pixels or more, and minutes on two cores.
    - `paper` has the layers and the solver of the paper's Table 1, for its three data sets.

    - `dense` has no convolutions, and the pixels are rows of numbers: seconds, most of them saved in compiling.

    Rows of numbers have this last design, whatever the preset.

    ```python
    from charax.models import find_design

    design = find_design("small", "c-node", (8, 8, 1), width=16)
    assert design.architecture.width == 16
    ```
    """
    parse_method(method)
    if len(shape) == 1 or preset == "dense":
        design = Design(VectorArchitecture(method), Solver("midpoint", steps=4))
    elif preset == "paper":
        if dataset not in PAPER_DATASETS:
            raise ValueError(
                f"the paper has no image classifier for {dataset!r}: use preset small or cpu, "
                f"or one of {', '.join(PAPER_DATASETS)}"
            )
        design = Design(paper_architecture(dataset, method), paper_solver(dataset, method))
    elif preset in _IMAGES:
        design = Design(_IMAGES[preset](method, shape), _SOLVER)
    else:
        raise ValueError(f"unknown preset {preset!r}; choose from small, cpu, paper, dense")
    asked = {name: size for name, size in sizes.items() if size is not None}
    unknown = asked.keys() - {field.name for field in fields(design.architecture)}
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))}: a classifier of inputs of shape {shape} has no such size")
    for name, size in asked.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
    return design._replace(architecture=replace(design.architecture, jacobian=jacobian, **asked))


_SOLVER = Solver("euler", steps=2)


def _small(method: str, shape: tuple[int, ...]) -> ImageArchitecture:
    return _image(method, shape, grid=8, width=24, pool=4)


def _cpu(method: str, shape: tuple[int, ...]) -> ImageArchitecture:
    return _image(method, shape, grid=14, width=32, pool=7)


def _image(method: str, shape: tuple[int, ...], *, grid: int, width: int, pool: int) -> ImageArchitecture:
    """A walk of a learned image on a grid of about `grid` x `grid` or a little more."""
    side = min(shape[:2])
    patch = max(1, side // grid)
    return ImageArchitecture(
        method,
        style="colour",
        width=width,
        augment_dim=8,
        characteristic_dim=2,
        pool=min(pool, -(-side // patch)),
        patch=patch,
        stem=16,
    )


_IMAGES = {"small": _small, "cpu": _cpu}

_KINDS = {"image": ImageArchitecture, "vector": VectorArchitecture}


def read_architecture(stored: dict[str, Any]) -> AbstractArchitecture:
    """The inverse of `AbstractArchitecture.to_json`."""
    kind = stored.get("kind", "")
    if kind not in _KINDS:
        raise ValueError(f"unknown kind of architecture {kind!r}; this version knows {', '.join(_KINDS)}")
    return _KINDS[kind](**{name: value for name, value in stored.items() if name != "kind"})

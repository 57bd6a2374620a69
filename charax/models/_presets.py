"""Architectures and solvers by the name of a preset."""

from dataclasses import fields, replace
from typing import NamedTuple

from charax.models._architecture import AbstractArchitecture
from charax.models._image_architecture import ImageArchitecture
from charax.models._methods import parse_method
from charax.models._names import JacobianForm
from charax.models._paper_models import PAPER_DATASETS, paper_architecture, paper_solver
from charax.models._vector_architecture import VectorArchitecture
from charax.solve import Solver


class Design(NamedTuple):
    """An architecture and its solver.

    ```python
    from charax.models import Design, find_design

    assert isinstance(find_design("small", "node", (4,)), Design)
    ```
    """

    architecture: AbstractArchitecture
    """What to build."""
    solver: Solver
    """How to integrate."""


def find_design(
    preset: str,
    method: str,
    shape: tuple[int, ...],
    *,
    dataset: str = "",
    jacobian: JacobianForm = "separate",
    **sizes: int | None,
) -> Design:
    """Find the design of a preset for inputs of one shape.

    - `small` has a state on a grid of about 8x8: 8x8 pixels are learned in half a minute on two cores.
    - `cpu` has a state on a grid of about 14x14: for 28x28 pixels or more, and minutes on two cores.
    - `paper` has the layers and the solver of the paper's Table 1, for its three data sets.
    - `dense` has no convolutions and flattens images: it compiles and trains in seconds.
    - `ode` has the paper's layers, narrowed, on the raw channels of the image, and adaptive steps: nothing is learned
      before the ODE, so that a plain field really is a flow whose trajectories cannot cross.

    Rows of numbers have the design `dense`, whatever the preset.

    ```python
    from charax.models import find_design

    design = find_design("small", "c-node", (8, 8, 1), width=16)
    assert design.architecture.width == 16
    ```

    Args:
        preset: One of `Preset`.
        method: One of `METHOD_NAMES`.
        shape: The shape of one input.
        dataset: The name of the data set, for the preset `paper`.
        jacobian: The form of the Jacobian.
        **sizes: Values for fields of the architecture; None keeps that of the preset.

    Returns:
        The architecture and the solver.

    Raises:
        ValueError: If a name is unknown, or a size is below 1.
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
    elif preset == "ode":
        design = Design(_ode(method, shape, dataset), Solver("bosh3", rtol=1e-2, atol=1e-2))
    elif preset in _IMAGES:
        design = Design(_IMAGES[preset](method, shape), _SOLVER)
    else:
        raise ValueError(f"unknown preset {preset!r}; choose from small, cpu, paper, dense, ode")
    given = {name: size for name, size in sizes.items() if size is not None}
    unknown = given.keys() - {field.name for field in fields(design.architecture)}
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))}: a classifier of inputs of shape {shape} has no such size")
    for name, size in given.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
    return design._replace(architecture=replace(design.architecture, jacobian=jacobian, **given))


_SOLVER = Solver("euler", steps=2)


def _small(method: str, shape: tuple[int, ...]) -> ImageArchitecture:
    return _image(method, shape, grid=8, width=24, pool=4)


def _cpu(method: str, shape: tuple[int, ...]) -> ImageArchitecture:
    return _image(method, shape, grid=14, width=32, pool=7)


def _ode(method: str, shape: tuple[int, ...], dataset: str) -> ImageArchitecture:
    """The paper's layers for grey or colour images, with width 20.

    The velocity ends without an activation: the ReLU6 of the paper's MNIST model can be 0 for all images.
    """
    like = dataset if dataset in PAPER_DATASETS else "mnist" if shape[2] == 1 else "cifar10"
    architecture = paper_architecture(like, method)
    pool = min(architecture.pool, *shape[:2])
    return replace(architecture, width=20, velocity_output="identity", pool=pool)


def _image(method: str, shape: tuple[int, ...], *, grid: int, width: int, pool: int) -> ImageArchitecture:
    """An architecture with a stem and patches, whose state has a grid of about `grid` x `grid` or a little more."""
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

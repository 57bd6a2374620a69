"""The image classifiers behind the paper's Table 1, layer by layer."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from charax.models._classifier import Classifier
from charax.models._image_architecture import ImageArchitecture, Style
from charax.models._methods import parse_method
from charax.models._names import METHOD_NAMES, Method
from charax.nn import count_parameters
from charax.solve import Solver

Dataset = Literal["mnist", "cifar10", "svhn"]
PAPER_DATASETS: tuple[Dataset, ...] = get_args(Dataset)
"""The data sets of the paper's Table 1."""


class Shape(NamedTuple):
    """What the models of a data set have in common."""

    style: Style
    size: int
    image_channels: int
    state_channels: int
    characteristic_dim: int
    pool: int


class Recipe(NamedTuple):
    """A row of Table 1: widths and activations, and what the paper reports for it."""

    width: int
    activation: str
    parameters: int
    tolerance: float
    velocity_width: int = 0
    velocity_activation: str = "identity"
    velocity_output: str = "identity"


_MNIST = Shape("grey", size=28, image_channels=1, state_channels=21, characteristic_dim=2, pool=8)
_COLOUR = Shape("colour", size=32, image_channels=3, state_channels=42, characteristic_dim=3, pool=4)
SHAPES: Mapping[Dataset, Shape] = MappingProxyType({"mnist": _MNIST, "cifar10": _COLOUR, "svhn": _COLOUR})

RECIPES: Mapping[Dataset, Mapping[Method, Recipe]] = MappingProxyType(
    {
        "mnist": {
            "node": Recipe(95, "relu", 85_468, 1e-3),
            "c-node": Recipe(64, "relu", 83_041, 1e-3, 4, "hard-tanh", "relu6"),
            "anode": Recipe(95, "relu", 89_408, 1e-3),
            "anode+c-node": Recipe(64, "relu", 88_321, 1e-3, 4, "hard-tanh", "hard-sigmoid"),
            "2nd-order": Recipe(95, "relu", 89_552, 1e-3),
            "2nd-order+c-node": Recipe(64, "relu", 88_465, 1e-3, 4, "softshrink", "relu6"),
            "il-node": Recipe(95, "relu", 89_597, 1e-3),
            "il-node+c-node": Recipe(64, "relu", 88_510, 1e-3, 4, "sigmoid", "selu"),
        },
        "cifar10": {
            "node": Recipe(111, "softplus", 115_444, 1e-3),
            "c-node": Recipe(60, "relu", 113_851, 1e-3, 8, "softsign", "identity"),
            "anode": Recipe(90, "softplus", 112_234, 1e-4),
            "anode+c-node": Recipe(42, "relu", 112_276, 1e-4, 8, "log-sigmoid", "hard-tanh"),
            "2nd-order": Recipe(90, "softplus", 112_801, 1e-4),
            "2nd-order+c-node": Recipe(42, "relu", 112_843, 1e-4, 8, "rrelu", "softsign"),
            "il-node": Recipe(90, "relu", 113_368, 1e-4),
            "il-node+c-node": Recipe(42, "relu", 113_752, 1e-4, 10, "log-sigmoid", "hard-sigmoid"),
        },
        "svhn": {
            "node": Recipe(111, "softplus", 115_444, 1e-3),
            "c-node": Recipe(60, "relu", 113_851, 1e-3, 8, "hard-tanh", "elu"),
            "anode": Recipe(90, "softplus", 112_234, 1e-4),
            "anode+c-node": Recipe(42, "relu", 112_276, 1e-4, 8, "tanh", "hard-sigmoid"),
            "2nd-order": Recipe(90, "softplus", 112_801, 1e-4),
            "2nd-order+c-node": Recipe(42, "relu", 112_843, 1e-4, 8, "softsign", "relu6"),
            "il-node": Recipe(90, "softplus", 113_368, 1e-4),
            "il-node+c-node": Recipe(42, "relu", 113_752, 1e-4, 10, "rrelu", "softsign"),
        },
    }
)


def find_recipe(dataset: str, method: str) -> tuple[Shape, Recipe]:
    """Find the row of the paper's Table 1, or raise an error that lists what there is."""
    if dataset not in PAPER_DATASETS:
        raise ValueError(
            f"unknown dataset {dataset!r}; the paper's image classifiers are for {', '.join(PAPER_DATASETS)}"
        )
    parse_method(method)
    return SHAPES[dataset], RECIPES[dataset][method]  # pyright: ignore[reportArgumentType]


def paper_solver(dataset: str, method: str) -> Solver:
    """Build the solver of a classifier of the paper's Table 1: dopri5 with the continuous adjoint.

    ```python
    from charax.models import paper_solver

    assert paper_solver("cifar10", "anode").rtol == 1e-4
    ```

    Args:
        dataset: One of `PAPER_DATASETS`.
        method: One of `METHOD_NAMES`.

    Returns:
        The solver, with the tolerance that the paper reports.

    Raises:
        ValueError: If a name is unknown.
    """
    _, recipe = find_recipe(dataset, method)
    return Solver("dopri5", rtol=recipe.tolerance, atol=recipe.tolerance, adjoint="backsolve")


def paper_architecture(dataset: str, method: str) -> ImageArchitecture:
    """Find the architecture of a classifier of the paper's Table 1.

    ```python
    from charax.models import paper_architecture

    assert paper_architecture("svhn", "c-node").characteristic_dim == 3
    ```

    Args:
        dataset: One of `PAPER_DATASETS`.
        method: One of `METHOD_NAMES`.

    Returns:
        The architecture.

    Raises:
        ValueError: If a name is unknown.
    """
    shape, recipe = find_recipe(dataset, method)
    return ImageArchitecture(
        method,
        style=shape.style,
        width=recipe.width,
        augment_dim=shape.state_channels - shape.image_channels,
        characteristic_dim=shape.characteristic_dim,
        pool=shape.pool,
        activation=recipe.activation,
        velocity_width=recipe.velocity_width,
        velocity_activation=recipe.velocity_activation,
        velocity_output=recipe.velocity_output,
    )


def paper_classifier(dataset: str, method: str, *, classes: int = 10, key: PRNGKeyArray) -> Classifier:
    """Build one of the paper's image classifiers, with as many parameters as the paper reports.

    The second-order ones are truly second order (du/ds = v), which the published ones are not; their counts are 1 to 3%
    below the paper's.

    ```python
    import jax
    from charax.models import paper_classifier
    from charax.nn import count_parameters

    model = paper_classifier("mnist", "il-node+c-node", key=jax.random.key(0))
    assert count_parameters(model) == 88_510
    ```

    Args:
        dataset: One of `PAPER_DATASETS`.
        method: One of `METHOD_NAMES`.
        classes: The number of classes.
        key: Random key of the initial weights.

    Returns:
        The classifier.

    Raises:
        ValueError: If a name is unknown.
    """
    shape, _ = find_recipe(dataset, method)
    return paper_architecture(dataset, method).build((shape.size, shape.size, shape.image_channels), classes, key=key)


class CountRow(NamedTuple):
    """The number of parameters of a classifier, and that which the paper reports."""

    dataset: str
    method: str
    parameters: int
    parameters_paper: int


def count_table() -> list[CountRow]:
    """Count the parameters of the paper's sixteen classifiers; those for SVHN have the layers of those for CIFAR-10.

    ```python
    from charax.models import count_table

    row = count_table()[0]
    assert (row.dataset, row.method, row.parameters, row.parameters_paper) == ("mnist", "node", 85_468, 85_468)
    ```

    Returns:
        A row per classifier, with the count that the paper reports.
    """
    key = jax.random.key(0)
    return [
        CountRow(
            dataset,
            method,
            parameters=count_parameters(eqx.filter_eval_shape(paper_classifier, dataset, method, key=key)),
            parameters_paper=RECIPES[dataset][method].parameters,
        )
        for dataset in ("mnist", "cifar10")
        for method in METHOD_NAMES
    ]


def paper_parameters(dataset: str, method: str) -> int | None:
    """Look up the number of parameters that the paper reports for a classifier.

    Args:
        dataset: Name of the data set.
        method: Name of the method.

    Returns:
        The number; None if the paper has no such classifier.

    ```python
    from charax.models import paper_parameters

    assert paper_parameters("mnist", "c-node") == 83_041
    ```
    """
    recipe = dict(RECIPES.get(dataset, {})).get(method)  # pyright: ignore[reportCallIssue, reportArgumentType]
    return None if recipe is None else recipe.parameters

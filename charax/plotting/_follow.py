"""A trained model along s: states and characteristics of some inputs."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.models import Classifier
from charax.solve import Solver


class Followed(NamedTuple):
    """The states and the characteristics of some inputs on a uniform grid of s.

    ```python
    import jax
    import numpy as np
    from charax import Solver, VectorArchitecture
    from charax.plotting import follow

    model = VectorArchitecture("c-node", width=4, characteristic_dim=3).build((2,), 2, key=jax.random.key(0))
    followed = follow(model, np.ones((5, 2), np.float32), Solver("euler", steps=4), points=9)
    assert followed.u.shape[:2] == (9, 5) and followed.x.shape == (9, 5, 3)
    ```
    """

    s: Float[np.ndarray, "points"]
    """The grid."""
    u: Float[np.ndarray, "points n *state"]
    """The states u(s)."""
    x: Float[np.ndarray, "points n k"] | None
    """The characteristics x(s); None for a plain Neural ODE."""


def follow(model: Classifier, inputs: Float[np.ndarray, "n *shape"], solver: Solver, *, points: int = 33) -> Followed:
    """Integrate a model for some inputs, and keep what happens on the way.

    Args:
        model: A neural ODE with a readout.
        inputs: The inputs, as the model reads them.
        solver: How to integrate.
        points: The number of points of the grid.

    Returns:
        The states and the characteristics.

    ```python
    import jax
    import numpy as np
    from charax import Solver, VectorArchitecture
    from charax.plotting import follow

    model = VectorArchitecture("node", width=4).build((2,), 2, key=jax.random.key(0))
    followed = follow(model, np.ones((5, 2), np.float32), Solver("euler", steps=4), points=9)
    assert followed.s[-1] == 1 and followed.x is None  # a plain Neural ODE has no characteristics
    ```
    """
    s = np.linspace(0, 1, points, dtype=np.float32)
    u, x = _follow(model, jnp.asarray(inputs), solver, jnp.asarray(s))
    return Followed(s, np.asarray(u), None if x is None else np.asarray(x))


@eqx.filter_jit
def _follow(model: Classifier, inputs: Array, solver: Solver, at: Array) -> tuple[Array, Array | None]:
    data = inputs if model.stem is None else model.stem(inputs)
    field = model.ode.field
    context = data if "context" in field.reads else None
    solution = model.ode(data, solver=solver, context=context, at=at, with_characteristic=field.characteristic_dim > 0)
    assert solution.trajectory is not None
    return solution.trajectory, solution.characteristic

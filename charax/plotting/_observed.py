"""The path through the observations of a series."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from charax.fields import Interpolation, ObservedPath

_POINTS = 200


def interpolate_observations(
    times: Float[np.ndarray, "length"], values: Float[np.ndarray, "length channels"], interpolation: Interpolation
) -> tuple[Float[np.ndarray, "points"], Float[np.ndarray, "points channels"]]:
    """Interpolate the observations of one series, as a model that reads them does.

    Args:
        times: The times, in increasing order.
        values: The observations, in scaled units; NaN where one is missing.
        interpolation: The interpolation, as in `ObservedPath.interpolate`.

    Returns:
        A grid of times, and the values of the path at them.

    ```python
    import numpy as np
    from charax.plotting import interpolate_observations

    times, path = interpolate_observations(np.array([0.0, 2.0]), np.array([[1.0], [5.0]]), "linear")
    np.testing.assert_allclose(path[:, 0], 1 + 2 * times, rtol=1e-5)
    ```
    """
    lengths = np.array([len(times)], np.int32)
    path = ObservedPath.interpolate(times[None], values[None], lengths, interpolation=interpolation)
    curve = np.asarray(jax.jit(jax.vmap(path))(jnp.linspace(0, 1, _POINTS))[:, 0])
    return curve[:, 0], curve[:, 1:]

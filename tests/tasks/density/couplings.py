"""How good a coupling is."""

import numpy as np
from jaxtyping import Float

from charax.models.matching import OptimalTransport


def excess_cost(start: Float[np.ndarray, "n d"], end: Float[np.ndarray, "n d"]) -> float:
    """How much larger the sum of squared distances is than that of an optimal coupling, relative to it."""
    cost = lambda partners: float(np.square(start - partners).sum())
    least = cost(end[OptimalTransport()(start, end)])
    return (cost(end) - least) / least

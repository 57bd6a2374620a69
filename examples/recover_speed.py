"""An inverse problem: recover the speed and the width of a pulse from noisy samples.

uₜ + speed·uₓ = 0 is solved by the method of characteristics. The solution is differentiable with respect to the
parameters of the problem, so Adam can fit them. Takes seconds on a laptop:

    python examples/recover_speed.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from charax.pde import Advection, solve
from charax.solve import Solver


def recover(*, speed: float = 1.3, width: float = 0.5, noise: float = 0.05, samples: int = 200) -> Advection:
    """Fit the problem to samples of a pulse.

    Args:
        speed: The true speed.
        width: The true width.
        noise: The standard deviation of the noise.
        samples: The number of samples.

    Returns:
        The fitted problem.
    """
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.uniform(keys[0], (samples, 1), minval=-2, maxval=4)
    t = jax.random.uniform(keys[1], (samples,), maxval=2)
    truth = Advection(speed=[speed], width=width)
    observed = truth.exact(x, t) + noise * jax.random.normal(keys[2], (samples,))

    problem = Advection(speed=[0.7], width=0.8)
    optimizer = optax.adam(0.05)
    # A few fixed steps are enough for a constant speed, and compile faster than adaptive ones.
    solver = Solver("midpoint", steps=2)

    @eqx.filter_jit
    def step(problem: Advection, state):
        loss = lambda problem: jnp.mean((solve(problem, x, t, solver=solver) - observed) ** 2)
        gradient = eqx.filter_grad(loss)(problem)
        # The growth rate is known to be zero; only speed and width are fitted.
        gradient = eqx.tree_at(lambda gradient: gradient.rate, gradient, jnp.zeros_like(gradient.rate))
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(problem, updates), state

    state = optimizer.init(eqx.filter(problem, eqx.is_inexact_array))
    for _ in range(100):
        problem, state = step(problem, state)
    return problem


if __name__ == "__main__":
    fitted = recover()
    print(f"speed {float(fitted.speed[0]):.3f} (true 1.3), width {float(fitted.width):.3f} (true 0.5)")

"""Recover how fast a pulse moves, and how wide it is, from noisy samples of it.

The solution of uₜ + speed·uₓ = 0 is found by following characteristics, and its gradient with respect to the problem's
parameters leads Adam from a wrong guess to the true ones. Takes seconds on a laptop:

    python examples/recover_speed.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from charax.pde import Advection, solve
from charax.solve import Solver


def recover(*, speed: float = 1.3, width: float = 0.5, noise: float = 0.05, samples: int = 200) -> Advection:
    """A problem fitted to samples of a pulse with this speed and width."""
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.uniform(keys[0], (samples, 1), minval=-2, maxval=4)
    t = jax.random.uniform(keys[1], (samples,), maxval=2)
    truth = Advection(speed=[speed], width=width)
    seen = truth.exact(x, t) + noise * jax.random.normal(keys[2], (samples,))

    guess = Advection(speed=[0.7], width=0.8)
    optimizer = optax.adam(0.05)
    # A constant speed needs no more than a few equal steps, and a program without step control compiles faster.
    solver = Solver("midpoint", steps=2)

    @eqx.filter_jit
    def step(problem: Advection, state):
        loss = lambda problem: jnp.mean((solve(problem, x, t, solver=solver) - seen) ** 2)
        gradient = eqx.filter_grad(loss)(problem)
        # The rate of growth is known to be nothing; only speed and width are to be found.
        gradient = eqx.tree_at(lambda it: it.rate, gradient, jnp.zeros_like(gradient.rate))
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(problem, updates), state

    state = optimizer.init(eqx.filter(guess, eqx.is_inexact_array))
    for _ in range(100):
        guess, state = step(guess, state)
    return guess


if __name__ == "__main__":
    found = recover()
    print(f"speed {float(found.speed[0]):.3f} (true 1.3), width {float(found.width):.3f} (true 0.5)")

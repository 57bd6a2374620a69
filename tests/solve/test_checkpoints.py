"""The reverse pass over a solve visits every state, however few were kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from charax.solve._explicit.checkpoints import StateCheckpoints

MAX_STEPS = 300


@jax.jit
def forward_and_reverse(steps):
    """Iterate y ← y·(1 + h) + t and record what the reverse pass visits; every step is saved twice, as if rejected."""
    time = lambda number: number.astype(float) / 7
    step_size = lambda number: 1 / (1.0 + number)
    step = lambda y, t, h: y * (1 + h) + t

    def forward(number, carry):
        y, checkpoints = carry
        checkpoints = checkpoints.save(number, 2 * y, 3 * time(number), step_size(number))
        checkpoints = checkpoints.save(number, y, time(number), step_size(number))
        return step(y, time(number), step_size(number)), checkpoints

    y0 = jnp.array([1.0, 2.0])
    _, checkpoints = lax.fori_loop(0, steps, forward, (y0, StateCheckpoints.allocate(y0, MAX_STEPS)))

    def visit(carry, y, t, h):
        visited, count = carry
        return visited.at[count].set(jnp.concatenate([y, jnp.stack([t, h])])), count + 1

    blank = jnp.full((MAX_STEPS, 4), jnp.nan)
    return checkpoints.finish(steps).reverse(step, visit, (blank, 0)), checkpoints.stride


@pytest.mark.parametrize("steps", [0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 129, 200, MAX_STEPS])
def test_the_reverse_pass_visits_every_state_once_the_last_one_first(steps):
    (visited, count), stride = forward_and_reverse(steps)
    y, expected = np.array([1.0, 2.0]), []
    for number in range(steps):
        t, h = number / 7, 1 / (1 + number)
        expected.append([*y, t, h])
        y = y * (1 + h) + t
    assert count == steps
    assert stride == max(1, 2 ** int(np.ceil(np.log2(max(steps, 1) / 32))))
    np.testing.assert_allclose(visited[:steps], np.reshape(expected, (-1, 4))[::-1], rtol=1e-5)


def test_a_short_solve_allocates_no_more_than_it_can_need():
    checkpoints = StateCheckpoints.allocate(jnp.zeros((5, 3)), max_steps=7)
    assert checkpoints.states.shape == (9, 5, 3)
    assert checkpoints.times.shape == (7,)

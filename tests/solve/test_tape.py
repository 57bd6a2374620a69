"""Going back over a walk: every state again, in reverse, however few were kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from charax.solve._explicit.checkpoints import Tape

MAX_STEPS = 300


@jax.jit
def there_and_back(steps):
    """Walk by y ← y·(1 + h) + t, and note what the way back sees; every step is written twice, as after a rejection."""
    time = lambda number: number.astype(float) / 7
    length = lambda number: 1 / (1.0 + number)
    move = lambda y, t, h: y * (1 + h) + t

    def forth(number, carry):
        y, tape = carry
        tape = tape.write(number, 2 * y, 3 * time(number), length(number))
        tape = tape.write(number, y, time(number), length(number))
        return move(y, time(number), length(number)), tape

    start = jnp.array([1.0, 2.0])
    _, tape = lax.fori_loop(0, steps, forth, (start, Tape.blank(start, MAX_STEPS)))

    def see(carry, y, t, h):
        seen, count = carry
        return seen.at[count].set(jnp.concatenate([y, jnp.stack([t, h])])), count + 1

    return tape.end(steps).unwind(move, see, (jnp.full((MAX_STEPS, 4), jnp.nan), 0)), tape.stride


@pytest.mark.parametrize("steps", [0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 129, 200, MAX_STEPS])
def test_the_way_back_sees_every_state_once_the_last_one_first(steps):
    (seen, count), stride = there_and_back(steps)
    y, expected = np.array([1.0, 2.0]), []
    for number in range(steps):
        t, h = number / 7, 1 / (1 + number)
        expected.append([*y, t, h])
        y = y * (1 + h) + t
    assert count == steps
    assert stride == max(1, 2 ** int(np.ceil(np.log2(max(steps, 1) / 32))))
    np.testing.assert_allclose(seen[:steps], np.reshape(expected, (-1, 4))[::-1], rtol=1e-5)


def test_a_short_walk_keeps_no_more_than_it_may_need():
    tape = Tape.blank(jnp.zeros((5, 3)), max_steps=7)
    assert tape.kept.shape == (9, 5, 3)
    assert tape.times.shape == (7,)

"""`fit` is a plain loop over optax: written out here, for least squares, with NumPy for the order of the data."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from charax.train import LoopConfig, OptimizerConfig, fit
from tests.train.line_task import LineConfig

EPOCHS, BATCH, SEED = 3, 8, 4
RATE, DECAY, CLIP = 0.2, 0.3, 0.5
STEPS = 40 // BATCH

SCHEDULES = {
    "constant": RATE,
    "cosine": optax.warmup_cosine_decay_schedule(RATE / 100, RATE, EPOCHS * STEPS // 10, EPOCHS * STEPS),
    "paper": optax.exponential_decay(RATE, 5 * STEPS, 0.9, staircase=True),
    "warmup": optax.linear_schedule(RATE / 1000, RATE, 1000),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_weights_are_those_of_a_loop_that_is_written_out(schedule):
    config = LineConfig(loop=LoopConfig(epochs=EPOCHS, batch_size=BATCH, seed=SEED))
    data = config.load_data()
    task = config.build_task(data.spec)
    x, y = data.splits.train

    model = task.build(jax.random.split(jax.random.key(SEED))[0])
    weights = {"weight": model.weight, "bias": model.bias}
    optimizer = optax.chain(optax.clip_by_global_norm(CLIP), optax.adamw(SCHEDULES[schedule], weight_decay=DECAY))
    state = optimizer.init(weights)

    @jax.jit
    def step(weights, state, x, y):
        loss = lambda w: jnp.mean(((x @ w["weight"] + w["bias"])[:, 0] - y) ** 2)
        value, gradient = jax.value_and_grad(loss)(weights)
        updates, state = optimizer.update(gradient, state, weights)
        return optax.apply_updates(weights, updates), state, value

    means = []
    for epoch in range(EPOCHS):
        order = np.random.default_rng([SEED, epoch]).permutation(len(x)).reshape(STEPS, BATCH)
        losses = []
        for rows in order:
            weights, state, value = step(weights, state, x[rows], y[rows])
            losses.append(float(value))
        means.append(np.mean(losses))

    how = OptimizerConfig(learning_rate=RATE, weight_decay=DECAY, schedule=schedule, clip=CLIP)
    # The last weights are the best on the train split itself, so that `fit` returns them.
    fitted = fit(task, data.splits._replace(validation=data.splits.train), config.loop, how)
    np.testing.assert_allclose([row["loss"] for row in fitted.history[:-1]], means, rtol=1e-4)
    if fitted.history[-1]["best_epoch"] == EPOCHS:
        np.testing.assert_allclose(fitted.model.weight, weights["weight"], rtol=1e-4)
        np.testing.assert_allclose(fitted.model.bias, weights["bias"], rtol=1e-3, atol=1e-5)

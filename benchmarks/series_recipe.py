"""The recipe of `charax reproduce irregular`: accuracies on held-out parts of the training file, not of the test file.

python -m benchmarks.series_recipe TRAIN.ts.gz > selection.jsonl
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from charax.data import SeriesSplit, load_series_dataset
from charax.models import SeriesDesign, drop_values
from charax.paper._comparison import largest_width
from charax.solve import Solver
from charax.train import flatten_model, use_compilation_cache

SEEDS = (100, 101, 102)
PARAMETERS, BATCH, DROPPED_IN_TRAINING, EMA = 15_369, 32, 0.7, 0.99
LEARNING_RATE, WEIGHT_DECAY = 3e-3, 1e-2


class Try(NamedTuple):
    """One setting, and the percentages of dropped observations that it was tried with."""

    name: str
    design: SeriesDesign
    epochs: int = 40
    noise: float = 0.0
    percents: tuple[int, ...] = (0, 70)


PLAIN = SeriesDesign("cde", count_scale=1.0)
READS = replace(PLAIN, reads_path=True)
BOTH = replace(READS, readout="mean")
MEAN = replace(PLAIN, readout="mean")
TRIES = (
    Try("cde", PLAIN),
    Try("cde reads", READS),
    Try("cde mean", MEAN),
    Try("cde reads mean", BOTH),
    Try("gru", replace(PLAIN, method="gru")),
    Try("gru mean", replace(MEAN, method="gru")),
    Try("cde reads mean linear", replace(BOTH, interpolation="linear"), 100),
    Try("cde reads mean", BOTH, 100),
    Try("gru mean", replace(MEAN, method="gru"), 100),
    Try("cde reads mean", BOTH, 100, 0.3, (70,)),
    Try("gru mean", replace(MEAN, method="gru"), 100, 0.3, (70,)),
    Try("hybrid reads mean", replace(BOTH, method="hybrid"), 100, 0.3, (70,)),
)


def train_and_evaluate(path: str, one: Try, percent: int, seed: int) -> dict[str, float]:
    """Train on three quarters of the series for all epochs; the accuracy of the last weights on the others."""
    loaded = load_series_dataset(path, dropped_percent=percent, seed=seed, validation_fraction=0.05, test_fraction=0.25)
    train = SeriesSplit(*(np.concatenate(both) for both in zip(loaded.train, loaded.validation, strict=True)))
    held_out = jax.tree.map(jnp.asarray, loaded.test)
    channels, classes = train.values.shape[2], len(loaded.classes)
    design = replace(one.design, count_scale=float(f"{1 / loaded.scaling.length:.0e}"))
    width = largest_width(lambda width: replace(design, width=width).count(channels, classes), PARAMETERS)
    key = jax.random.key(seed)
    params, unflatten = flatten_model(replace(design, width=width).build(channels, classes, key=key))
    count = len(train.lengths)
    steps = max(8, count // BATCH)
    schedule = optax.warmup_cosine_decay_schedule(
        LEARNING_RATE / 100, LEARNING_RATE, max(1, one.epochs * steps // 10), one.epochs * steps
    )
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=WEIGHT_DECAY))
    solver = Solver("midpoint", steps=1 if design.method in ("cde", "hybrid") else 8)

    def logits(params, rows: SeriesSplit) -> jax.Array:
        model = unflatten(params)
        return model(rows.times, rows.values, rows.lengths, solver=solver).values  # pyright: ignore[reportCallIssue]

    def loss(params, rows: SeriesSplit, key):
        drop_key, noise_key, _ = jax.random.split(key, 3)
        values = drop_values(jnp.asarray(rows.values), DROPPED_IN_TRAINING, drop_key)
        values = values + one.noise * jax.random.normal(noise_key, values.shape)
        out = logits(params, rows._replace(values=values))
        return optax.softmax_cross_entropy_with_integer_labels(out, rows.targets).mean()

    @jax.jit
    def epoch(state, data: SeriesSplit, order, first):
        def step(state, row_and_number):
            params, optimizer_state, average = state
            rows, number = row_and_number
            batch = jax.tree.map(lambda leaf: leaf[rows], data)
            gradient = jax.grad(loss)(params, batch, jax.random.fold_in(key, number))
            updates, optimizer_state = optimizer.update(gradient, optimizer_state, params)
            params = params + updates
            decay = jnp.minimum(EMA, (1 + number) / (10 + number))
            return (params, optimizer_state, decay * average + (1 - decay) * params), None

        return jax.lax.scan(step, state, (order, first + jnp.arange(order.shape[0])))[0]

    state, generator = (params, optimizer.init(params), params), np.random.default_rng(seed)
    data, size = jax.tree.map(jnp.asarray, train), min(BATCH, count)
    for number in range(one.epochs):
        often = -(-steps * size // count)
        order = np.concatenate([generator.permutation(count) for _ in range(often)])[: steps * size]
        state = epoch(state, data, order.reshape(steps, size), number * steps)
    out = jax.jit(logits)(state[2], held_out)
    losses = optax.softmax_cross_entropy_with_integer_labels(out, held_out.targets)
    accuracy = (out.argmax(axis=1) == held_out.targets).mean()
    return {"accuracy": float(accuracy), "loss": float(losses.mean()), "parameters": int(params.size)}


def rows(path: str, epochs: int | None) -> Iterator[dict[str, Any]]:
    """One row for each setting and percentage."""
    for one in TRIES:
        chosen = one._replace(epochs=epochs or one.epochs)
        for percent in chosen.percents:
            began = time.process_time()
            results = [train_and_evaluate(path, chosen, percent, seed) for seed in SEEDS]
            yield {
                "name": chosen.name,
                "epochs": chosen.epochs,
                "noise": chosen.noise,
                "dropped_percent": percent,
                "accuracy_mean": float(np.mean([each["accuracy"] for each in results])),
                "accuracies": [round(each["accuracy"], 3) for each in results],
                "loss_mean": float(np.mean([each["loss"] for each in results])),
                "parameters": results[0]["parameters"],
                "cpu_seconds": round((time.process_time() - began) / len(SEEDS), 1),
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train_file")
    parser.add_argument("--epochs", type=int, help="instead of those of each setting")
    arguments = parser.parse_args()
    use_compilation_cache()
    for row in rows(arguments.train_file, arguments.epochs):
        print(json.dumps(row), flush=True)

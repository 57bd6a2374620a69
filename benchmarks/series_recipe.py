"""The recipe of `charax reproduce irregular`: accuracies on held-out parts of the training file, not of the test file.

python -m benchmarks.series_recipe TRAIN.ts.gz > selection.jsonl
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
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

SEEDS = (100, 101, 102, 103)
PARAMETERS, BATCH, EMA = 15_369, 32, 0.99


class Try(NamedTuple):
    """One setting, and the percentages of dropped observations that it was tried with."""

    name: str
    design: SeriesDesign
    epochs: int = 100
    noise: float = 0.3
    percents: tuple[int, ...] = (70,)
    drop: float = 0.7
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2
    smoothing: float = 0.0


PLAIN = SeriesDesign("cde", count_scale=1.0)
READS = replace(PLAIN, reads_path=True)
MEAN = replace(PLAIN, readout="mean")
BOTH = replace(READS, readout="mean")
HYBRID, GRU = replace(BOTH, method="hybrid"), replace(MEAN, method="gru")
SUMMARY = replace(HYBRID, summary_start=True)
LINEAR = replace(SUMMARY, interpolation="linear")
_FIRST = {"epochs": 40, "noise": 0.0, "percents": (0, 70)}
TRIES = {
    "JapaneseVowels": (
        Try("cde", PLAIN, **_FIRST),
        Try("cde reads", READS, **_FIRST),
        Try("cde mean", MEAN, **_FIRST),
        Try("cde reads mean", BOTH, **_FIRST),
        Try("gru", replace(PLAIN, method="gru"), **_FIRST),
        Try("gru mean", GRU, **_FIRST),
        Try("cde reads mean linear", replace(BOTH, interpolation="linear"), noise=0.0, percents=(0, 70)),
        Try("cde reads mean", BOTH, noise=0.0, percents=(0, 70)),
        Try("gru mean", GRU, noise=0.0, percents=(0, 70)),
        Try("hybrid", HYBRID),
        Try("cde", BOTH),
        Try("gru", GRU),
        Try("hybrid linear", replace(HYBRID, interpolation="linear")),
        Try("hybrid", HYBRID, drop=0.3),
        Try("hybrid", HYBRID, noise=0.6),
        Try("hybrid", HYBRID, weight_decay=0.1),
        Try("hybrid", HYBRID, smoothing=0.1),
        Try("hybrid without counts", replace(HYBRID, count_scale=None)),
        Try("hybrid", HYBRID, learning_rate=1e-2),
        Try("hybrid summary", SUMMARY),
        Try("hybrid", HYBRID, drop=0.85),
        Try("hybrid summary", SUMMARY, epochs=150, drop=0.85),
        Try("cde summary", replace(SUMMARY, method="cde")),
        Try("hybrid summary", SUMMARY, noise=0.5, weight_decay=0.1, smoothing=0.1),
        Try("hybrid summary linear", LINEAR),
        Try("hybrid summary, 32 states", replace(SUMMARY, state_dim=32)),
        Try("hybrid summary linear", LINEAR, noise=0.5),
    ),
    "BasicMotions": (Try("hybrid summary linear", LINEAR, epochs=50, noise=0.0),),
}


def train_and_evaluate(path: str, one: Try, percent: int, seed: int) -> dict[str, float]:
    """Train on three quarters of the series for all epochs; the accuracy of the last weights on the others."""
    loaded = load_series_dataset(path, dropped_percent=percent, seed=seed, validation_fraction=0.05, test_fraction=0.25)
    train = SeriesSplit(*(np.concatenate(both) for both in zip(loaded.train, loaded.validation, strict=True)))
    held_out = jax.tree.map(jnp.asarray, loaded.test)
    channels, classes = train.values.shape[2], len(loaded.classes)
    design = one.design
    if design.count_scale is not None:
        design = replace(design, count_scale=float(f"{1 / loaded.scaling.length:.0e}"))
    width = largest_width(lambda width: replace(design, width=width).count(channels, classes), PARAMETERS)
    key = jax.random.key(seed)
    params, unflatten = flatten_model(replace(design, width=width).build(channels, classes, key=key))
    count = len(train.lengths)
    steps = max(8, count // BATCH)
    schedule = optax.warmup_cosine_decay_schedule(
        one.learning_rate / 100, one.learning_rate, max(1, one.epochs * steps // 10), one.epochs * steps
    )
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=one.weight_decay))
    solver = Solver("midpoint", steps=1 if design.method in ("cde", "hybrid") else 8)

    def logits(params, rows: SeriesSplit) -> jax.Array:
        model = unflatten(params)
        return model(rows.times, rows.values, rows.lengths, solver=solver).values  # pyright: ignore[reportCallIssue]

    def loss(params, rows: SeriesSplit, key):
        drop_key, noise_key, _ = jax.random.split(key, 3)
        values = drop_values(jnp.asarray(rows.values), one.drop, drop_key)
        values = values + one.noise * jax.random.normal(noise_key, values.shape)
        out = logits(params, rows._replace(values=values))
        truth = optax.smooth_labels(jax.nn.one_hot(rows.targets, classes), one.smoothing)
        return optax.softmax_cross_entropy(out, truth).mean()

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


def rows(path: str, dataset: str, epochs: int | None) -> Iterator[dict[str, Any]]:
    """One row for each setting and percentage."""
    for one in TRIES[dataset]:
        chosen = one._replace(epochs=epochs or one.epochs)
        for percent in chosen.percents:
            began = time.process_time()
            results = [train_and_evaluate(path, chosen, percent, seed) for seed in SEEDS]
            yield {
                "dataset": dataset,
                **{key: value for key, value in chosen._asdict().items() if key not in ("design", "percents")},
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
    name = Path(arguments.train_file).name.partition("_")[0]
    for row in rows(arguments.train_file, name, arguments.epochs):
        print(json.dumps(row), flush=True)

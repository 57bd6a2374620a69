"""Neural CDEs of equal sizes, trained by charax and by torchcde on the same series, one after the other.

CHARAX_DATA=… python -m benchmarks.series_training --seeds 2

Both start from the same weights and see the same dropped observations, as in `charax reproduce irregular`; epochs,
mini-batches, augmentation, optimizer and averaged weights are the same. Results are added to
docs/results/irregular/torchcde.jsonl, and what is there is not repeated.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any, get_args

import jax
import numpy as np

from benchmarks.peers.process import ROOT, Peer
from benchmarks.rows import arrays_of
from charax.data import SeriesSplit
from charax.nn import split_key
from charax.paper.irregular import FIRST_SEED, DatasetName, load_sized, make_config
from charax.tasks import SeriesConfig
from charax.train import Silent, TaskData, fit, use_compilation_cache

RESULTS = ROOT / "docs" / "results" / "irregular" / "torchcde.jsonl"


class Clock(Silent):
    """CPU seconds at the end of each epoch."""

    def __init__(self):
        self.seconds: list[float] = []

    def epoch(self, row: dict[str, Any]) -> None:
        self.seconds.append(time.process_time())

    def total(self) -> tuple[float, float]:
        """Of all epochs without compilation, which is in the first."""
        each = (self.seconds[-1] - self.seconds[0]) / max(len(self.seconds) - 1, 1)
        return each * len(self.seconds), each


def train_charax(config: SeriesConfig, data: TaskData) -> dict[str, Any]:
    """The accuracy on the test series, and the CPU seconds of training."""
    clock, began = Clock(), time.process_time()
    fitted = fit(config.build_task(data.spec), data.splits, config.loop, config.optimizer, progress=clock)
    cpu_seconds, each = clock.total()
    return {
        "accuracy": fitted.history[-1]["test_accuracy"],
        "cpu_seconds": cpu_seconds,
        "compile_cpu_seconds": clock.seconds[0] - began - each,
    }


def prepare_torchcde(config: SeriesConfig, data: TaskData, peer: Peer) -> None:
    """Give torchcde our series, initial weights and recipe."""
    train, test = data.splits.train, data.splits.test
    assert isinstance(train, SeriesSplit)
    design = config.design(data.spec)
    key, _ = split_key(jax.random.key(config.loop.seed))
    model = config.build_task(data.spec).build(key)
    pack = lambda split, part: {f"{part} {name}": np.asarray(getattr(split, name)) for name in split._fields}
    arrays = arrays_of(model) | pack(train, "train") | pack(test, "test")
    del arrays["test targets"]
    optimizer, batch_size = config.optimizer, config.loop.batch_size or 32
    peer.prepare(
        "series training",
        {name: value.astype(np.int64) if value.dtype.kind == "i" else value for name, value in arrays.items()},
        epochs=config.loop.epochs,
        batch_size=batch_size,
        steps=len(train.lengths) // batch_size,
        learning_rate=optimizer.learning_rate,
        weight_decay=optimizer.weight_decay,
        clip=optimizer.clip,
        ema=optimizer.ema,
        drop=config.drop_augmentation,
        noise=config.noise_augmentation,
        count_scale=design.count_scale,
        seed=config.loop.seed,
    )


def train_torchcde(config: SeriesConfig, data: TaskData, peer: Peer) -> dict[str, Any]:
    """The same by torchcde."""
    prepare_torchcde(config, data, peer)
    nfe = peer.run("train")["nfe"]
    out = peer.outputs("test")
    accuracy = float((out["logits"].argmax(axis=1) == np.asarray(data.splits.test.targets)).mean())
    return {"accuracy": accuracy, "cpu_seconds": float(out["cpu_seconds"]), "nfe": nfe}


def main() -> None:
    """Run what is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", nargs="+", choices=get_args(DatasetName), default=get_args(DatasetName))
    parser.add_argument("--dropped-percent", nargs="+", type=int, default=[70, 0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="instead of those of the recipe")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    use_compilation_cache()
    known = [json.loads(line) for line in asked.output.read_text().splitlines()] if asked.output.exists() else []
    for seed in range(FIRST_SEED, FIRST_SEED + asked.seeds):
        for dataset in asked.dataset:
            for percent in asked.dropped_percent:
                case = {"dataset": dataset, "dropped_percent": percent, "seed": seed}
                if any(case.items() <= row.items() for row in known):
                    continue
                config, data = load_sized(make_config(dataset, "cde", percent, seed, epochs=asked.epochs))
                with Peer() as peer:
                    ours, theirs = train_charax(config, data), train_torchcde(config, data, peer)
                row = {
                    **case,
                    "epochs": config.loop.epochs,
                    "parameters": config.design(data.spec).count(len(data.spec.scaling.channels), data.spec.outputs),
                    **{f"charax_{name}": value for name, value in ours.items()},
                    **{f"torchcde_{name}": value for name, value in theirs.items()},
                    "cpu_seconds_ratio": theirs["cpu_seconds"] / ours["cpu_seconds"],
                    # Next to other processes both take more CPU seconds than alone.
                    "cores": len(os.sched_getaffinity(0)),
                    "load_average": os.getloadavg()[1],
                }
                print(json.dumps(row), flush=True)
                with asked.output.open("a") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

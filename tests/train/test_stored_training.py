"""Training on samples that stay on disk: the metrics of memory, also when it is interrupted."""

from typing import Any

import numpy as np
import pytest

from charax.data._stored import ImageRows, MappedRows
from charax.train import LoopConfig, OptimizerConfig, Silent, Splits, fit
from tests.train.line_task import Points

LOOP = LoopConfig(epochs=3, batch_size=8, checkpoint_steps=2)
OPTIMIZER = OptimizerConfig(0.1, 0.0, "constant")


@pytest.fixture
def stored(line, tmp_path) -> Splits:
    """The splits of the line, with their positions on disk."""

    def store(points: Points, name: str) -> Any:
        np.save(tmp_path / f"{name}.npy", points.x)
        return points._replace(x=MappedRows(tmp_path / f"{name}.npy", 128, points.x.shape, points.x.dtype))

    return Splits(*(store(points, name) for name, points in line.splits._asdict().items()))


def without_times(history):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in history]


class Stopping(Silent):
    """Stops a run as a crash would."""

    def step(self, epoch, step, metrics):
        if (epoch, step) == (1, 3):
            raise ZeroDivisionError


def test_samples_on_disk_give_the_metrics_of_memory_bit_for_bit_also_when_interrupted(line, stored, tmp_path):
    memory = fit(line.task, line.splits, LOOP, OPTIMIZER)
    whole = fit(line.task, stored, LOOP, OPTIMIZER)
    for one, two in zip(without_times(whole.history), without_times(memory.history), strict=True):
        assert one == pytest.approx(two, abs=1e-6)
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(ZeroDivisionError):
        fit(line.task, stored, LOOP, OPTIMIZER, folder=folder, progress=Stopping())
    assert (folder / "checkpoints").is_dir()
    resumed = fit(line.task, stored, LOOP, OPTIMIZER, folder=folder)
    assert without_times(resumed.history) == without_times(whole.history)


def decode(files, shape):
    """Made of the names: what another process must see, too."""
    return np.stack([np.full(shape, int(file.name), np.uint8) for file in files])


@pytest.mark.slow
def test_images_are_decoded_by_other_processes_in_the_same_order(tmp_path):
    from charax.train import Devices
    from charax.train._feed import read_batches

    split = Points(ImageRows([tmp_path / str(i) for i in range(12)], (2, 2, 1), decode), np.arange(12))
    order = np.random.default_rng(0).permutation(12).reshape(3, 4)
    found = list(read_batches(Devices(), split, order, first=1))
    assert [batch.y.tolist() for batch in found] == order[1:].tolist()
    assert [np.asarray(batch.x)[:, 0, 0, 0].tolist() for batch in found] == order[1:].tolist()

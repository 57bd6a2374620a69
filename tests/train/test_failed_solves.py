"""A backward solve can fail only as an exception; that is a skipped step, whichever way JAX passes it on."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.solve import Solver
from charax.train import Diverged, LoopConfig, OptimizerConfig, fit
from charax.train._failure import catch_failed_solve

LOOP = LoopConfig(epochs=4, batch_size=8)
FAST = OptimizerConfig(learning_rate=0.1, weight_decay=0.0, schedule="constant")
MESSAGE = "INTERNAL: CpuCallback error: EquinoxRuntimeError: the maximum number of solver steps was reached"


@pytest.fixture
def backsolve(line):
    """The task with a solver that raises, and its data with some rows that are too far away."""
    task = dataclasses.replace(line.task, solver=Solver("euler", steps=1, adjoint="backsolve"))

    def poisoned(rows: slice):
        x = line.splits.train.x.copy()
        x[rows] = 1e3
        return task, line.splits._replace(train=line.splits.train._replace(x=x))

    return poisoned


@pytest.mark.parametrize("raised", [jax.errors.JaxRuntimeError, ValueError], ids=["asynchronous", "synchronous"])
def test_either_exception_is_a_failed_solve(raised):
    def fail(x):
        raise raised(MESSAGE)

    assert catch_failed_solve(fail, 1) is None


@pytest.mark.parametrize("raised", [jax.errors.JaxRuntimeError, ValueError, TypeError])
def test_any_other_exception_is_not(raised):
    def fail():
        raise raised("shapes (2,) and (3,) do not fit")

    with pytest.raises(raised, match="do not fit"):
        catch_failed_solve(fail)


def test_a_result_is_waited_for_and_a_real_error_of_equinox_is_caught():
    check = jax.jit(lambda x: eqx.error_if(x, (x > 1).any(), "too large"))
    np.testing.assert_array_equal(catch_failed_solve(check, jnp.ones(3)), np.ones(3))
    assert catch_failed_solve(check, 2 * jnp.ones(3)) is None


def test_such_a_step_is_skipped_and_counted_and_the_state_outlives_it(backsolve):
    history = fit(*backsolve(slice(0, 1)), LOOP, FAST).history
    assert [row["skipped"] for row in history[:-1]] == [1, 2, 3, 4]
    assert [row["step"] for row in history[:-1]] == [5, 10, 15, 20]
    assert history[-1]["test_loss"] < 1


def test_ten_in_a_row_are_divergence(backsolve):
    with pytest.raises(Diverged, match=r"10 steps in a row.*the solve failed each time: take more than 1 steps"):
        fit(*backsolve(slice(None)), LOOP, FAST)


@pytest.fixture
def diverging(tmp_path) -> list[object]:
    """The arguments of a command each of whose backward solves fails."""
    x = np.full((120, 2), 1e3, np.float32)
    np.savez(tmp_path / "far.npz", x=x, y=x[:, 0])
    return ["train", "line", "--data", tmp_path / "far.npz", "--adjoint", "backsolve", "--output", tmp_path]


def test_at_the_command_line_that_is_status_1(refuse, diverging):
    assert "the solve failed each time" in refuse(*diverging, status=1)


def test_with_synchronous_dispatch_too(start, diverging):
    process = start(*diverging, JAX_CPU_ENABLE_ASYNC_DISPATCH="false")
    output, errors = process.communicate()
    assert process.returncode == 1, errors
    assert output == ""
    assert "the solve failed each time" in errors
    assert "Traceback" not in errors

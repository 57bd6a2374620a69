"""What a config leads to, part by part: so that a test can say what each of its fields changes."""

import dataclasses
import functools
import hashlib
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from charax.train import AbstractConfig, SolverConfig


class Case(NamedTuple):
    """Another value of a field, and the part that it changes."""

    base: AbstractConfig
    change: dict[str, Any]
    part: str


def shared_cases(base: AbstractConfig) -> dict[str, Case]:
    """The fields that every task has. `optimizer` and the rest of `loop` are for the engine, and are tested there."""
    other = {
        "solver": {"solver": "heun", "steps": 3},
        "steps": {"steps": 7},
        "rtol": {"solver": "bosh3", "rtol": 1e-2},
        "atol": {"solver": "bosh3", "rtol": 1e-3, "atol": 1e-1},
        "adjoint": {"adjoint": "backsolve"},
        "precision": {"precision": "bfloat16"},
    }
    part = lambda name: "solver" if name != "precision" or base.name in ("classify", "regress") else "refused"
    cases = {
        f"solver.{field.name}": Case(base, {"solver": SolverConfig(**other[field.name])}, part(field.name))
        for field in dataclasses.fields(SolverConfig)
    }
    return {
        **cases,
        "optimizer": Case(base, {"optimizer": dataclasses.replace(base.optimizer, clip=7.0)}, "training"),
        "loop": Case(base, {"loop": dataclasses.replace(base.loop, epochs=7)}, "training"),
        "loop.seed": Case(base, {"loop": dataclasses.replace(base.loop, seed=5)}, "data"),
    }


def fields_of(config_type: type[AbstractConfig]) -> list[str]:
    """The names of all fields of a config, with those of its solver and the seed."""
    names = [field.name for field in dataclasses.fields(config_type)]  # pyright: ignore[reportArgumentType]
    names.remove("solver")
    return [*names, *(f"solver.{field.name}" for field in dataclasses.fields(SolverConfig)), "loop.seed"]


def changed_parts(case: Case) -> set[str]:
    """The parts in which a config with the change differs from the one without; or `refused`."""
    before = observe(case.base)
    try:
        after = observe(dataclasses.replace(case.base, **case.change))  # pyright: ignore[reportArgumentType]
    except ValueError:
        return {"refused"}
    return {name for name in before if before[name] != after[name]}


@functools.cache
def observe(config: AbstractConfig) -> dict[str, Any]:
    """The data, their description, the model, the solver, the rest of the task, and what the engine is given."""
    data = config.load_data()
    task = config.build_task(data.spec)
    digest = hashlib.blake2b()
    for leaf in jax.tree.leaves(data.splits):
        digest.update(np.ascontiguousarray(leaf).data)
    fields = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    solver, spec = fields.pop("solver"), fields.pop("spec")
    return {
        "data": digest.hexdigest(),
        "spec": spec,
        "model": eqx.tree_pformat(eqx.filter_eval_shape(task.build, jax.random.key(0))),  # all of it, unlike `repr`
        "solver": (repr(solver), float(solver.rtol), float(solver.atol)),
        "task": fields,
        "training": (config.optimizer, config.loop),
    }

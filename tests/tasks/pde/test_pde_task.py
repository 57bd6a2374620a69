"""What is built from a `PDEConfig`, field by field."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.pde import PROBLEMS
from charax.tasks.pde import PDEConfig
from charax.tasks.pde._apply import compile_solves, quick_solves
from charax.tasks.pde._plots import choose_variable
from charax.train import LoopConfig, quick_compilation
from tests.tasks.fields import Case, changed_parts, fields_of, shared_cases


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> dict[str, Case]:
    grid = tmp_path_factory.mktemp("data") / "grid.npz"
    x, t = np.linspace(0, 1, 10), np.linspace(0, 1, 9)
    np.savez(grid, x=x, t=t, u=np.sin(x[:, None] - t))
    base = PDEConfig(data="paper", method="c-node", width=4, points=20, loop=LoopConfig(epochs=2, batch_size=16))
    equation = replace(base, method="equation")
    return {
        **shared_cases(base),
        "data": Case(base, {"data": "advection"}, "data"),
        "method": Case(base, {"method": "node-fair"}, "model"),
        "width": Case(base, {"width": 5}, "model"),
        "velocity_reads": Case(equation, {"velocity_reads": ("x", "u")}, "model"),
        "source_reads": Case(equation, {"source_reads": ("t",)}, "model"),
        "refine": Case(equation, {"refine": False}, "model"),
        "terms": Case(equation, {"terms": ("exp(u)",)}, "model"),
        "known_source": Case(equation, {"known_source": ("-0.2*u",)}, "model"),
        "known_initial": Case(equation, {"known_initial": ("2*x",)}, "model"),
        "period": Case(equation, {"period": (2.0,)}, "model"),
        "flux": Case(equation, {"flux": "convex"}, "task"),
        "noise": Case(base, {"noise": 0.1}, "data"),
        "points": Case(base, {"points": 30}, "data"),
        "until": Case(replace(base, data=str(grid)), {"until": 0.5}, "data"),
        "extrapolate": Case(base, {"extrapolate": True}, "task"),
    }


@pytest.mark.parametrize("field", fields_of(PDEConfig))
def test_every_field_changes_what_it_is_for(cases, field):
    assert cases[field].part in changed_parts(cases[field])


def test_programs_have_options_for_cpus_only(monkeypatch):
    config = PDEConfig(data="paper", method="mlp", points=20)
    task = config.build_task(config.load_data().spec)
    assert task.compiler_options == quick_solves() == {**quick_compilation(), "xla_cpu_use_fusion_emitters": False}
    asked = []
    monkeypatch.setattr(eqx, "filter_jit", lambda function, **options: asked.append(options) or function)
    double = compile_solves(lambda number: 2 * number)
    assert not asked  # the platform is not asked for before the first call
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert task.compiler_options == {}
    assert (double(1), double(2), asked) == (2, 4, [{"compiler_options": None}])


def test_an_epoch_repeats_few_samples_alike():
    data = PDEConfig(points=20, loop=LoopConfig(batch_size=16)).load_data()
    assert len(data.splits.train.t) >= 50 * 16
    assert len(data.splits.train.t) % len({tuple(row) for row in data.splits.train.x.tolist()}) == 0


def test_coefficients_are_tabulated_and_plotted_over_what_they_read():
    config = PDEConfig(data="variable-advection", method="equation", width=2, points=20, velocity_reads=("x",))
    data = config.load_data()
    task = config.build_task(data.spec)
    model = task.build(jax.random.key(0))
    line = eqx.tree_at(lambda it: it.field.velocity.line.layers[-1].weight, model, replace_fn=jnp.ones_like)
    assert (choose_variable(model, "velocity"), choose_variable(model, "source")) == ("x", "u")
    x, learned, exact = task.tabulate_equation(line, PROBLEMS["variable-advection"](), over="x")
    np.testing.assert_allclose(x[[0, -1]], [data.spec.lower[0], data.spec.upper[0]], rtol=1e-6)
    assert np.all(np.diff(learned["velocity"]) > 0)
    assert np.ptp(task.tabulate_equation(line)[1]["velocity"]) == 0
    problem = PROBLEMS["variable-advection"]()
    column = jnp.asarray(x)[:, None]
    middle = jnp.full(len(x), (data.spec.lower[1] + data.spec.upper[1]) / 2)
    np.testing.assert_allclose(exact["velocity"], problem.velocity(column, middle, middle)[:, 0])

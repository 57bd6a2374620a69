"""Conservative flux form networks on Burgers' equation, next to the structured form: `python -m benchmarks.flux_form`.

A compact implementation of two published relatives, whose programs are not available. Both update cell averages by
differences of numerical fluxes at the faces, with SSP-RK3 steps, and are trained through their steps on pieces of
trajectories (a recurrent loss):

- `stencil`: the numerical flux is a network of the neighboring cell averages (Chen, Gelb and Lee, 2024);
- `kurganov-tadmor`: the flux f(u) is a network, in the scheme of Kurganov and Tadmor with limited slopes, which is
  entropy stable (Liu, Li, Gelb and Lee, arXiv 2411.01746).

They see whole profiles until 0.8, before any shock, of 1, 10 or 50 solutions; the first of them is the one that is
asked for, u₀ = 2 + sin x, until 1.8. The structured form has 1,000 scattered samples of that solution
(`python -m benchmarks.shocks`). Width, stencil and learning rate are chosen on validation trajectories first. Writes
docs/results/flux-form/flux-form.json, of which `python -m benchmarks.figures flux-form` makes a figure.
"""

import functools
import itertools
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from charax.nn import Network, mlp

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "flux-form" / "flux-form.json"
RECORDS = OUTPUT.parents[1] / "shocks" / "records"
CELLS, STEP, STEPS_PER_PROFILE = 64, 0.01, 5
"""Cells of [0, 2π]; the time step, 0.4 of the largest stable one; steps between stored profiles."""
SEEN, SHOCK, LATEST = 0.8, 1.0, 1.8
UPDATES, BATCH = 600, 8
SEEDS = 3
Kind = Literal["stencil", "kurganov-tadmor"]
Cells = Float[Array, "*batch cells"]


class StencilFlux(eqx.Module):
    """The numerical flux at a face as a network of the cells around it."""

    network: Network
    reach: int = eqx.field(static=True)
    """Cells on either side."""

    def __call__(self, u: Cells) -> Cells:
        """The flux at the right face of every cell of a circle."""
        around = [jnp.roll(u, shift, axis=-1) for shift in range(self.reach - 1, -self.reach - 1, -1)]
        return _apply(self.network, jnp.stack(around, axis=-1))


class LimitedFlux(eqx.Module):
    """Kurganov and Tadmor's numerical flux of a flux function f(u), with minmod slopes."""

    flux: Callable[[Array], Array]

    def __call__(self, u: Cells) -> Cells:
        """The flux at the right face of every cell of a circle."""
        ahead, behind = jnp.roll(u, -1, axis=-1) - u, u - jnp.roll(u, 1, axis=-1)
        slope = jnp.where(ahead * behind > 0, jnp.sign(ahead) * jnp.minimum(jnp.abs(ahead), jnp.abs(behind)), 0)
        left, right = u + slope / 2, jnp.roll(u - slope / 2, -1, axis=-1)
        derivative = lambda u: jax.jvp(self.flux, (u,), (jnp.ones_like(u),))
        (f_left, a_left), (f_right, a_right) = derivative(left), derivative(right)
        speed = jnp.maximum(jnp.abs(a_left), jnp.abs(a_right))
        return (f_left + f_right) / 2 - speed * (right - left) / 2


class NetworkFlux(eqx.Module):
    """A flux function f(u)."""

    network: Network

    def __call__(self, u: Array) -> Array:
        return _apply(self.network, u[..., None])


def _apply(network: Network, inputs: Array) -> Array:
    """A network of values around 2 at once."""
    return network((inputs - 2).reshape(-1, inputs.shape[-1]))[:, 0].reshape(inputs.shape[:-1])


NumericalFlux = StencilFlux | LimitedFlux


def advance(flux: NumericalFlux, u: Cells, profiles: int) -> Float[Array, "profiles *batch cells"]:
    """The profiles after u, each `STEPS_PER_PROFILE` strong-stability-preserving Runge–Kutta steps of order 3 later."""
    width = 2 * np.pi / u.shape[-1]

    def euler(u: Array) -> Array:
        out = flux(u)
        return u - STEP / width * (out - jnp.roll(out, 1, axis=-1))

    def step(u: Array, _: None) -> tuple[Array, None]:
        first = euler(u)
        second = 0.75 * u + 0.25 * euler(first)
        return u / 3 + 2 / 3 * euler(second), None

    def profile(u: Array, _: None) -> tuple[Array, Array]:
        u, _ = lax.scan(step, u, None, length=STEPS_PER_PROFILE)
        return u, u

    return lax.scan(profile, u, None, length=profiles)[1]


class Wave(NamedTuple):
    """The initial value mean + amplitude·sin(x + phase)."""

    mean: float
    amplitude: float
    phase: float


ASKED = Wave(2.0, 1.0, 0.0)


def exact_averages(wave: Wave, times: np.ndarray, cells: int = CELLS) -> Float[np.ndarray, "times cells"]:
    """Averages of the entropy solution over the cells, from the potential of Hopf and Lax: exact, also after shocks."""
    faces = np.linspace(0, 2 * np.pi, cells + 1)
    mean, amplitude, phase = wave
    potential = lambda y: mean * y - amplitude * np.cos(y + phase)
    rows = []
    for t in times:
        u = np.linspace(mean - amplitude, mean + amplitude, 4001)[:, None]
        rows.append((potential(faces - t * u) + t * u**2 / 2).min(axis=0) if t > 0 else potential(faces))
    return np.diff(rows, axis=1) / np.diff(faces)


def draw_waves(count: int, seed: int) -> list[Wave]:
    """Random waves, none of which has a shock before 0.83."""
    random = np.random.default_rng(seed)
    ranges = (1.5, 2.5), (0.5, 1.2), (0, 2 * np.pi)
    return [Wave(*(random.uniform(*ends) for ends in ranges)) for _ in range(count)]


def observe(waves: Sequence[Wave], noise: float, seed: int) -> Float[np.ndarray, "waves times cells"]:
    """Profiles until `SEEN`, with noise relative to the range of u."""
    times = np.arange(0, SEEN + 1e-9, STEP * STEPS_PER_PROFILE)
    u = np.stack([exact_averages(wave, times) for wave in waves])
    return u + 2 * noise * np.random.default_rng([seed, 1]).standard_normal(u.shape)


class Design(NamedTuple):
    """What was tried."""

    kind: Kind
    width: int
    reach: int
    rate: float
    window: int = 1
    """Stored profiles that a piece of a trajectory has after its first."""


def build(design: Design, key: PRNGKeyArray) -> NumericalFlux:
    """An untrained numerical flux."""
    inputs = 2 * design.reach if design.kind == "stencil" else 1
    network = mlp([inputs, design.width, design.width, 1], key=key)
    return StencilFlux(network, design.reach) if design.kind == "stencil" else LimitedFlux(NetworkFlux(network))


@functools.cache
def _trainer(design: Design) -> Callable[..., NumericalFlux]:
    """Training of several networks at once, each with data and a learning rate of its own."""

    def train(key: PRNGKeyArray, rate: Array, data: Float[Array, "waves times cells"]) -> NumericalFlux:
        key, start = jax.random.split(key)
        model, static = eqx.partition(build(design, start), eqx.is_inexact_array)
        scale = optax.cosine_decay_schedule(1.0, UPDATES)
        optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())

        def loss(model: Any, windows: Float[Array, "batch times cells"]) -> Array:
            out = advance(eqx.combine(model, static), windows[:, 0], design.window)
            return jnp.mean((jnp.moveaxis(out, 0, 1) - windows[:, 1:]) ** 2)

        def update(carry: tuple[Any, Any], number: Array) -> tuple[tuple[Any, Any], None]:
            model, state = carry
            wave, first = jax.random.split(jax.random.fold_in(key, number))
            wave = jax.random.randint(wave, (BATCH,), 0, len(data))
            first = jax.random.randint(first, (BATCH,), 0, data.shape[1] - design.window)
            windows = jax.vmap(lambda i, j: lax.dynamic_slice_in_dim(data[i], j, design.window + 1))(wave, first)
            direction, state = optimizer.update(jax.grad(loss)(model, windows), state)
            model = jax.tree.map(lambda leaf, step: leaf - rate * scale(number) * step, model, direction)
            return (model, state), None

        (model, _), _ = lax.scan(update, (model, optimizer.init(model)), jnp.arange(UPDATES))
        return model

    static = eqx.filter(build(design, jax.random.key(0)), eqx.is_inexact_array, inverse=True)
    compiled = jax.jit(jax.vmap(train))
    return lambda *args: eqx.combine(compiled(*args), static)


def fit(
    design: Design, rates: Sequence[float], data: Sequence[Float[np.ndarray, "waves times cells"]], seeds: Sequence[int]
) -> list[NumericalFlux]:
    """Train a network per learning rate, data and seed."""
    # Repeated to 50 trajectories, so that any number of them shares one compiled program.
    pools = jnp.asarray([np.resize(one, (50, *one.shape[1:])) for one in data], jnp.float32)
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds))
    stacked = _trainer(design._replace(rate=0.0))(keys, jnp.asarray(rates), pools)
    arrays, static = eqx.partition(stacked, eqx.is_array)
    return [eqx.combine(jax.tree.map(lambda leaf, i=i: leaf[i], arrays), static) for i in range(len(rates))]


def assess(flux: NumericalFlux, wave: Wave = ASKED) -> dict[str, float]:
    """Errors from the exact initial profile, in percent of the mean |u|, and of the speed of the shock."""
    count = round(LATEST / (STEP * STEPS_PER_PROFILE))
    times = STEP * STEPS_PER_PROFILE * np.arange(1, count + 1)
    start, *exact = exact_averages(wave, np.concatenate([[0.0], times]))
    u = np.asarray(jax.jit(lambda u: advance(flux, u, count))(jnp.asarray(start, jnp.float32)), float)
    error, size = np.abs(u - np.stack(exact)), np.abs(exact).mean()
    percent = lambda part: 100 * float(error[part].mean() / size)
    late = times > 1.2 - 1e-9
    # The solution is odd around its shock, whose position is therefore the phase of the first Fourier mode.
    phase = np.unwrap(-np.angle(np.fft.rfft(u[late])[:, 1]))
    speed = np.polyfit(times[late], phase, 1)[0] if np.isfinite(phase).all() else np.nan
    return {
        "error_before_percent": percent(times <= SEEN + 1e-9),
        "error_after_percent": percent(times > SHOCK + 1e-9),
        "shock_speed_error_percent": 100 * abs(float(speed) / wave.mean - 1),
        "mass_error": float(np.abs(u.mean(axis=1) - start.mean()).max()),
    }


RATES, WIDTHS = (1e-1, 3e-2, 1e-2, 3e-3), (16, 32)
REACHES: Mapping[Kind, tuple[int, ...]] = {"stencil": (1, 2), "kurganov-tadmor": (1,)}

LONGER: tuple[tuple[Kind, int, float, int], ...] = (("stencil", 50, 0.05, 8), ("kurganov-tadmor", 10, 0.05, 4))
"""Noisy profiles with longer pieces, whose start is noisy, too, but matters less."""


def choose(kind: Kind) -> tuple[Design, list[dict[str, Any]]]:
    """The design with the least error on validation trajectories until `SEEN`, and all that were tried."""
    data = observe([ASKED, *draw_waves(9, seed=0)], 0.0, seed=0)
    tries = []
    for width, reach in itertools.product(WIDTHS, REACHES[kind]):
        design = Design(kind, width, reach, 0.0)
        for rate, flux in zip(RATES, fit(design, RATES, [data] * len(RATES), [0] * len(RATES)), strict=True):
            errors = [assess(flux, wave)["error_before_percent"] for wave in draw_waves(4, seed=100)]
            tries.append(design._replace(rate=rate)._asdict() | {"validation_error_percent": float(np.mean(errors))})
            print(json.dumps(tries[-1]), flush=True)
    best = min(tries, key=lambda one: one["validation_error_percent"] if one["validation_error_percent"] >= 0 else 1e9)
    return Design(**{name: best[name] for name in Design._fields}), tries


def structured_rows() -> list[dict[str, Any]]:
    """What `python -m benchmarks.shocks` has recorded for the structured form, in the columns of this table.

    By Rankine and Hugoniot the speed of the shock is that of its two values' mean, times the coefficient of u uₓ.
    """
    rows = []
    for noise in (0.0, 0.05):
        paths = sorted(RECORDS.glob(f"burgers-{100 * noise:g}percent-equation-seed*.json"))
        found = [json.loads(path.read_text())["result"] for path in paths]
        for one in found:
            (term,) = one["terms"]
            assert term["name"] == "u u_x"
            one["shock_speed_error_percent"] = 100 * abs(term["coefficient"] - 1)
        row = {"method": "structured form", "trajectories": 1, "noise": noise, "values": 1000, "seeds": len(found)}
        rows.append(row | _average(found, ("error_before_percent", "error_after_percent", "shock_speed_error_percent")))
    return rows


def _average(found: Sequence[Mapping[str, float]], names: Iterable[str]) -> dict[str, float]:
    """The mean and the standard deviation of each column."""
    values = {name: [one[name] for one in found] for name in names}
    means = {name: float(np.mean(each)) for name, each in values.items()}
    return means | {f"{name}_sd": float(np.std(each, ddof=1)) for name, each in values.items()}


def main() -> None:
    """Choose the designs, train all cases, and write the table."""
    started = time.process_time()
    rows, tries, designs = [], [], {}
    exact = assess(LimitedFlux(lambda u: u**2 / 2))
    rows.append({"method": "kurganov-tadmor, exact flux", "trajectories": 0, "noise": 0.0, "values": 0} | exact)
    for kind in REACHES:
        designs[kind], tried = choose(kind)
        tries += tried
    cases = [(*case, 1) for case in itertools.product(REACHES, (1, 10, 50), (0.0, 0.05))]
    for kind, count, noise, window in [*cases, *LONGER]:
        design, seeds, begun = designs[kind]._replace(window=window), range(SEEDS), time.process_time()
        data = [observe([ASKED, *draw_waves(count - 1, seed)], noise, seed) for seed in seeds]
        found = [assess(flux) for flux in fit(design, [design.rate] * SEEDS, data, list(seeds))]
        row = {"method": kind, "trajectories": count, "noise": noise, "values": data[0].size, "seeds": SEEDS}
        row |= {"window": window}
        row |= {"cpu_seconds": round((time.process_time() - begun) / SEEDS, 1)}
        rows.append(row | _average(found, exact))
        print(json.dumps(rows[-1]), flush=True)
    answer = {"rows": [*structured_rows(), *rows], "tries": tries, "cpu_seconds": round(time.process_time() - started)}
    OUTPUT.write_text(json.dumps(answer, indent=2) + "\n")


if __name__ == "__main__":
    main()

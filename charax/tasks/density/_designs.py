"""The flows and solvers of the presets, by the kind of the data."""

from typing import TYPE_CHECKING

from charax import data, models, solve

if TYPE_CHECKING:
    from charax.tasks.density._config import DensityConfig


def preset_design(config: "DensityConfig", levels: int | None) -> tuple["models.AbstractFlowDesign", "solve.Solver"]:
    """The flow and the solver of the config's preset, for images with so many grey levels, or for numbers."""
    if levels is None:
        tolerance = 1e-5 if config.objective == "likelihood" else 1e-4
        return _vector_preset(config), solve.Solver("dopri5", rtol=tolerance, atol=tolerance)
    if config.preset == "paper":
        if config.objective != "likelihood":
            raise ValueError(
                "the paper's flow of images has a field for every scale, so it cannot be matched: use --objective "
                "likelihood, or preset small"
            )
        if config.data not in models.PAPER_FLOWS:
            raise ValueError(
                f"the paper has no flow for {config.data!r}: use preset small, or {', '.join(models.PAPER_FLOWS)}"
            )
        return models.paper_flow_design(config.data, config.method), models.PAPER_FLOW_SOLVER
    if config.objective != "likelihood":
        design = models.SingleScaleFlowDesign(config.method, levels=levels, alpha=alpha_of(levels))
        return design, solve.Solver("dopri5", rtol=1e-3, atol=1e-3)
    design = models.ImageFlowDesign(config.method, width=24, depth=2, levels=levels, alpha=alpha_of(levels))
    return design, solve.Solver("bosh3", rtol=1e-2, atol=1e-2)


def _vector_preset(config: "DensityConfig") -> "models.VectorFlowDesign":
    small, toy = config.method == "c-node", config.data in data.TOYS
    if config.preset == "small" and config.objective == "likelihood":
        return models.VectorFlowDesign(config.method, width=32 if small else 64, sharpness=8.0 if toy else 1.0)
    if config.preset == "small":
        return models.VectorFlowDesign(
            config.method,
            width=64,
            velocity_width=32,
            activation="silu",
            frequencies=32 if toy else 8,
            frequency_scale=1.0 if config.source is not None else 4.0 if toy else 2.0,
        )
    if config.data != "circles":
        raise ValueError(f"the paper has no flow for {config.data!r}: use preset small")
    # The base distribution is N(0, 0.1·I).
    return models.VectorFlowDesign(config.method, width=32 if small else 68, timed=False, end_time=10.0, scale=0.1**0.5)


def alpha_of(levels: int) -> float:
    """How far the logit stays away from black and white."""
    return 1e-6 if levels == 256 else 1e-2

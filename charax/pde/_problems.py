"""The built-in problems by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from charax.pde._conservation import Burgers, PaperProblem, PlaneBurgers, TracerBurgers, Traffic
from charax.pde._problem import AbstractProblem
from charax.pde._profiles import Gaussian, Ramp, Sine
from charax.pde._transport import Advection, Rotation, VariableAdvection

PROBLEMS: Mapping[str, Callable[[], AbstractProblem]] = MappingProxyType(
    {
        "advection": Advection,
        "advection-2d": lambda: Advection(speed=(1.0, -0.5), domain=((-6.0, 6.0), (-6.0, 6.0))),
        "variable-advection": VariableAdvection,
        "rotation": Rotation,
        "advection-reaction": lambda: Advection(rate=2.0),
        "burgers-ramp": lambda: Burgers(profile=Ramp()),
        "burgers-sine": lambda: Burgers(profile=Sine()),
        "burgers-gaussian": lambda: Burgers(profile=Gaussian()),
        "burgers-wave": lambda: Burgers(profile=Sine(mean=2.0)),
        "burgers-tracer": TracerBurgers,
        "burgers-2d": PlaneBurgers,
        "traffic": Traffic,
        "paper": PaperProblem,
        "paper-steep": lambda: PaperProblem(slope=2.0),
    }
)
"""Built-in problems by name; call one to build it with its default parameters."""

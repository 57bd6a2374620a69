"""The method of characteristics for known first-order quasi-linear PDEs: problems, solver, shock time."""

from charax.pde.conservation import Burgers, PaperProblem, PlaneBurgers, TracerBurgers, Traffic
from charax.pde.curves import Curves, characteristics
from charax.pde.points import Branches, FootPointError, MultivaluedError, solve
from charax.pde.problem import AbstractProblem, Problem
from charax.pde.problems import PROBLEMS
from charax.pde.profiles import AbstractProfile, Gaussian, Ramp, Sine
from charax.pde.shock import shock_time
from charax.pde.transport import Advection, Rotation, VariableAdvection

__all__ = [
    "PROBLEMS",
    "AbstractProblem",
    "AbstractProfile",
    "Advection",
    "Branches",
    "Burgers",
    "Curves",
    "FootPointError",
    "Gaussian",
    "MultivaluedError",
    "PaperProblem",
    "PlaneBurgers",
    "Problem",
    "Ramp",
    "Rotation",
    "Sine",
    "TracerBurgers",
    "Traffic",
    "VariableAdvection",
    "characteristics",
    "shock_time",
    "solve",
]

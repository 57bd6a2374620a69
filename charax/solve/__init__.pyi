from ._methods import METHODS as METHODS
from ._roots import find_roots as find_roots
from ._solution import Outcome as Outcome
from ._solution import Solution as Solution
from ._solution import SolveError as SolveError
from ._solution import Stats as Stats
from ._solver import Adjoint as Adjoint
from ._solver import Solver as Solver

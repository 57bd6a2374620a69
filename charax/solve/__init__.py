"""Integrate a field: the solver, the solution, and what went wrong if it did."""

from charax.solve.methods import METHODS
from charax.solve.roots import find_roots
from charax.solve.solution import Outcome, Solution, SolveError, Stats
from charax.solve.solver import Adjoint, Solver

__all__ = ["METHODS", "Adjoint", "Outcome", "Solution", "SolveError", "Solver", "Stats", "find_roots"]

"""Solving initial value problems: the solver, the solution, and what went wrong if it failed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

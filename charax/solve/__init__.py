"""Initial value problems: the solver and its solution, and root finding with implicit gradients."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Flow matching: fields that are trained without solving, by regression on the velocities of given paths."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

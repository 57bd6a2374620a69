"""Characteristic Neural ODEs in JAX."""

import lazy_loader

from charax import tasks as _tasks  # registers the tasks
from charax._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*__all__, "__version__"]
del _tasks

"""Vector fields: the velocity, the Jacobian, and the equation that joins them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

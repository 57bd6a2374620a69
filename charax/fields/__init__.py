"""Vector fields: the velocity, the Jacobian, and the equation du/ds = J · dx/ds."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

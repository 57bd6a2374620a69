from ._config import PDEConfig as PDEConfig
from ._spec import PDESpec as PDESpec
from ._task import PDETask as PDETask

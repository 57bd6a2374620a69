from ._config import PDEConfig as PDEConfig
from ._task import PDEMethod as PDEMethod
from ._task import PDETask as PDETask

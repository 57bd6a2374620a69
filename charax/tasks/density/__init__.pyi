from ._config import DensityConfig as DensityConfig
from ._task import DensityTask as DensityTask

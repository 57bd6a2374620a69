from ._config import ForecastConfig as ForecastConfig
from ._task import ForecastTask as ForecastTask

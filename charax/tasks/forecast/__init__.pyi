from ._config import ForecastConfig as ForecastConfig
from ._plots import plot_forecasts as plot_forecasts
from ._task import ForecastSpec as ForecastSpec
from ._task import ForecastTask as ForecastTask

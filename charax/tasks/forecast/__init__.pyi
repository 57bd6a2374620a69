from ._config import ForecastConfig as ForecastConfig
from ._plots import plot_forecasts as plot_forecasts
from ._task import ForecastSpec as ForecastSpec
from ._task import ForecastTask as ForecastTask
from ._window_plots import plot_windows as plot_windows
from ._window_task import WindowForecastTask as WindowForecastTask
from ._window_task import WindowSpec as WindowSpec

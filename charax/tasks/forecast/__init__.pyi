from ._config import ForecastConfig as ForecastConfig
from ._correction import choose_correction as choose_correction
from ._task import ForecastSpec as ForecastSpec
from ._task import ForecastTask as ForecastTask
from ._window_task import WindowForecastTask as WindowForecastTask
from ._window_task import WindowSpec as WindowSpec

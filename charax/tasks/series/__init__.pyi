from ._config import SeriesConfig as SeriesConfig
from ._plots import plot_series as plot_series
from ._task import SeriesSpec as SeriesSpec
from ._task import SeriesTask as SeriesTask

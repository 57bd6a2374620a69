from ._config import SeriesConfig as SeriesConfig
from ._task import SeriesSpec as SeriesSpec
from ._task import SeriesTask as SeriesTask

"""A task in one folder: least squares. `register_task(LineConfig)` is the one line that makes it known."""

from tests.train.line_task._config import LineConfig as LineConfig
from tests.train.line_task._task import LineSpec as LineSpec
from tests.train.line_task._task import LineTask as LineTask
from tests.train.line_task._task import Points as Points

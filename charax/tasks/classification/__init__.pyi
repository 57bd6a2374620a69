from ._config import ClassificationConfig as ClassificationConfig
from ._task import ClassificationSpec as ClassificationSpec
from ._task import ClassificationTask as ClassificationTask

from ._config import ClassificationConfig as ClassificationConfig
from ._task import ClassificationTask as ClassificationTask

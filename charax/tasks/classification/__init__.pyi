from ._config import ClassificationConfig as ClassificationConfig
from ._plots import plot_learned_characteristics as plot_learned_characteristics
from ._task import ClassificationSpec as ClassificationSpec
from ._task import ClassificationTask as ClassificationTask

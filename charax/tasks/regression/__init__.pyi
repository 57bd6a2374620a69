from ._config import RegressionConfig as RegressionConfig
from ._model import GaussianRegressor as GaussianRegressor
from ._task import RegressionSpec as RegressionSpec
from ._task import RegressionTask as RegressionTask

from ._config import RegressionConfig as RegressionConfig
from ._model import GaussianRegressor as GaussianRegressor
from ._plots import plot_predictions as plot_predictions
from ._plots import plot_residuals as plot_residuals
from ._task import RegressionSpec as RegressionSpec
from ._task import RegressionTask as RegressionTask

from ._config import PDEConfig as PDEConfig
from ._plots import plot_equation as plot_equation
from ._plots import plot_solution as plot_solution
from ._task import PDESpec as PDESpec
from ._task import PDETask as PDETask

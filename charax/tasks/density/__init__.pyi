from ._config import DensityConfig as DensityConfig
from ._objective import MatchingDesign as MatchingDesign
from ._plots import plot_density as plot_density
from ._plots import plot_samples as plot_samples
from ._spec import DensityBatch as DensityBatch
from ._spec import DensitySpec as DensitySpec
from ._task import DensityTask as DensityTask

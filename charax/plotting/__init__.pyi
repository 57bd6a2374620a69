from ._learning_curves import plot_learning_curves as plot_learning_curves
from ._problem import plot_problem as plot_problem
from ._style import C_NODE as C_NODE
from ._style import EXACT as EXACT
from ._style import NODE as NODE
from ._style import save_figure as save_figure

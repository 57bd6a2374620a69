from ._main import console_main as console_main
from ._main import main as main

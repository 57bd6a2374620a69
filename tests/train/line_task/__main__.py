"""`python -m tests.train.line_task …`: the command `charax` with one more task."""

import sys

from charax.cli._main import console_main
from charax.train import register_task
from tests.train.line_task import LineConfig

register_task(LineConfig)
sys.exit(console_main())

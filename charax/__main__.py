"""`python -m charax`."""

import sys

from charax.cli._main import console_main

sys.exit(console_main())

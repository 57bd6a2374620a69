"""`python -m charax.cli`."""

import sys

from charax.cli import main

sys.exit(main())

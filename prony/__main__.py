"""`python -m prony`: the command where its script is not on the PATH."""

import sys

from prony.cli.main import main

sys.exit(main())

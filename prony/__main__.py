"""`python -m prony`: the command where its script is not on the PATH."""

import sys

from prony.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

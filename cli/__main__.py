"""Makes `python -m cli` the same as `reflect`."""

import sys

from cli.main import main

sys.exit(main())

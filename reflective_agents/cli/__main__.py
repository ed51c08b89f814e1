"""Makes `python -m reflective_agents.cli` the same as `reflect`."""

import sys

from reflective_agents.cli.main import main

sys.exit(main())

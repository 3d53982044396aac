"""`python -m examples.demo`: see `main.py`."""

from __future__ import annotations

import sys

from examples.demo.main import main

sys.exit(main())

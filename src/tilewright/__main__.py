"""`python -m tilewright`: the command line."""

from __future__ import annotations

from tilewright.tools.main import main

if __name__ == "__main__":
    main()

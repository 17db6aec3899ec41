"""How a module that is run by itself ends: also well when whoever reads its output has seen enough."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn


def end_with(main: Callable[[], int]) -> NoReturn:
    """Ends the process with what `main` returns, or with 141 when its output is read no further, as by `head`."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    sys.exit(code)

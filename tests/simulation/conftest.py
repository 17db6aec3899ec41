"""What the sweeps use: a way to note numbers for the table at the end of a test run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.sweep_summary import PROPERTY


@pytest.fixture
def counted(record_property: Callable[[str, Any], None]) -> Callable[..., None]:
    """Notes numbers about a pipeline."""

    def note(pipeline: str, **numbers: float) -> None:
        record_property(PROPERTY, [pipeline, numbers])

    return note

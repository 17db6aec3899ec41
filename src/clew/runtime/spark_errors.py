"""Spark's errors in one line: what failed, without the stack traces around it."""

from __future__ import annotations

from clew.errors import ClewError


def explain(error: BaseException) -> str:
    """What an error of Spark says.

    >>> explain(RuntimeError("Job aborted.\\n  at a.b.C\\nValueError: no such column\\n  at d.e.F"))
    'ValueError: no such column'
    """
    if isinstance(error, ClewError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "Exception" in line or "MISMATCH" in line]
    return (telling or lines or [type(error).__name__])[-1][:500]

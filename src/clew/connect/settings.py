"""Settings that a user gave to a connector, checked where the pipeline is built."""

from __future__ import annotations

from clew.errors import BuildError


def positive(where: str, name: str, value: object) -> float:
    """A number above zero.

    >>> positive("rate()", "per_second", 100)
    100.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise BuildError(f"{where} was given {name}={value!r}; expected a number above 0. Pass such a number.")
    return float(value)


def counted(where: str, name: str, value: object) -> int:
    """A whole number from 1 up.

    >>> counted("files()", "rows_per_event", 500)
    500
    """
    if type(value) is not int or value < 1:
        raise BuildError(f"{where} was given {name}={value!r}; expected a whole number from 1 up. Pass such a number.")
    return value


def idle_looks(where: str, idle_s: float | None, poll_s: float, *, follow: bool) -> int | None:
    """How many looks in a row may find nothing before a source that follows something ends.

    Time is counted in looks, so that a simulator owns it too.

    >>> idle_looks("files()", 1.0, 0.25, follow=True)
    4
    """
    if idle_s is None:
        return None
    if not follow:
        raise BuildError(
            f"{where} was given idle_s={idle_s!r} without follow=True; expected both or neither. Leave idle_s out: "
            f"what is not followed ends by itself."
        )
    return max(1, round(positive(where, "idle_s", idle_s) / poll_s))


def column_list(where: str, name: str, columns: object) -> list[str]:
    """Names of columns, or one name.

    >>> column_list("postgres()", "upsert", "id")
    ['id']
    """
    found = [columns] if isinstance(columns, str) else list(columns) if isinstance(columns, list | tuple) else [None]
    if not all(isinstance(each, str) and each for each in found):
        raise BuildError(f"{where} was given {name}={columns!r}; expected a list of column names. Pass such a list.")
    return [str(each) for each in found]

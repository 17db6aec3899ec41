"""Values as JSON: what JSON lines, and the nested values of a database column, are written as."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from typing import Any


def json_text(value: Any) -> str:
    """A value as JSON: times in ISO 8601, decimals as text, bytes in base 64, a number that is none as null.

    >>> json_text({"at": datetime.date(2025, 2, 1), "amount": float("nan"), "price": decimal.Decimal("1.50")})
    '{"at":"2025-02-01","amount":null,"price":"1.50"}'
    """
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    match value:
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return value.total_seconds()
        case decimal.Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
    return str(value)


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {name: _finite(each) for name, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
    return value

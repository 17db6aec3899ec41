"""A driver in a process of its own: `python -m tests.spark.child ORDER` runs a pipeline and says how it goes, by line.

The order is JSON: which pipeline of which test module, with which arguments, on which master with which settings, which
log. The last line says how it ended. Ctrl-C is what it is for any script: an interrupt of `run`.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from clew.errors import ClewError
from clew.runtime.run import Run
from clew.runtime.session import session_on
from clew.runtime.spec import Timing, Tuning


def main(order: dict[str, Any]) -> int:
    module = importlib.import_module(order.get("module", "tests.spark.pipelines"))
    arguments = order.get("arguments", {})
    pipeline = getattr(module, order["pipeline"])(Path(order["directory"]), **arguments)
    spark = session_on(order["master"], pipeline.name, order.get("settings"))
    tuning = Tuning(timing=Timing(**{"beat_s": 0.05, **order.get("timing", {})}))
    try:
        run = pipeline.run(spark, log=order.get("log"), blocking=False, tuning=tuning, **order.get("options", {}))
        threading.Thread(target=_tell, args=(run,), daemon=True).start()
        result = {"state": "interrupted"}
        try:
            run.wait()
            result = {"state": run.state}
        except ClewError as error:
            result = {"state": run.state, "error": str(error)}
        finally:
            status = {**run.status(), "losses": run.losses()}
            _say({"type": "result", **result, "status": status})
    except KeyboardInterrupt:
        return 130
    finally:
        spark.stop()
    return 0 if result["state"] == "completed" else 1


def _tell(run: Run) -> None:
    while not run.is_over:
        _say({"type": "status", **run.status(), "losses": run.losses()})
        time.sleep(0.03)


_lock = threading.Lock()


def _say(what: dict[str, Any]) -> None:
    with _lock:
        print(json.dumps(what, default=str), flush=True)


if __name__ == "__main__":
    raise SystemExit(main(json.loads(sys.argv[1])))

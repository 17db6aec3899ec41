"""Loads the pipeline that a file defines, as every command that takes a FILE does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from clew.errors import ClewError
from clew.model.graph import Graph
from clew.pipeline import Pipeline


def load(file: str) -> Graph:
    """The graph of the pipeline that the file defines as `pipeline`, or that its `build()` returns."""
    module = load_module(file)
    found = getattr(module, "pipeline", None)
    if found is None and callable(getattr(module, "build", None)):
        try:
            found = module.build()
        except ClewError:
            raise
        except Exception as error:
            raise ClewError(f"build() of {file!r} failed: {type(error).__name__}: {error}") from error
    if isinstance(found, Graph):
        return found
    if not isinstance(found, Pipeline):
        what = "defines neither `pipeline` nor `build()`" if found is None else f"gives a {type(found).__name__}"
        raise ClewError(
            f"{file!r} {what}; expected `pipeline = clew.Pipeline(...)`, or a function `build()` that returns one."
        )
    return found.build()


def load_module(file: str) -> ModuleType:
    """The module of a file; it may import its neighbours."""
    path = Path(file)
    if not path.is_file():
        raise ClewError(f"there is no file {file!r}. Name a Python file that defines `pipeline` or `build()`.")
    spec = importlib.util.spec_from_file_location(_module_name(path), path)
    if spec is None or spec.loader is None:
        raise ClewError(f"{file!r} is not a Python file. Name a .py file that defines `pipeline` or `build()`.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except ClewError:
        raise
    except Exception as error:
        raise ClewError(f"{file!r} could not be run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


def _module_name(path: Path) -> str:
    """The name that the file's module goes by; not one that a module of somebody else has.

    >>> _module_name(Path("daily-sales.py")), _module_name(Path("queue.py"))
    ('daily_sales', 'queue_file')
    """
    name = path.stem.replace("-", "_")
    found = sys.modules.get(name)
    is_taken = found is not None and getattr(found, "__file__", None) != str(path)
    return f"{name}_file" if is_taken or name in sys.stdlib_module_names else name

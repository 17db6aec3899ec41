"""Explanations: a failure-free execution that shows what a real run has shown, or the step that has none."""

from clew.verify.explain.explaining import explain
from clew.verify.explain.explanation import Explanation, Recovery, Unexplained

__all__ = ["Explanation", "Recovery", "Unexplained", "explain"]

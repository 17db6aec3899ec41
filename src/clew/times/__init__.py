"""Logical time: partial orders, antichains, signed multisets and path summaries."""

from clew.times.antichain import Antichain, maximal, minimal
from clew.times.changes import Changes
from clew.times.laws import check_order, check_summaries
from clew.times.order import Disjoint, EventTime, Integers, Order, Poset, Product, Time
from clew.times.summary import (
    IDENTITY,
    Add,
    Componentwise,
    Composition,
    Enter,
    Leave,
    MaxPlus,
    Summary,
    Table,
)

__all__ = [
    "IDENTITY",
    "Add",
    "Antichain",
    "Changes",
    "Componentwise",
    "Composition",
    "Disjoint",
    "Enter",
    "EventTime",
    "Integers",
    "Leave",
    "MaxPlus",
    "Order",
    "Poset",
    "Product",
    "Summary",
    "Table",
    "Time",
    "check_order",
    "check_summaries",
    "maximal",
    "minimal",
]

"""How a data set is checked."""

from __future__ import annotations

from msgspec import Struct


class Plan(Struct, frozen=True):
    """How a data set is checked: names only, so that it can be pickled.

    `columns` asks for the normalised columns too; without them a check only gives verdicts. `beside_traces` says
    that traces are handed on: what only their reader needs may be left in them, and `Rows.trace_states` says whether
    mlflow can read each as it is. `values` says whether messages may quote cells.
    Without `figures`, those in traces are not read: the verdict on each row is the same, what a report counts and shows
    is not.
    """

    format: str
    outputs: str
    nests: bool
    codes: frozenset[str]
    columns: bool = False
    reason: str = ""
    beside_traces: bool = False
    values: bool = True
    figures: bool = True

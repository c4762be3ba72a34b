"""REASONS: why a logged row is no row of the evaluation set. In the order of the funnel, which `exclusions.json` has;
the first that fits counts.

    logged ─ feedback ─▶ calls ─ outside_window … no_response ─▶ readable ─ repeated …
           near_duplicate ─▶ distinct ─ in_existing … near_in_existing ─▶ new ─ not_sampled ─▶ sampled ─ invalid ─▶ rows

Whatever is logged ends as a row or with exactly one of these: rows + excluded = logged (+ the records of batch calls).
"""

from msgspec import Struct

from agent_eval_schema.runtime.tables import packaged


class Reason(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a row is excluded. `--include` takes those that are `switchable`: others have an option of their own, or such
    a row can be none of an evaluation dataset."""

    name: str
    step: str
    """Of the funnel: the name of the rows that are left."""
    sentence: str
    remedy: str
    switchable: bool = False


REASONS = {reason.name: reason for reason in packaged(__package__, "exclusions.json", list[Reason])}

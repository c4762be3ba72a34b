"""Several reviewers: where they agree, what they have to decide together, and their labels as one.

Percent and Krippendorff's α are counted per kind of decision, over what at least two of them have submitted. α corrects
for chance: 1 is agreement on everything, 0 what chance gives. It comes from nltk (`nltk.metrics.agreement`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_eval_schema.errors import import_extra
from agent_eval_schema.review.journal import State
from agent_eval_schema.review.labels import LABELS
from agent_eval_schema.text import jsontext

Everybody = Mapping[str, Mapping[int, State]]
"""What each reviewer decided, by row."""

DECISIONS = (*LABELS, "choice", "dropped")


def submitted(everybody: Everybody) -> dict[int, dict[str, State]]:
    """The rows that reviewers have submitted, each with what they decided."""
    found: dict[int, dict[str, State]] = {}
    for name, states in everybody.items():
        for row, state in states.items():
            if state.get("status") == "submitted":
                found.setdefault(row, {})[name] = state
    return found


def _decided(state: State) -> State:
    """The decisions of a state that two reviewers are compared by; the order of facts does not matter."""
    found = {k: v for k, v in state.items() if v not in ([], {}, "", False)}
    found = {k: v for k, v in found.items() if k in DECISIONS or k.startswith("fix:")}
    return {k: sorted(v, key=jsontext.encode) if k in ("expected_facts", "guidelines") else v for k, v in found.items()}


def _differ(states: Mapping[str, State]) -> bool:
    decided = [jsontext.value_key(_decided(state)) for state in states.values()]
    return len(set(decided)) > 1


def undecided(everybody: Everybody) -> list[int]:
    """The rows on which reviewers differ, and have not decided together."""
    return sorted(
        row
        for row, states in submitted(everybody).items()
        if _differ(states) and not any(state.get("decided") for state in states.values())
    )


def merged_states(everybody: Everybody) -> dict[int, State]:
    """One state for each submitted row: what was decided together, or what all who submitted it agree on. A row on
    which they differ stays as it is."""
    found = {}
    for row, states in submitted(everybody).items():
        together = [state for state in states.values() if state.get("decided")]
        if together:
            found[row] = together[-1]
        elif not _differ(states):
            found[row] = next(iter(states.values()))
    return found


def left_out(everybody: Everybody) -> dict[str, int]:
    """How many rows with labels are not in `merged_states`, by the reason."""
    known = {row for states in everybody.values() for row, state in states.items() if _decided(state)}
    done = submitted(everybody)
    counts = {
        "the reviewers differ; the queue `together` has them": len(undecided(everybody)),
        "no reviewer has submitted them": len(known - done.keys()),
    }
    return {reason: count for reason, count in counts.items() if count}


def signed_rows(everybody: Everybody) -> dict[int, list[str]]:
    """The reviewers of each row of `merged_states`: those who decided it together, or all who submitted it."""
    agreed, found = merged_states(everybody), submitted(everybody)
    together = {row: [name for name, state in found[row].items() if state.get("decided")] for row in agreed}
    return {row: names or list(found[row]) for row, names in together.items()}


class _Kinds(dict[str, list[tuple[str, str, str]]]):
    def add(self, kind: str, by: str, item: str, value: Any) -> None:
        self.setdefault(kind, []).append((by, item, jsontext.value_key(value).decode()))


def _data(everybody: Everybody) -> Mapping[str, list[tuple[str, str, str]]]:
    kinds = _Kinds()
    for row, states in submitted(everybody).items():
        if len(states) < 2:
            continue
        paths = {path for state in states.values() for path in _decided(state)}
        uris = {uri for state in states.values() for uri in state.get("documents", ())}
        for by, state in states.items():
            for uri in uris:
                kinds.add("documents", by, f"{row} {uri}", state.get("documents", {}).get(uri))
            for path in paths - {"documents"}:
                kind = "fixes" if path.startswith("fix:") else "decisions" if path in ("choice", "dropped") else path
                kinds.add(kind, by, f"{row} {path}", _decided(state).get(path))
    return kinds


def agreement(everybody: Everybody) -> list[dict[str, Any]]:
    """Per kind of decision: on how many items at least two decided, on how many of them all agree, and α."""
    return list(_measured(_data(everybody)))


def _measured(kinds: Mapping[str, list[tuple[str, str, str]]]) -> Iterator[dict[str, Any]]:
    for kind, data in sorted(kinds.items()):
        by_item: dict[str, list[str]] = {}
        for _, item, value in data:
            by_item.setdefault(item, []).append(value)
        same = sum(len(set(values)) == 1 for values in by_item.values())
        yield {"kind": kind, "items": len(by_item), "same": same, "alpha": alpha(data)}


def alpha(data: list[tuple[str, str, str]]) -> float | None:
    """Krippendorff's α of nominal values, (reviewer, item, value); None if all values are the same: chance explains
    that, too."""
    if len({value for _, _, value in data}) < 2:
        return None
    module = import_extra("nltk.metrics.agreement", "review", "the agreement of several reviewers")
    return round(float(module.AnnotationTask(data=data).alpha()), 4)

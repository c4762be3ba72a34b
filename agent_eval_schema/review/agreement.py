"""Several reviewers: where they agree, what they have to decide together, and their labels as one.

    choices    documents, ratings, drops, conflicts, fixes   percent and Krippendorff's α
    texts      facts, guidelines                              matched one to one: both, only one of them
    the rest   responses, tool calls, tags                    the same or not, per row

All of it is counted over all rows that at least two have submitted, whether or not they marked anything. α corrects for
chance: 1 is agreement on everything, 0 what chance gives. It comes from nltk (`nltk.metrics.agreement`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct

from agent_eval_schema.errors import import_extra
from agent_eval_schema.render.phrases import plural, share
from agent_eval_schema.review.journal import FIX, State
from agent_eval_schema.review.labels import LABELS
from agent_eval_schema.text import jsontext

Everybody = Mapping[str, Mapping[int, State]]
"""What each reviewer decided, by row."""

DECISIONS = (*LABELS, "choice", "dropped", "rating")
TEXTS = ("expected_facts", "guidelines")


class Subject(Struct, frozen=True):
    """What there is to be decided about a row: the labels of its source, its documents and fixes, and whether other
    rows ask the same."""

    truth: State
    documents: Sequence[str] = ()
    fixes: Sequence[str] = ()
    has_group: bool = False


def normalized(text: str) -> str:
    """A text by which two are the same: in one case, without the punctuation around its words."""
    return " ".join(word for part in text.casefold().split() if (word := part.strip(_PUNCTUATION)))


_PUNCTUATION = ".,;:!?\"'“”„‘’«»()[]…。，、！？"


def matched(one: Iterable[str], other: Iterable[str]) -> tuple[int, int, int]:
    """Of two lists of texts: how many are in both, each matched once, and how many are in one of them only."""
    counts = [Counter(map(normalized, texts)) for texts in (one, other)]
    both = (counts[0] & counts[1]).total()
    return both, counts[0].total() - both, counts[1].total() - both


def submitted(everybody: Everybody) -> dict[int, dict[str, State]]:
    """The rows that reviewers have submitted, each with what they decided."""
    by_row: dict[int, dict[str, State]] = {}
    for name, states in everybody.items():
        for row, state in states.items():
            if state.get("status") == "submitted":
                by_row.setdefault(row, {})[name] = state
    return by_row


def _decided(state: State) -> State:
    """The decisions of a state that two reviewers are compared by; of facts neither the order nor the spelling."""
    decisions = {k: v for k, v in state.items() if v not in ([], {}, "", False)}
    decisions = {k: v for k, v in decisions.items() if k in DECISIONS or k.startswith(FIX)}
    decisions |= {k: sorted(map(normalized, decisions[k])) for k in TEXTS if k in decisions}
    if "expected_response" in decisions:
        decisions["expected_response"] = normalized(decisions["expected_response"])
    return decisions


def _differ(states: Mapping[str, State]) -> bool:
    return len({jsontext.value_key(_decided(state)) for state in states.values()}) > 1


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
    by_row = {}
    for row, states in submitted(everybody).items():
        together = [state for state in states.values() if state.get("decided")]
        if together:
            by_row[row] = together[-1]
        elif not _differ(states):
            by_row[row] = next(iter(states.values()))
    return by_row


def excluded_rows(everybody: Everybody) -> dict[str, int]:
    """How many rows with labels are not in `merged_states`, by the reason."""
    known = {row for states in everybody.values() for row, state in states.items() if _decided(state)}
    counts = {
        "the reviewers differ; the queue `together` has them": len(undecided(everybody)),
        "no reviewer has submitted them": len(known - submitted(everybody).keys()),
    }
    return {reason: count for reason, count in counts.items() if count}


def signed_rows(everybody: Everybody) -> dict[int, list[str]]:
    """The reviewers of each row of `merged_states`: those who decided it together, or all who submitted it."""
    agreed, by_row = merged_states(everybody), submitted(everybody)
    together = {row: [name for name, state in by_row[row].items() if state.get("decided")] for row in agreed}
    return {row: names or list(by_row[row]) for row, names in together.items()}


class Agreement(Struct, frozen=True):
    """How far reviewers agree on one kind of decision, and on what that was computed: `rows` that at least two have
    submitted, with `items` to decide on. Of texts, `same` are matched, and `only` has the rest of each reviewer."""

    kind: str
    rows: int
    items: int
    same: int
    alpha: float | None = None
    only: dict[str, int] = {}


def agreement(everybody: Everybody, subject_of: Callable[[int], Subject]) -> list[Agreement]:
    """The agreement per kind of decision, of those that there was something to decide about."""
    both = {row: states for row, states in submitted(everybody).items() if len(states) > 1}
    subjects = {row: subject_of(row) for row in both}
    agreements = [_of_choices(kind, data) for kind, data in sorted(_choices(both, subjects).items())]
    agreements += [part for kind in TEXTS if (part := _of_texts(kind, both, subjects)).items]
    for kind in ("expected_response", "reference_trajectory", "tags"):
        values = [_values(kind, states, subjects[row]) for row, states in both.items()]
        values = [own for own in values if any(own)]
        same = sum(len({jsontext.value_key(value) for value in own}) == 1 for own in values)
        agreements += [Agreement(kind, len(values), len(values), same)] if values else []
    return agreements


def _values(kind: str, states: Mapping[str, State], subject: Subject) -> list[Any]:
    """What each reviewer has for a label: what was decided, or else what the source has."""
    values = [state.get(kind, subject.truth.get(kind)) for state in states.values()]
    return [normalized(value or "") for value in values] if kind == "expected_response" else values


def _choices(
    both: Mapping[int, Mapping[str, State]], subjects: Mapping[int, Subject]
) -> dict[str, list[tuple[str, str, str]]]:
    """The choices by kind: (reviewer, item, value). A document that is not marked is not relevant, as it is written."""
    kinds: dict[str, list[tuple[str, str, str]]] = {}
    for row, states in both.items():
        subject = subjects[row]
        uris = {*subject.documents, *(uri for state in states.values() for uri in state.get("documents", ()))}
        for by, state in states.items():
            choices: list[tuple[str, str, Any]] = [("drop", "", bool(state.get("dropped")))]
            choices += [("conflict", "", state.get("choice"))] if subject.has_group else []
            choices += [("rating", "", state.get("rating"))] if any("rating" in s for s in states.values()) else []
            choices += [("fixes", path, state.get(path)) for path in subject.fixes]
            marks: Mapping[str, bool] = {"documents": subject.truth.get("documents") or {}, **state}["documents"]
            choices += [("documents", uri, marks.get(uri) is True) for uri in sorted(uris)]
            for kind, name, value in choices:
                kinds.setdefault(kind, []).append((by, f"{row} {name}", repr(value)))
    return {kind: data for kind, data in kinds.items() if any(value not in ("False", "None") for _, _, value in data)}


def _of_choices(kind: str, data: list[tuple[str, str, str]]) -> Agreement:
    by_item: dict[str, set[str]] = {}
    for _, item, value in data:
        by_item.setdefault(item, set()).add(value)
    rows = {item.partition(" ")[0] for item in by_item}
    same = sum(len(values) == 1 for values in by_item.values())
    return Agreement(kind, len(rows), len(by_item), same, alpha(data))


def _of_texts(kind: str, both: Mapping[int, Mapping[str, State]], subjects: Mapping[int, Subject]) -> Agreement:
    rows, same, only = 0, 0, Counter[str]()
    for row, states in both.items():
        texts = dict(zip(states, _values(kind, states, subjects[row]), strict=True))
        rows += any(texts.values())
        for (one, first), (other, second) in combinations(texts.items(), 2):
            in_both, *rest = matched(first or (), second or ())
            same += in_both
            only.update(dict(zip((one, other), rest, strict=True)))
    return Agreement(kind, rows, same + only.total(), same, None, dict(only))


def agreement_text(found: Agreement) -> str:
    """The agreement in words, with what it was computed on."""
    rows = plural(found.rows, "row")
    if found.only:
        rest = ", ".join(f"{count:,} only {name}" for name, count in found.only.items())
        return f"{found.kind}: {found.same:,} the same, {rest} ({rows} that several submitted)"
    what = rows if found.items == found.rows else f"{found.items:,} {found.kind} of {rows}"
    words = f"{found.kind}: the same in {share(found.same, found.items)} of {what} that several submitted"
    return words if found.alpha is None else f"{words}, α = {found.alpha:.2f}"


def alpha(data: list[tuple[str, str, str]]) -> float | None:
    """Krippendorff's α of nominal values, (reviewer, item, value); None if all values are the same: chance explains
    that, too."""
    if len({value for _, _, value in data}) < 2:
        return None
    module = import_extra("nltk.metrics.agreement", "review", "the agreement of several reviewers")
    return round(float(module.AnnotationTask(data=data).alpha()), 4)

"""What becomes of each converted row: decisions that need the whole table, as SQL that DuckDB and Spark read alike.

    calls     one line a converted row: part, place, and of its columns logged_id, request_id, label_id, record, reason,
              time, content_hash, question_hash, sample_hash; stratum (text); without_trace (bool)
    entries   one line a feedback entry: part, place (of the row that brought it), then the fields of an entry
                                                │
    STEPS     named SELECTs, each of which reads the ones before it; an engine makes a table or a view of each
                                                │
    decisions    (part, place, content_hash, reason): a line a converted row; the reason is null if the row stays
    attached     (part, place, then the fields of an entry): the latest feedback of the rows that stay
    tallies      (what, rows): how many entries there were, and what became of them
    strata       (stratum, rows, sampled)

`part` and `place` only say where a row is; no decision depends on them, so every engine decides alike. It is standard
SQL only: windows, joins, signed 64-bit integers, no names that need quotes.
"""

from __future__ import annotations

from typing import NamedTuple

from agent_eval_schema.inference_tables.decide.sampling import below
from agent_eval_schema.inference_tables.read.feedback import Feedback
from agent_eval_schema.inference_tables.read.plan import BuildPlan

REPEATED, DUPLICATE, NOT_SAMPLED = "repeated", "duplicate_question", "not_sampled"
"""The reasons that are decided here; those that a row has from the start (rules/exclusions.py) come before them."""

ENTRY = Feedback.__struct_fields__
"""The fields of a feedback entry."""


class SqlStep(NamedTuple):
    """A SELECT, and the name by which later ones refer to its result."""

    name: str
    select: str


RESULTS = {
    "reasons": "SELECT reason, COUNT(*) FROM decisions GROUP BY reason",
    "feedback": "SELECT what, rows_of FROM tallies",
    "strata": "SELECT stratum, size, CAST(sampled AS BIGINT) FROM strata ORDER BY size DESC, stratum",
}
"""The parts of a summary that are decisions: small results, by name."""


def steps_of(plan: BuildPlan) -> list[SqlStep]:
    """The steps for a plan."""
    return steps(
        sample=plan.sample,
        keep_repeated=plan.keeps("repeated"),
        by_question=plan.by_question,
        stratified=bool(plan.stratum_column or plan.stratum_sql),
        by_thumbs=plan.by_thumbs,
    )


def steps(
    *,
    sample: int | float | None = None,
    keep_repeated: bool = False,
    by_question: bool = False,
    stratified: bool = False,
    by_thumbs: bool = False,
) -> list[SqlStep]:
    """The steps for these options; the last four are the results.

    `sample` is a number of rows or a fraction, `stratified` shares it over the strata, `by_thumbs` makes strata of the
    feedback (the column `stratum` is not read then), `by_question` keeps one row per distinct question.
    """
    own = [_NUMBERED, _ONCE if not keep_repeated else _EVERY, *(_ONE_PER_QUESTION if by_question else _ALL_QUESTIONS)]
    results = [_decisions(keep_repeated, by_question, sample is not None), *_RESULTS]
    return [*own, *_FEEDBACK, _stratum(by_thumbs), *_sampled(sample, stratified or by_thumbs), *results]


_ROW = "part, place, request_id, label_id, content_hash, sample_hash, stratum"

# Delivery is at least once: the earliest of the rows with an id is the call, the others are its copies.
_NUMBERED = SqlStep(
    "numbered",
    f"""
    SELECT {_ROW}, time, question_hash,
           ROW_NUMBER() OVER (
               PARTITION BY request_id ORDER BY time ASC NULLS LAST, content_hash ASC, part ASC, place ASC
           ) AS nth
    FROM calls WHERE reason IS NULL
    """,
)
_ONCE = SqlStep("once", f"SELECT {_ROW}, time, question_hash FROM numbered WHERE nth = 1")
_EVERY = SqlStep("once", f"SELECT {_ROW}, time, question_hash FROM numbered")

_ALL_QUESTIONS = (SqlStep("asked", f"SELECT {_ROW}, 1 AS nth FROM once"),)

_ONE_PER_QUESTION = (
    # The latest call answers with the newest version of the agent. A question that is not known is like no other.
    SqlStep(
        "asked",
        f"""
        SELECT {_ROW},
               ROW_NUMBER() OVER (
                   PARTITION BY question_hash
                   ORDER BY time DESC NULLS LAST, request_id ASC, content_hash ASC, part ASC, place ASC
               ) AS nth
        FROM once WHERE question_hash IS NOT NULL
        UNION ALL
        SELECT {_ROW}, 1 AS nth FROM once WHERE question_hash IS NULL
        """,
    ),
)

_FIELDS = ", ".join(f"e.{name}" for name in ENTRY)
_VALUES = ", ".join(ENTRY)

_FEEDBACK = (
    SqlStep("distinct_questions", f"SELECT {_ROW} FROM asked WHERE nth = 1"),
    # One row per click: the latest counts, per source, step and position. Those of one moment are ordered by their
    # values, so that every engine takes the same one.
    SqlStep(
        "latest",
        f"""
        SELECT {_VALUES} FROM (
            SELECT {_VALUES},
                   ROW_NUMBER() OVER (
                       PARTITION BY request_id, source, step_id, position, kind
                       ORDER BY time DESC NULLS LAST, suggested_output ASC NULLS LAST, value ASC NULLS LAST,
                                rationale ASC NULLS LAST, comment ASC NULLS LAST
                   ) AS nth
            FROM entries
        ) AS clicks WHERE nth = 1
        """,
    ),
    # A call with one record is known by two names: its own, and that of the record. Where there is little feedback or
    # none, it is looked up in the calls, not they in it.
    SqlStep(
        "rated",
        f"""
        SELECT d.part, d.place, {_FIELDS} FROM distinct_questions d JOIN latest e ON d.request_id = e.request_id
        UNION ALL
        SELECT d.part, d.place, {_FIELDS} FROM distinct_questions d JOIN latest e ON d.label_id = e.request_id
        WHERE d.label_id <> d.request_id
        """,
    ),
)


def _stratum(by_thumbs: bool) -> SqlStep:
    """The rows that may be sampled, each with its stratum."""
    if not by_thumbs:
        return SqlStep(
            "candidates",
            """
            SELECT part, place, request_id, content_hash, sample_hash, COALESCE(stratum, '') AS stratum
            FROM distinct_questions
            """,
        )
    return SqlStep(
        "candidates",
        """
        SELECT d.part, d.place, d.request_id, d.content_hash, d.sample_hash,
               CASE WHEN t.down > 0 THEN 'down' WHEN t.up > 0 THEN 'up' ELSE 'none' END AS stratum
        FROM distinct_questions d LEFT JOIN (
            SELECT part, place,
                   SUM(CASE WHEN value THEN 1 ELSE 0 END) AS up,
                   SUM(CASE WHEN value THEN 0 ELSE 1 END) AS down
            FROM rated WHERE kind = 'text' AND value IS NOT NULL GROUP BY part, place
        ) t ON d.part = t.part AND d.place = t.place
        """,
    )


_ORDER = "ORDER BY sample_hash ASC, request_id ASC, content_hash ASC, part ASC, place ASC"


def _sampled(sample: int | float | None, stratified: bool) -> list[SqlStep]:
    if sample is None:
        return [SqlStep("chosen", "SELECT part, place, stratum FROM candidates")]
    if stratified:
        return _shared(sample)
    if isinstance(sample, float):
        low = f"sample_hash < CAST('{below(sample)}' AS BIGINT)"
        return [SqlStep("chosen", f"SELECT part, place, stratum FROM candidates WHERE {low}")]
    first = f"{_ORDER} LIMIT {sample}"
    return [SqlStep("chosen", f"SELECT part, place, stratum FROM candidates {first}")]


def _shared(sample: int | float) -> list[SqlStep]:
    """Each stratum gets the whole part of its share; the rows that are left go to the largest remainders, one each."""
    wanted = (
        f"CAST(ROUND(CAST('{sample!r}' AS DOUBLE) * SUM(size)) AS BIGINT)"
        if isinstance(sample, float)
        else f"LEAST(CAST({sample} AS BIGINT), CAST(SUM(size) AS BIGINT))"
    )
    return [
        SqlStep("sizes", "SELECT stratum, COUNT(*) AS size FROM candidates GROUP BY stratum"),
        SqlStep("demand", f"SELECT {wanted} AS wanted, CAST(SUM(size) AS BIGINT) AS total FROM sizes"),
        SqlStep(
            "shares",
            """
            SELECT s.stratum, d.wanted,
                   CAST(ROUND((d.wanted * s.size - MOD(d.wanted * s.size, d.total)) / d.total) AS BIGINT) AS whole,
                   MOD(d.wanted * s.size, d.total) AS remainder
            FROM sizes s CROSS JOIN demand d
            """,
        ),
        SqlStep(
            "quotas",
            """
            SELECT stratum,
                   whole + CASE
                       WHEN ROW_NUMBER() OVER (ORDER BY remainder DESC, stratum ASC) <= wanted - SUM(whole) OVER ()
                       THEN 1 ELSE 0 END AS quota
            FROM shares
            """,
        ),
        SqlStep(
            "ranked",
            f"""
            SELECT part, place, stratum,
                   ROW_NUMBER() OVER (PARTITION BY stratum {_ORDER}) AS nth
            FROM candidates
            """,
        ),
        SqlStep(
            "chosen",
            """
            SELECT r.part, r.place, r.stratum FROM ranked r JOIN quotas q ON r.stratum = q.stratum
            WHERE r.nth <= q.quota
            """,
        ),
    ]


def _decisions(keep_repeated: bool, by_question: bool, sampled: bool) -> SqlStep:
    row, repeated = "part, place, content_hash", "" if keep_repeated else f"CASE WHEN nth > 1 THEN '{REPEATED}' END"
    found = [f"SELECT {row}, reason FROM calls WHERE reason IS NOT NULL"]
    if not (by_question or sampled):  # rows that are not repeated are kept: one pass over the rows is enough
        found.append(f"SELECT {row}, {repeated or 'NULL'} AS reason FROM numbered")
        return SqlStep("decisions", _UNION.join(found))
    if repeated:
        found.append(f"SELECT {row}, {repeated} AS reason FROM numbered WHERE nth > 1")
    if by_question:
        found.append(f"SELECT {row}, '{DUPLICATE}' AS reason FROM asked WHERE nth > 1")
    found.append(_STAY if sampled else f"SELECT {row}, NULL AS reason FROM candidates")
    return SqlStep("decisions", _UNION.join(found))


_UNION = " UNION ALL "
_STAY = f"""
    SELECT c.part, c.place, c.content_hash, CASE WHEN s.part IS NULL THEN '{NOT_SAMPLED}' END AS reason
    FROM candidates c LEFT JOIN chosen s ON c.part = s.part AND c.place = s.place
"""

_RESULTS = (
    SqlStep(
        "attached",
        f"SELECT e.part, e.place, {_FIELDS} FROM rated e JOIN chosen s ON e.part = s.part AND e.place = s.place",
    ),
    SqlStep(
        "tallies",
        """
        SELECT 'given' AS what, COUNT(*) AS rows_of FROM entries
        UNION ALL
        SELECT 'latest' AS what, COUNT(*) AS rows_of FROM latest
        UNION ALL
        SELECT 'attached' AS what, COUNT(*) AS rows_of FROM attached
        UNION ALL
        SELECT 'unknown' AS what, COUNT(*) AS rows_of
        FROM latest e LEFT JOIN (
            SELECT c.request_id AS name FROM calls c JOIN latest l ON c.request_id = l.request_id
            WHERE c.reason IS NULL OR c.reason <> 'feedback'
            UNION
            SELECT c.logged_id AS name FROM calls c JOIN latest l ON c.logged_id = l.request_id
            WHERE c.reason IS NULL OR c.reason <> 'feedback'
        ) k ON e.request_id = k.name
        WHERE k.name IS NULL
        """,
    ),
    SqlStep(
        "strata",
        """
        SELECT c.stratum, COUNT(*) AS size, SUM(CASE WHEN s.part IS NULL THEN 0 ELSE 1 END) AS sampled
        FROM candidates c LEFT JOIN chosen s ON c.part = s.part AND c.place = s.place
        GROUP BY c.stratum
        """,
    ),
)

JOINED_TRACES = """
    SELECT part, place, trace FROM (
        SELECT c.part, c.place, t.trace, ROW_NUMBER() OVER (PARTITION BY c.part, c.place ORDER BY t.trace ASC) AS nth
        FROM decisions d
        JOIN calls c ON d.part = c.part AND d.place = c.place
        JOIN traces t ON c.logged_id = t.key
        WHERE d.reason IS NULL AND c.without_trace AND c.record IS NULL
    ) found WHERE nth = 1
"""
"""The traces of the rows that stay and came without one, from a table `traces` (key, trace); a trace of a batch call is
that of no record alone."""

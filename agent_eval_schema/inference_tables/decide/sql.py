"""What becomes of each converted row: decisions that need the whole table, as SQL that DuckDB and Spark read alike.

    calls     one line a converted row: part, place, and of its columns logged_id, request_id, label_id, record, reason,
              time, content_hash, question_hash, sample_hash; stratum (text); without_trace (bool)
    entries   one line a feedback entry: part, place (of the row that brought it), then the fields of an entry
                                                │
    STEPS     named SELECTs, each of which reads the ones before it; an engine makes a table or a view of each
                                                │
    near_groups  (part, place, alike), quotas (stratum, quota): computed beside SQL (BESIDE_SQL)
    decisions    (part, place, content_hash, reason): a line a converted row; the reason is null if the row stays
    attached     (part, place, then the fields of an entry): the latest feedback of the rows that stay
    tallies      (what, rows): how many entries there were, and what became of them
    strata       (stratum, rows, sampled)
    conflicts    (part, place, reason): the excluded copies and duplicates that differ from the row that stays

`part` and `place` only say where a row is; no decision depends on them, so every engine decides alike; but a `part`
below 0 is of the dataset that is extended: its rows stay, come first and are no calls. It is standard SQL only:
windows, joins, signed 64-bit integers, no names that need quotes.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import bounds
from agent_eval_schema.inference_tables.plan import BuildPlan
from agent_eval_schema.inference_tables.read.convert import CONVERTED, FEEDBACK_TYPE
from agent_eval_schema.similarity.near import NEAR, repeats
from agent_eval_schema.traces.feedback import Feedback

REPEATED, DUPLICATE, NEAR_DUPLICATE, NOT_SAMPLED = "repeated", "duplicate_question", "near_duplicate", "not_sampled"
"""The reasons that are decided here; those that a row has from the start (plan.py) come before them."""

IN_EXISTING = {REPEATED: "in_existing", DUPLICATE: "question_in_existing", NEAR_DUPLICATE: "near_in_existing"}
"""The reason of a call whose duplicate is in the existing dataset, rather than another call."""

DEDUPED = {*IN_EXISTING, *IN_EXISTING.values()}
"""The reasons of rows that are excluded for another row."""

ENTRY = Feedback.__struct_fields__
"""The fields of a feedback entry."""

LOWEST, RANGE = -(1 << 63), 1 << 64
"""The range of the hashes of `seeded_hashes`: signed, since Spark has no unsigned integers."""


RESULTS = {
    "reasons": "SELECT reason, COUNT(*) FROM decisions WHERE part >= 0 GROUP BY reason",
    "feedback": "SELECT what, rows_of FROM tallies",
    "strata": "SELECT stratum, size, CAST(sampled AS BIGINT) FROM strata ORDER BY size DESC, stratum",
    "conflicts": "SELECT reason, COUNT(*) FROM conflicts GROUP BY reason ORDER BY reason",
}
"""The parts of a summary that are decisions: small results, by name."""


def steps_of(plan: BuildPlan, existing: int = 0) -> dict[str, str]:
    """The SELECTs for a plan, each by the name of its result, which later ones read; the last five are the results. A
    dataset that is extended has `existing` rows: they count as drawn."""
    by_near = plan.near is not None
    # Which of several rows is kept: all rows of the dataset, and the first call, unless the dataset has its duplicate.
    first = "(part < 0 OR (nth = 1 AND taken = 0))" if plan.extends else "nth = 1"
    dedupes = [("numbered", REPEATED)] if "repeated" not in plan.kept else []
    dedupes += [("questions", DUPLICATE)] if plan.by_question else []
    dedupes += [("alike", NEAR_DUPLICATE)] if by_near else []
    once = "TRUE" if "repeated" in plan.kept else first
    unlike = f"SELECT {_ROW}, time, 1 AS nth, 0 AS taken FROM once"
    # Delivery is at least once: the earliest of the rows with an id is the call, the others are its copies. A row of
    # the dataset is in the stratum of its call, and has the name by which feedback names that.
    columns = _ROW
    if plan.extends:
        same = "OVER (PARTITION BY request_id)"
        label = f"COALESCE(MAX(CASE WHEN part >= 0 THEN label_id END) {same}, label_id) AS label_id"
        stratum = f"COALESCE(MAX(CASE WHEN part >= 0 THEN stratum END) {same}, stratum)"
        stratum = f"CASE WHEN part < 0 THEN {stratum} ELSE stratum END AS stratum"
        columns = f"part, place, request_id, {label}, content_hash, sample_hash, {stratum}"
    numbers = _nth("request_id", "time ASC NULLS LAST, content_hash ASC, part ASC, place ASC", plan.extends)
    steps = {
        "numbered": f"SELECT {columns}, time, question_hash, {numbers} FROM calls WHERE reason IS NULL",
        "once": f"SELECT {_ROW}, time, question_hash FROM numbered WHERE {once}",
        "questions": unlike,
    }
    if plan.by_question:  # an unknown question is like no other
        numbers = _nth("question_hash", _LATEST, plan.extends)
        steps["questions"] = f"""
            SELECT {_ROW}, time, {numbers} FROM once WHERE question_hash IS NOT NULL
            UNION ALL {unlike} WHERE question_hash IS NULL
        """
    if by_near:
        # the questions that are compared, in an order that does not depend on the engine
        steps[NEAR_STEP] = f"""
            SELECT a.part, a.place, c.question_hash, c.shingles FROM (SELECT * FROM questions WHERE {first}) a
            JOIN calls c ON a.part = c.part AND a.place = c.place
            ORDER BY a.request_id ASC NULLS LAST, a.content_hash ASC, a.part ASC, a.place ASC
        """
        row = ", ".join(f"a.{name.strip()}" for name in _ROW.split(","))
        steps["alike"] = f"""
            SELECT {_ROW}, {_nth("alike", _LATEST, plan.extends)} FROM (
                SELECT {row}, a.time, g.alike FROM questions a
                JOIN {NEAR_STEP} g ON a.part = g.part AND a.place = g.place
            ) j
        """
    steps["distinct_questions"] = f"SELECT {_ROW} FROM {'alike' if by_near else 'questions'} WHERE {first}"
    is_drawn = plan.sample is not None or plan.extends
    decisions = _decisions(dedupes, not (plan.by_question or is_drawn), is_drawn)
    candidates = _BY_THUMBS if plan.by_thumbs else _BY_STRATUM
    results = {"decisions": decisions, **_RESULTS, "conflicts": _conflicts(dedupes, first)}
    return steps | _FEEDBACK | {"candidates": candidates} | _drawn(plan, existing) | results


# --- one row of several
_ROW = "part, place, request_id, label_id, content_hash, sample_hash, stratum"
_EXISTING_FIRST = "CASE WHEN part < 0 THEN 0 ELSE 1 END"


def _nth(key: str, order: str, extends: bool) -> str:
    """The number of a row among the calls with the same key, and whether the dataset has a row with it."""
    number = (
        f"ROW_NUMBER() OVER (PARTITION BY {key}{f', {_EXISTING_FIRST}' if extends else ''} ORDER BY {order}) AS nth"
    )
    taken = f"CASE WHEN MIN(part) OVER (PARTITION BY {key}) < 0 THEN 1 ELSE 0 END" if extends else "0"
    return f"{number}, {taken} AS taken"


# The latest call answers with the newest version of the agent.
_LATEST = "time DESC NULLS LAST, request_id ASC NULLS LAST, content_hash ASC, part ASC, place ASC"


NEAR_STEP = "near_groups"
"""The step whose rows become a table (part, place, alike)."""


# --- feedback
_FIELDS = ", ".join(f"e.{name}" for name in ENTRY)
_VALUES = ", ".join(ENTRY)

_FEEDBACK = {
    # One row per click: the latest counts, per source, step and position. Those of one moment are ordered by their
    # values, so that every engine takes the same one.
    "latest": f"""
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
    # A call with one record is known by two names: its own, and that of the record. Where there is little feedback or
    # none, it is looked up in the calls, not they in it.
    "rated": f"""
        SELECT d.part, d.place, {_FIELDS} FROM distinct_questions d JOIN latest e ON d.request_id = e.request_id
        UNION ALL
        SELECT d.part, d.place, {_FIELDS} FROM distinct_questions d JOIN latest e ON d.label_id = e.request_id
        WHERE d.label_id <> d.request_id
    """,
}

# The rows that may be sampled, each with its stratum.
_BY_STRATUM = """
    SELECT part, place, request_id, content_hash, sample_hash, COALESCE(stratum, '') AS stratum FROM distinct_questions
"""
_BY_THUMBS = """
    SELECT d.part, d.place, d.request_id, d.content_hash, d.sample_hash,
           CASE WHEN t.down > 0 THEN 'down' WHEN t.up > 0 THEN 'up' ELSE 'none' END AS stratum
    FROM distinct_questions d LEFT JOIN (
        SELECT part, place,
               SUM(CASE WHEN value THEN 1 ELSE 0 END) AS up,
               SUM(CASE WHEN value THEN 0 ELSE 1 END) AS down
        FROM rated WHERE kind = 'text' AND value IS NOT NULL GROUP BY part, place
    ) t ON d.part = t.part AND d.place = t.place
"""


# --- the sample
_HASHES = "sample_hash ASC, request_id ASC NULLS LAST, content_hash ASC, part ASC, place ASC"


def _drawn(plan: BuildPlan, existing: int) -> dict[str, str]:
    """The rows that stay: those of the dataset, and the calls that are drawn to complete the sample."""
    sample = plan.sample
    if sample is None:
        return {"chosen": "SELECT part, place, stratum FROM candidates"}
    if plan.stratified and not plan.balanced:
        return _shared(plan.extends)
    columns = "part, place, stratum"
    if isinstance(sample, float):
        low = f"sample_hash < CAST('{below(sample)}' AS BIGINT)"
        return {"chosen": f"SELECT {columns} FROM candidates WHERE part < 0 OR {low}"}
    source, order, steps = "candidates", _HASHES, {}
    if plan.balanced:  # the first of each stratum, then the second of each, …: what it has counts
        source, order = "ranked", f"nth ASC, {_HASHES}"
        number = f"ROW_NUMBER() OVER (PARTITION BY stratum ORDER BY {_EXISTING_FIRST}, {_HASHES}) AS nth"
        steps["ranked"] = f"SELECT {columns}, sample_hash, request_id, content_hash, {number} FROM candidates"
    calls = f"SELECT * FROM {source} WHERE part >= 0 ORDER BY {order} LIMIT {max(sample - existing, 0)}"
    return {**steps, "chosen": _with_existing(f"SELECT {columns} FROM ({calls}) d", plan.extends)}


def _with_existing(drawn: str, extends: bool) -> str:
    return f"SELECT part, place, stratum FROM candidates WHERE part < 0 UNION ALL {drawn}" if extends else drawn


def below(fraction: float) -> int:
    """The hash below which this fraction of all hashes is: a row of a sample is in every larger one too."""
    return LOWEST + int(fraction * RANGE)


def _shared(extends: bool) -> dict[str, str]:
    """Each stratum gets its share, which is computed beside SQL: `quota_table`."""
    existing = "CAST(SUM(CASE WHEN part < 0 THEN 1 ELSE 0 END) AS BIGINT)"
    number = f"ROW_NUMBER() OVER (PARTITION BY stratum ORDER BY {_HASHES})"
    drawn = "SELECT r.part, r.place, r.stratum FROM ranked r JOIN quotas q ON r.stratum = q.stratum"
    return {
        QUOTA_STEP: f"SELECT stratum, COUNT(*) AS size, {existing} AS existing FROM candidates GROUP BY stratum",
        "ranked": f"SELECT part, place, stratum, {number} AS nth FROM candidates WHERE part >= 0",
        "chosen": _with_existing(f"{drawn} WHERE r.nth <= q.quota", extends),
    }


# --- the results
def _decisions(dedupes: list[tuple[str, str]], one_pass: bool, drawn: bool) -> str:
    row = "part, place, content_hash"
    selects = [f"SELECT {row}, reason FROM calls WHERE reason IS NOT NULL"]
    if one_pass:  # rows that are not repeated are kept: one pass over the rows is enough
        repeated = f"CASE WHEN nth > 1 THEN '{REPEATED}' END" if dedupes else "NULL"
        return " UNION ALL ".join([*selects, f"SELECT {row}, {repeated} AS reason FROM numbered"])
    for step, reason in dedupes:
        selects.append(f"SELECT {row}, {_which(reason)} AS reason FROM {step} WHERE {_DROPPED}")
    selects.append(_STAY if drawn else f"SELECT {row}, NULL AS reason FROM candidates")
    return " UNION ALL ".join(selects)


_DROPPED = "part >= 0 AND (nth > 1 OR taken = 1)"


def _which(reason: str) -> str:
    return f"CASE WHEN nth > 1 THEN '{reason}' ELSE '{IN_EXISTING[reason]}' END"


_ENTRY_OF = "SELECT o.part, o.place, e.time, e.suggested_output FROM once o JOIN latest e"
_EDITED = "e.kind = 'text' AND e.suggested_output IS NOT NULL"
_CORRECTED = f"""
    SELECT part, place, suggested_output FROM (
        SELECT part, place, suggested_output, ROW_NUMBER() OVER (
            PARTITION BY part, place ORDER BY time DESC NULLS LAST, suggested_output DESC
        ) AS newest FROM (
            {_ENTRY_OF} ON o.request_id = e.request_id WHERE {_EDITED}
            UNION ALL
            {_ENTRY_OF} ON o.label_id = e.request_id WHERE o.label_id <> o.request_id AND {_EDITED}
        ) edits
    ) numbered_edits WHERE newest = 1
"""
"""The newest edited answer of each call and row that is not a copy."""


def _conflicts(dedupes: list[tuple[str, str]], first: str) -> str:
    """The excluded rows that differ from the row that stays: of a repeated ID by request or response, of a question by
    an edited answer that the row that stays lacks."""
    groups = {
        DUPLICATE: "SELECT part, place, question_hash AS alike FROM once",
        NEAR_DUPLICATE: f"SELECT part, place, alike FROM {NEAR_STEP}",
    }
    selects = ["SELECT part, place, reason FROM calls WHERE FALSE"]
    for step, reason in dedupes:
        if reason == REPEATED:  # the hash of a row of the dataset is not that of logged cells
            selects.append(f"""
                SELECT n.part, n.place, '{reason}' AS reason FROM numbered n
                JOIN numbered k ON n.request_id = k.request_id AND k.nth = 1 AND k.part >= 0
                WHERE n.part >= 0 AND n.nth > 1 AND n.content_hash <> k.content_hash
            """)
            continue
        edited = f"""
            SELECT s.part, s.place, s.nth, s.taken, g.alike, t.suggested_output FROM {step} s
            JOIN ({_CORRECTED}) t ON s.part = t.part AND s.place = t.place
            JOIN ({groups[reason]}) g ON s.part = g.part AND s.place = g.place
        """
        selects.append(f"""
            SELECT d.part, d.place, d.reason
            FROM (SELECT part, place, alike, suggested_output, {_which(reason)} AS reason FROM ({edited}) a
                  WHERE {_DROPPED}) d
            LEFT JOIN (SELECT DISTINCT alike, suggested_output FROM ({edited}) b WHERE {first}) k
            ON d.alike = k.alike AND d.suggested_output = k.suggested_output WHERE k.alike IS NULL
        """)
    return " UNION ALL ".join(selects)


_STAY = f"""
    SELECT c.part, c.place, c.content_hash, CASE WHEN s.part IS NULL THEN '{NOT_SAMPLED}' END AS reason
    FROM candidates c LEFT JOIN chosen s ON c.part = s.part AND c.place = s.place
"""

_RESULTS = {
    "attached": f"""
        SELECT e.part, e.place, {_FIELDS} FROM rated e JOIN chosen s ON e.part = s.part AND e.place = s.place
    """,
    "tallies": """
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
    "strata": """
        SELECT c.stratum, COUNT(*) AS size, SUM(CASE WHEN s.part IS NULL THEN 0 ELSE 1 END) AS sampled
        FROM candidates c LEFT JOIN chosen s ON c.part = s.part AND c.place = s.place
        GROUP BY c.stratum
    """,
}

JOINED_TRACES = """
    SELECT part, place, trace FROM (
        SELECT c.part, c.place, t.trace, ROW_NUMBER() OVER (PARTITION BY c.part, c.place ORDER BY t.trace ASC) AS nth
        FROM decisions d
        JOIN calls c ON d.part = c.part AND d.place = c.place
        JOIN traces t ON c.logged_id = t.key
        WHERE d.reason IS NULL AND c.without_trace AND c.record IS NULL AND c.part >= 0
    ) found WHERE nth = 1
"""
"""The traces for rows without one, from the table `traces` (key, trace); that of a batch call is of no record alone."""


_WHERE = [("part", pa.int64()), ("place", pa.int64())]

_FACTS = (
    *("logged_id", "request_id", "label_id", "record", "reason", "time", "content_hash", "question_hash"),
    *("sample_hash", "shingles"),
)
CALL_TABLE = pa.schema(
    [*_WHERE, *map(CONVERTED.field, _FACTS), ("stratum", pa.string()), ("without_trace", pa.bool_())]
)
ENTRY_TABLE = pa.schema([*_WHERE, *(FEEDBACK_TYPE.field(n) for n in ENTRY)])
TRACE_TABLE = pa.schema([("key", pa.string()), ("trace", pa.string())])

DECISION_TABLES = {"calls": CALL_TABLE, "entries": ENTRY_TABLE, "traces": TRACE_TABLE}


NEAR_TABLE = pa.schema([*_WHERE, ("alike", pa.int64())])


def near_table(questions: pa.Table, plan: BuildPlan) -> pa.Table:
    """The table `near_groups`: which of the questions (part, place, question_hash, shingles) are alike."""
    cells = questions.column("shingles").combine_chunks()
    cells = cells.chunk(0) if isinstance(cells, pa.ChunkedArray) and cells.num_chunks else cells
    flat = np.frombuffer(b"".join(cells.to_pylist()), np.uint32)
    ends = bounds(np.asarray(pc.binary_length(cells)).astype(np.int64) // flat.itemsize)
    exact = np.asarray(pc.fill_null(questions.column("question_hash"), 0)).astype(np.int64).view(np.uint64)
    _, alike = repeats(exact, exact != 0, flat, ends, NEAR if plan.near is None else plan.near)
    return pa.table([questions.column("part"), questions.column("place"), pa.array(alike)], schema=NEAR_TABLE)


QUOTA_STEP = "quotas"
"""The step whose rows become a table (stratum, quota): those of each stratum that are drawn."""


def quota_table(strata: pa.Table, plan: BuildPlan) -> pa.Table:
    """The rows of each stratum (stratum, size, existing) that are drawn. Of a dataset that is extended each gets what
    it lacks of its share, or its part of that, if others have more."""
    names, counts, existing = (column.to_pylist() for column in strata.columns)
    total, sample = sum(counts), plan.sample or 0
    wanted = int(sample * total + 0.5) if isinstance(sample, float) else min(sample, total)
    quotas = _shares(wanted, dict(zip(names, counts, strict=True)))
    if plan.extends:
        gaps = {name: max(quotas[name] - size, 0) for name, size in zip(names, existing, strict=True)}
        quotas = _shares(max(min(wanted - sum(existing), sum(gaps.values())), 0), gaps)
    return pa.table({"stratum": pa.array(quotas, pa.string()), "quota": pa.array(quotas.values(), pa.int64())})


def _shares(wanted: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """The whole part of the share of each; what is left goes to the largest remainders, one each."""
    total = sum(sizes.values()) or 1
    shares = {name: divmod(wanted * size, total) for name, size in sizes.items()}
    rest = wanted - sum(whole for whole, _ in shares.values())
    largest = {*sorted(shares, key=lambda name: (-shares[name][1], name))[:rest]}
    return {name: whole + (name in largest) for name, (whole, _) in shares.items()}


BESIDE_SQL = {NEAR_STEP: near_table, QUOTA_STEP: quota_table}
"""The steps whose rows an engine fetches, and turns into the table of that name."""


def call_columns(part: int, rows: pa.RecordBatch, stratum: pa.Array | None) -> dict[str, pa.Array]:
    """The columns of `calls` for the converted rows of a part."""
    size = rows.num_rows
    own = {
        "part": pa.array(np.full(size, part, np.int64)),
        "place": pa.array(np.arange(size)),
        "stratum": pa.nulls(size, pa.string()) if stratum is None else stratum,
        "without_trace": rows.column("trace").is_null(),
    }
    return {n: own[n] if n in own else rows.column(n) for n in CALL_TABLE.names}


def entry_table(part: int, rows: pa.RecordBatch) -> pa.Table:
    """The table `entries` for the feedback of the converted rows of a part."""
    lists = rows.column("feedback")
    entries = lists.flatten()
    of = np.asarray(pc.list_parent_indices(lists)).astype(np.int64)
    columns = [pa.array(np.full(len(of), part, np.int64)), pa.array(of), *(entries.field(n) for n in ENTRY)]
    return pa.table(columns, schema=ENTRY_TABLE)

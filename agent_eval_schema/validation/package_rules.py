"""The rules of other packages on the rows of a batch: one that raises an exception costs only its own issue."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa

from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.errors import RAISED
from agent_eval_schema.io.arrow import to_rows
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rule import RowRule
from agent_eval_schema.rules import RULES, rules_of_packages
from agent_eval_schema.rules.reading import RULE_NOT_RUN
from agent_eval_schema.runtime.extensions import Extension
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.privacy import first_line, may_quote
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.normalized_columns import FIELDS, normalized
from agent_eval_schema.validation.rows import Rows

MOST, LONGEST = 1000, 2000
"""Issues of a rule per row, and characters of a message: a rule whose issues do not end, ends."""


def apply_package_rules(rows: Rows) -> None:
    """Log the issues of the rules that are installed, and those that are missing here: in another process, or on an
    executor of Spark, a package may not be installed."""
    installed = rules_of_packages()
    for code in sorted(rows.codes - RULES.keys() - installed.keys()):
        for row in range(rows.size):
            rows.log.add(RULE_NOT_RUN, row, None, f"expected the rule {code}, got none: its package is not installed")
    for code in sorted(rows.codes & installed.keys()):
        with installed[code].watch(f"for {plural(rows.size, 'row')}", rows.size):
            _apply(installed[code], rows)


def _apply(found: Extension[RowRule], rows: Rows) -> None:
    rule, columns = found.value.rule, [name for name in found.value.columns if name in COLUMNS]
    values = pa.RecordBatch.from_arrays(
        [normalized(name, rows) for name in columns], schema=pa.schema([FIELDS[name] for name in columns])
    )
    decoded = [rows.values[name] for name in columns]
    for row, cells in enumerate(to_rows(values)):
        if row in rows.unread or any(column[row] is FAILED for column in decoded):
            continue
        try:
            issues = list(islice(found.value.check(cells), MOST + 1))
            if len(issues) > MOST:
                raise ValueError(f"more than {MOST:,} issues of a row")
            issues = [(visible(path)[:LONGEST], visible(str(message)[:LONGEST])) for path, message in issues]
        except RAISED as error:
            why = f"`{rule.code}` of {found.package} raised an exception: {type(error).__name__}: {first_line(error)}"
            rows.log.add(RULE_NOT_RUN, row, None, why)
            continue
        for path, message in issues:
            column = path.partition(".")[0].partition("[")[0]
            known = column if column in COLUMNS else None
            if may_quote():
                rows.log.add(rule, row, known, message, path=path)
            else:  # what another package writes may quote a cell
                rows.log.add(rule, row, known, rule.summary, path=known)

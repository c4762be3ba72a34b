"""What the safe fixes would change in a dataset that was validated, for its report."""

from __future__ import annotations

from pathlib import PurePath

from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.render.phrases import command_on
from agent_eval_schema.render.report.summary import FixPreview
from agent_eval_schema.validation.report import Report, run_of

PREVIEWED_ROWS = 10_000
"""Rows of a dataset whose fixes are counted, at most: they are validated once more."""


def preview_fixes(source: Source, report: Report) -> FixPreview | None:
    """What the safe fixes would change in a source, of which this is the report; None if nothing."""
    from agent_eval_schema.fix.effects import FIXABLE  # a validation needs none of them
    from agent_eval_schema.fix.fix import FIXED_FORMATS, FixCounts, fix_source
    from agent_eval_schema.validation.validate import check_source

    plan = run_of(report).plan
    codes = [code for code in report.counts if code in FIXABLE and code in plan.codes]
    if plan.format not in FIXED_FORMATS or not codes or source.remote is not None:
        return None
    command = fix_command(report.name)
    if report.row_count > PREVIEWED_ROWS:
        return FixPreview(dict.fromkeys(codes), command)
    try:
        fixed = fix_source(source, format=plan.format, outputs=plan.outputs, codes=plan.codes)
        counts = FixCounts(len(fixed.renames))
        for _ in counts.over(fixed.batches()):
            pass
        after = check_source(
            fixed.source, format=plan.format, outputs=plan.outputs, select=tuple(plan.codes), values=plan.values
        )
    except EvalSetError:  # data that cannot be fixed is shown without a preview
        return None
    resolved = {code: report.counts[code] - after.counts.get(code, 0) for code in codes}
    resolved = {code: count for code, count in resolved.items() if count > 0}
    return FixPreview(resolved, command, str(counts), after.valid_count) if counts and resolved else None


def fix_command(name: str | None) -> str:
    out = f"fixed{PurePath(name or '').suffix or '.jsonl'}"
    return command_on(name, "validate", "--fix", out, instead="normalize_eval_set(data, fix=True)")

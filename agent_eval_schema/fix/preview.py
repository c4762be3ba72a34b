"""What the safe fixes would change in a dataset that was validated, for its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.excel import is_excel
from agent_eval_schema.io.places import compression_of, ending_of, is_glob, kind_of, part_of
from agent_eval_schema.io.source import Source
from agent_eval_schema.render.fixes import WIDTH
from agent_eval_schema.render.phrases import Call
from agent_eval_schema.render.report.summary import FixPreview
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt_difference
from agent_eval_schema.validation.report import Report, run_of

if TYPE_CHECKING:
    from agent_eval_schema.fix.search import FixedPart

PREVIEWED_ROWS = 10_000
"""Rows of a dataset whose fixes are counted, at most: they are validated once more."""


def preview_fixes(source: Source, report: Report) -> FixPreview | None:
    """What the safe fixes would change in the source of a report; None if nothing."""
    from agent_eval_schema.fix.effects import FIXABLE  # a validation needs none of them
    from agent_eval_schema.fix.fix import FIXED_FORMATS, FixCounts, fix_source
    from agent_eval_schema.validation.validate import check_source

    plan = run_of(report).plan
    codes = [code for code in report.counts if code in FIXABLE and code in plan.codes]
    if plan.format not in FIXED_FORMATS or not codes or source.remote is not None:
        return None
    call = run_of(report).call
    if report.row_count > PREVIEWED_ROWS:
        return FixPreview(dict.fromkeys(codes), fix_command(call))
    try:
        source = source.read_as(format=plan.format, outputs=plan.outputs_option)
        fixed = fix_source(source, codes=plan.codes)
        counts, cells = FixCounts(len(fixed.renames)), dict[int, list[tuple[str, str, str]]]()
        for _, fixes in counts.over(fixed.batches()):
            for fix in fixes if plan.values else ():
                cells.setdefault(fix.row, []).extend((p.path, *_texts(p)) for p in fix.parts)
        after = check_source(fixed.source)
    except EvalSetError:  # data that cannot be fixed is shown without a preview
        return None
    resolved = {code: report.counts[code] - after.counts.get(code, 0) for code in codes}
    resolved = {code: count for code, count in resolved.items() if count > 0}
    if not (counts and resolved):
        return None
    command = fix_command(call, on_invalid="raise" if after.ok else "keep")
    return FixPreview(resolved, command, str(counts), after.valid_count, after.counts, cells)


def _texts(part: FixedPart) -> tuple[str, str]:
    """The old and the new text of a part of a cell, cut around what differs."""
    return excerpt_difference(jsontext.write_exactly(part.before), jsontext.write_exactly(part.after), WIDTH)


def fix_command(call: Call, *, on_invalid: str = "keep") -> str:
    """What applies the safe fixes; rows that remain invalid do not keep the others from being returned."""
    name = call.name or ""
    name = part_of(name)[0] if is_excel(name) else name
    is_file = (kind_of(name) is not None or is_excel(name)) and not is_glob(name)
    out = f"fixed{ending_of(name)}{compression_of(name)}" if is_file else "fixed.jsonl"
    options = {} if on_invalid == "raise" else {"on_invalid": on_invalid}
    function = Call().function("normalize_eval_set", "report", fix=True, **options)
    return call.command("validate", "--fix", out) or function

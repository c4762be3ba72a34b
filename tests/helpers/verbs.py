"""One answer of all verbs: which rows of some data can be used."""

from __future__ import annotations

from typing import Any

from agent_eval_schema import Report, convert_eval_set, normalize_eval_set, profile_eval_set, validate_eval_set


def report_of_all(data: Any, **options: Any) -> Report:
    """The validation report of data; conversion, normalization and profile use as many of its rows."""
    report = validate_eval_set(data, **options)
    assert convert_eval_set(data, "databricks", **options).converted == report.valid_count
    assert len(normalize_eval_set(data, on_invalid="drop", **options)) == report.valid_count
    assert f"{report.valid_count} of {report.row_count} rows valid" in repr(profile_eval_set(data, **options))
    return report

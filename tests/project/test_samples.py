"""The sample data: README, notebooks and tests use the same files."""

import re
from pathlib import Path

import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.rules import FAMILIES, RULES
from tests.conftest import SAMPLES

GOOD = [
    "good.jsonl",
    "good.csv",
    "good_mlflow.jsonl",
    "search_traces.jsonl",
    "traces_mlflow2.jsonl",
    "otel_traces.jsonl",
]

NOT_YET = {"7", "8"}  # production tables and conversion losses come with theirs

INDEX = re.findall(
    r"^\| `([\w.]+)` \| `?([\w -]+?)`? \| .+ \| (\d+) \| (\d*) ?\| (\d*) ?\|$",
    (SAMPLES / "README.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
"""The index of the samples: file, format, rows, errors, warnings."""

WRITTEN = sorted(form.name for form in FORMATS if form.writer is not None)


@pytest.mark.parametrize("format", WRITTEN)
def test_every_format_has_a_good_and_a_broken_sample(format: str) -> None:
    """That they are what their names claim is tested with the figures of the index."""
    names = [name for name, of, *_ in INDEX if of == format]
    good, broken = ([name for name in names if ("broken" in name) == is_broken] for is_broken in (False, True))
    assert good, f"sample_data/README.md has no line of a valid sample of {format}"
    assert broken, f"sample_data/README.md has no line of a broken sample of {format}"
    assert max(validate_eval_set(SAMPLES / name).invalid_count for name in broken) >= 2


@pytest.mark.parametrize("name", GOOD)
def test_the_good_samples_have_no_errors_or_warnings(name: str, samples: Path) -> None:
    report = validate_eval_set(samples / name)
    assert report.row_count > 0
    assert (report.count("error"), report.count("warning")) == (0, 0), report.to_text()


def test_the_index_has_every_file() -> None:
    assert sorted(name for name, *_ in INDEX) == sorted(p.name for p in SAMPLES.iterdir() if p.name != "README.md")


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry[0])
def test_a_broken_sample_has_errors_and_no_other_has_any(entry: tuple[str, ...]) -> None:
    """The figures are compared in tests/generated."""
    name, _format, _rows, errors, warnings = entry
    assert ("broken" in name) == (int(errors or 0) > 0)
    assert "broken" in name or not int(warnings or 0)


def test_the_good_sample_has_all_request_formats_and_both_generations_of_traces(samples: Path) -> None:
    text = (samples / "good.jsonl").read_text()
    assert '"messages"' in text
    assert '"history"' in text
    assert '\\"trace_metadata\\"' in text  # MLflow 3
    assert '\\"request_metadata\\"' in text  # MLflow 2


def test_every_family_of_issues_occurs_in_the_broken_sample(samples: Path) -> None:
    report = validate_eval_set(samples / "broken.jsonl")
    assert {code[2] for code in report.counts} == set(FAMILIES) - NOT_YET
    assert {RULES[code].severity.value for code in report.counts} == {"error", "warning", "info"}


def test_the_csv_says_the_same_as_the_rows_that_it_was_made_from(samples: Path) -> None:
    rows = validate_eval_set(samples / "good.jsonl").rows.set_index("request_id")
    table = validate_eval_set(samples / "good.csv").rows.set_index("request_id")
    for name in ("request", "response", "expected_response", "retrieved_context"):
        assert list(table[name]) == list(rows.loc[table.index, name]), name


def test_samples_name_no_machine(samples: Path) -> None:
    for path in samples.iterdir():
        text = path.read_text()
        places = [f"/{folder}/" for folder in ("home", "root", "tmp", "Users", "site-packages")]
        assert not [place for place in places if place in text], path

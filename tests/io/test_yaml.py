"""Hostile YAML: small files that would take the stack, the memory or the hours of a reader are issues of their file."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_eval_schema import EvalSetError, Report, validate_eval_set
from agent_eval_schema.io.yaml import yaml_rows
from agent_eval_schema.validation.settings import find_settings

pytest.importorskip("yaml")


def aliases(levels: int, leaf: str) -> str:
    """Each level repeats the one before nine times: 9^levels nodes."""
    lines = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join([f"a0: &a0 {leaf}", *lines])


HOSTILE = {
    **{f"40,000 × {opening!r}": (opening * 40_000, "AE004") for opening in ("[", "{a: ", "- ", "? ")},
    **{f"empty nodes {leaf}": (aliases(12, leaf), "AE007") for leaf in ("[]", "{}", "''", "~")},
    "a long key": (f"a: &a {{{'k' * 1000}: }}\nb: [{', '.join(['*a'] * 50_000)}]", "AE007"),
    "a long string": (f"a: &a {'x' * 1000}\nb: [{', '.join(['*a'] * 50_000)}]", "AE007"),
    "a hexadecimal number": ("a: 0x" + "f" * 6_000, "AE007"),
    "an octal number": ("a: 0o" + "7" * 6_000, "AE007"),
    "a decimal number": ("a: -" + "7" * 6_000, "AE007"),
}


def as_file(text: str, folder: Path) -> Path:
    (path := folder / "a.yaml").write_text(text)
    return path


def as_zip(text: str, folder: Path) -> Path:
    with zipfile.ZipFile(path := folder / "app.zip", "w") as archive:
        archive.writestr("Shop/app.yaml", "displayName: Shop")
        archive.writestr("Shop/evaluations/a/a.yaml", text)
    return path


def as_export(text: str, folder: Path) -> Path:
    (home := folder / "Shop" / "evaluations" / "a").mkdir(parents=True)
    (folder / "Shop" / "app.yaml").write_text("displayName: Shop")
    (home / "a.yaml").write_text(text)
    return folder / "Shop"


def as_promptfoo(text: str, folder: Path) -> Path:
    inner = "\n".join(f"      {line}" for line in text.splitlines())
    (path := folder / "promptfooconfig.yaml").write_text(f"prompts: [p]\ntests:\n  - vars:\n{inner}\n")
    return path


@pytest.mark.parametrize("container", [as_file, as_zip, as_export, as_promptfoo])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_yaml_is_an_issue_of_its_file(
    hostile: str, container: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    text, code = HOSTILE[hostile]
    report: Report = validate_eval_set(container(text, tmp_path))
    assert report.row_count == 1
    assert report.valid_count == 0
    assert code in report.counts, report.to_text()


def test_the_number_of_digits_is_limited_as_that_of_json() -> None:
    for number in ("7" * 4_000, "0x" + "f" * 3_300, "0o" + "7" * 3_300):
        ((_, problem),) = yaml_rows(f"a: {number}".encode())
        assert problem == ""
    ((_, problem),) = yaml_rows(b"a: 1\nb: " + b"7" * 4_001)
    assert problem == "line 2: expected a number of at most 4,000 digits, got one of 4,001"


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        *[("0010", "10"), ("-07", "-7"), ("+5", "5"), ("0o17", "15"), ("0x1F", "31")],
        *[(".5", "0.5"), ("1.", "1.0"), ("-1e3", "-1000.0")],
        *[(word, "null") for word in ("", "~", "Null")],
        *[("TRUE", "true"), ("False", "false")],
        *[(text, f'"{text}"') for text in ("tRUE", "nULL", "yes", "0b1", "0o8", "1_000", "2025-01-31", "1e", ".")],
        ("'0010'", '"0010"'),
    ],
)
def test_a_plain_scalar_is_what_yaml_1_2_reads(scalar: str, expected: str) -> None:
    assert yaml_rows(f"a: {scalar}".encode()) == [(f'{{"a":{expected}}}'.encode(), "")]


def test_ordinary_aliases_are_read() -> None:
    ((text, problem),) = yaml_rows(b"base: &base {model: a, tools: [b, c]}\nx: *base\ny: [*base, *base]\n")
    assert problem == ""
    assert text.count(b'"model"') == 4


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exclude = " + "[" * 40_000, "malformed TOML"),
        ("exclude = " + "{a = " * 40_000, "malformed TOML"),
        ("exclude = " + "7" * 6_000, "malformed TOML"),
        ("exclude = 0x" + "f" * 6_000, "expected"),
        ("a." * 5_000 + "b = 1", "unknown setting|nested too deep"),  # tomli of Python 3.10 recurses there
    ],
)
def test_hostile_settings_are_one_error(text: str, why: str, tmp_path: Path) -> None:
    (path := tmp_path / "agent-eval-schema.toml").write_text(text)
    with pytest.raises(EvalSetError, match=why) as caught:
        find_settings(str(path))
    assert len(str(caught.value)) < 1_000

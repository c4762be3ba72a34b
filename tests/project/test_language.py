"""Texts use one term per concept: those of the glossary in .vale/styles."""

import argparse
import configparser
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import agent_eval_schema
from agent_eval_schema.cli import argument_parser
from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.inference_tables.plan import REASONS, Reason
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import RULES
from tests.cli.test_options import parsers
from tests.conftest import ROOT
from tests.helpers.language import STYLES, comments, messages, wrong_terms


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda r: r.code)
def test_the_texts_of_a_rule_use_the_terms_of_the_glossary(rule: Rule) -> None:
    assert wrong_terms("\n".join([rule.summary, rule.why, rule.hint, rule.no_example])) == []


@pytest.mark.parametrize("reason", REASONS.values(), ids=lambda r: r.name)
def test_the_reasons_for_excluded_rows_use_them(reason: Reason) -> None:
    assert wrong_terms(f"{reason.sentence}\n{reason.remedy}") == []


def test_the_fixes_use_them() -> None:
    assert [term for fixes in FIXABLE.values() for what in fixes for term in wrong_terms(what)] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Mended rows of the data set.", ["Use 'dataset' instead of 'data set'.", "Use 'fix' instead of 'Mended'."]),
        ("A column that nobody reads.", ["Use 'the agent, the user or the reader' instead of 'nobody'."]),
        ("The ID stands on an earlier row.", ["Use 'is in, occurs in or duplicates' instead of 'stands'."]),
        ("What mlflow refuses.", ["Use 'reject' instead of 'refuses'.", "Use 'MLflow' instead of 'mlflow'."]),
        ("Databricks and MLflow reject `mlflow.said`, see https://mlflow.org/said.", []),
        ("The amended recommendation of a valid payload.", []),
    ],
)
def test_a_term_of_another_name_is_found(text: str, message: list[str]) -> None:
    assert wrong_terms(text) == message


def test_vale_applies_the_same_files() -> None:
    settings = configparser.ConfigParser()
    settings.read_string("[DEFAULT]\n" + (ROOT / ".vale.ini").read_text(encoding="utf-8"))
    assert ROOT / settings["DEFAULT"]["StylesPath"] / settings["*.md"]["BasedOnStyles"] == STYLES


# ---------------------------------------------------------------------------------------------------------------------
# every text of the package
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")

CODE_NAMES = frozenset({"finding", "findings", "remarks", "journal", "verdict"})
"""Names of classes, fields and parameters: comments and docstrings may use them as such."""

RENDERING = ("agent_eval_schema/render/", "agent_eval_schema/cli/output.py")

EXAMPLES = re.compile(r"^\s*(?:>>>|\.\.\.).*$", re.MULTILINE)


def modules() -> list[Path]:
    return sorted((ROOT / "agent_eval_schema").rglob("*.py"))


def in_module(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_use_the_terms(page: str) -> None:
    assert wrong_terms((ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("command", list(parsers(argument_parser())), ids=lambda c: c.prog)
def test_the_help_of_every_command_uses_them(command: argparse.ArgumentParser) -> None:
    assert wrong_terms(command.format_help(), names=False) == []


@pytest.mark.parametrize("path", modules(), ids=in_module)
def test_every_message_uses_them(path: Path) -> None:
    texts = messages(path.read_text(encoding="utf-8"))
    found = {line: terms for line, text in texts if (terms := wrong_terms(text, names=False))}
    assert {line: terms for line, terms in found.items() if (in_module(path), terms) not in EXEMPT} == {}


EXEMPT = [
    ("agent_eval_schema/inference_tables/spark.py", ["Use 'validation result' instead of 'verdicts'."]),  # SQL
    ("agent_eval_schema/evaluation/table.py", ["Use 'excluded' instead of 'left out'."]),
    ("agent_eval_schema/render/fixes.py", ["Use 'fix' instead of 'repaired'."]),
    (  # a word of questions
        "agent_eval_schema/similarity/shingles.py",
        ["Use 'the agent, the user or the reader' instead of 'nobody'."],
    ),
]


@pytest.mark.parametrize("path", [p for p in modules() if not in_module(p).startswith(RENDERING)], ids=in_module)
def test_every_docstring_and_comment_uses_them(path: Path) -> None:
    texts = comments(path.read_text(encoding="utf-8"))
    found = {
        line: terms
        for line, text in texts
        if (terms := wrong_terms(EXAMPLES.sub("", text), names=False, allowed=CODE_NAMES))
    }
    assert found == {}


DETOURS = re.compile(
    r"(?<!each )(?<!one )(?<!some )(?<!none )(?<!all )(?<!first )\bof wh(?:ich|om)\b|\bso many (?!chunks|points)",
    re.I,
)
"""Relative clauses and numbers that a reader has to translate: "whose values", "this number of rows"."""


@pytest.mark.parametrize("path", modules(), ids=in_module)
def test_no_docstring_comment_or_message_takes_a_detour(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [(line, words) for line, words in (*comments(text), *messages(text)) if DETOURS.search(words)] == []


PUBLIC = [
    (module, name)
    for module in (agent_eval_schema, agent_eval_schema.ces)
    for name in module.__all__
    if inspect.isclass(value := getattr(module, name)) or inspect.isfunction(value)
]


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=[name for _, name in PUBLIC])
def test_the_docstring_of_every_public_name_uses_them(module: ModuleType, name: str) -> None:
    value = getattr(module, name)
    members = [m for m in vars(value).values() if getattr(m, "__doc__", None)] if inspect.isclass(value) else []
    texts = [EXAMPLES.sub("", inspect.getdoc(v) or "") for v in (value, *members) if not isinstance(v, str)]
    assert [term for text in texts for term in wrong_terms(text, names=False, allowed=CODE_NAMES)] == []


SEEDED = '''
"""A module that says what it does."""


def _private(rows):
    """The rows that are carried along."""
    # Nobody reads the others.
    raise ValueError(f"{len(rows)} rows are left out of the data set")
'''


def test_a_seeded_term_is_found_wherever_it_is() -> None:
    assert [terms for _, text in comments(SEEDED) if (terms := wrong_terms(text))] == [
        ["Use 'reported' instead of 'says'."],
        ["Use 'passed through' instead of 'carried along'."],
        ["Use 'the agent, the user or the reader' instead of 'Nobody'."],
    ]
    assert [terms for _, text in messages(SEEDED) if (terms := wrong_terms(text))] == [
        ["Use 'dataset' instead of 'data set'.", "Use 'excluded' instead of 'left out'."]
    ]


BRITISH = re.compile("spel[t]|neighbo[u]r|behavio[u]r|favo[u]r", re.IGNORECASE)  # not in itself


def test_names_and_files_are_spelled_as_in_american_english() -> None:
    """codespell reads words, and none of a name with underscores."""
    files = [p for folder in ("agent_eval_schema", "tests", "docs") for p in (ROOT / folder).rglob("*.py")]
    folders = [p.as_posix() for p in (ROOT / "tests").rglob("*") if "__pycache__" not in p.parts]
    lines = [f"{p}: {line}" for p in files for line in p.read_text(encoding="utf-8").splitlines()]
    assert [found for found in (*lines, *folders) if BRITISH.search(found.removeprefix(str(ROOT)))] == []

"""A rule's text is its documentation and its test: its bad rows raise its code, its good rows do not."""

import ast
import json
import re
from contextlib import suppress

import pandas as pd
import pytest

from agent_eval_schema import EvalSetError, eval_set_from_inference_table, explain, validate_eval_set
from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.render.rule import rules_json
from agent_eval_schema.rule import RowRule, Rule, Severity
from agent_eval_schema.rules import FAMILIES, RULES, rule_of
from agent_eval_schema.validation.chosen_rules import chosen
from tests.conftest import ROOT, SAMPLES
from tests.helpers.inference_tables import codes, convert
from tests.helpers.language import is_hint, text_of

WITH_EXAMPLES = [r for r in RULES.values() if r.bad and r.code[2] != "7"]
FEEDBACK_EXAMPLES = [RULES[code] for code in ("AE714", "AE715", "AE716", "AE717", "AE718")]
LOGGED_EXAMPLES = [r for r in RULES.values() if r.bad and r.code[2] == "7" and r not in FEEDBACK_EXAMPLES]
"""The examples of family 7 are logged rows, which are converted before they are rows of an evaluation set."""

NOW = 1_764_000_000_000_000
"""In November 2025, in microseconds: later than the examples."""

TESTED_ELSEWHERE = {
    "cells/test_limit.py": ("AE011",),
    "conformance/test_packages.py": ("AE013",),
    "validation/test_kernel.py": ("AE001", "AE005", "AE007", "AE008", "AE101"),
    "decoding/test_columns.py": ("AE104", "AE105"),
    "fix": ("AE108", "AE109"),
    "io/test_jsonl.py": ("AE114",),
    "io/test_csv.py": ("AE169", "AE181"),
    "formats/ces/test_golden.py": ("AE120",),
    "formats/test_mlflow.py": ("AE227",),
    "formats/test_columns_as_kept.py": ("AE117", "AE168", "AE183"),
    "inference_tables": ("AE712",),
    "formats/ces/test_golden_writer.py": ("AE801", "AE802", "AE803", "AE804", "AE805", "AE806"),
    "conversion/test_convert.py": ("AE811", "AE812", "AE813", "AE814"),
    "formats/test_kept.py": ("AE817",),
    "formats/test_kinds_of_rows.py": ("AE184", "AE818"),
    "formats/test_rows_of_others.py": ("AE816",),
    "formats/test_adk.py": ("AE165",),
    "formats/test_adk_criteria.py": ("AE166", "AE167"),
    "integrations/mlflow/test_tracking.py": ("AE613",),
    "conversion/test_losses.py": ("AE815",),
}
"""The rules without examples: a defect injected into a rule, lines that are no rows, several columns of a name …"""


@pytest.mark.parametrize("rule", LOGGED_EXAMPLES, ids=lambda r: f"{r.code}-{r.name}")
def test_the_examples_of_logged_rows(rule: Rule) -> None:
    assert [rule.code] in [codes(record) for record in convert(list(rule.bad), now=NOW)]
    assert not any(codes(record) for record in convert(list(rule.good), now=NOW))


@pytest.mark.parametrize("rule", FEEDBACK_EXAMPLES, ids=lambda r: f"{r.code}-{r.name}")
def test_the_examples_of_feedback(rule: Rule) -> None:
    """It labels another row, so both are needed."""
    bad, good = (eval_set_from_inference_table(pd.DataFrame(list(rows))) for rows in (rule.bad, rule.good))
    assert rule.code in bad.summary.issues | bad.report.counts
    assert rule.code not in good.summary.issues | good.report.counts
    assert len(good.rows) == 1


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda r: f"{r.code}-{r.name}")
def test_the_bad_example_raises_the_code_with_its_severity_and_no_other_error(rule: Rule) -> None:
    report = validate_eval_set(list(rule.bad))
    others = report.counts.keys() - {rule.code}
    assert not [c for c in others if RULES[c].severity is Severity.ERROR or c in ("AE101", "AE102")], "or misspelled"
    issue = report.issues[report.issues["code"] == rule.code].iloc[0]
    assert (issue["name"], issue["severity"]) == (rule.name, rule.severity)
    assert issue["message"]
    assert issue["hint"]


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda r: f"{r.code}-{r.name}")
def test_the_good_example_is_valid_and_free_of_the_code(rule: Rule) -> None:
    report = validate_eval_set(list(rule.good))
    assert report.ok, report.to_text()
    assert rule.code not in report.counts


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda r: f"{r.code}-{r.name}")
def test_one_cause_is_one_error(rule: Rule) -> None:
    """Each bad row has at most the one error that it is an example of."""
    report = validate_eval_set(list(rule.bad))
    errors = report.issues[report.issues["severity"] == "error"]
    assert set(errors["code"]) <= {rule.code}
    assert not errors["row"].dropna().duplicated().any()


def test_rules_without_examples_are_tested_somewhere() -> None:
    assert {r.code for r in RULES.values() if not r.bad} == {c for codes in TESTED_ELSEWHERE.values() for c in codes}


@pytest.mark.parametrize("place", TESTED_ELSEWHERE)
def test_the_tests_of_rules_without_examples_are_where_they_are_said_to_be(place: str) -> None:
    path = ROOT / "tests" / place
    text = "".join(p.read_text() for p in ([path] if path.is_file() else path.rglob("test_*.py")))
    assert [code for code in TESTED_ELSEWHERE[place] if code not in text] == []


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda r: r.code)
def test_every_rule_is_documented(rule: Rule) -> None:
    assert re.fullmatch(r"AE\d{3}", rule.code)
    assert rule.code[2] in FAMILIES
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert all(text.endswith(".") and text == " ".join(text.split()) for text in (rule.summary, rule.why, rule.hint))
    assert len(rule.summary) <= 80
    assert rule.why != rule.summary
    assert rule.hint[0].isupper()
    assert bool(rule.bad) == bool(rule.good) != bool(rule.no_example)
    text = explain(rule.code)
    assert text.startswith(f"{rule.code} {rule.name} ({rule.severity})")
    assert all(
        part in text for part in (rule.summary, f"Why: {rule.why}", f"Fix: {rule.hint}", rule.no_example, rule.url)
    )
    assert ("Fixable: yes" in text, "Fixable: no" in text) == (rule.code in FIXABLE, rule.code not in FIXABLE)
    assert explain(rule.name) == text


@pytest.mark.parametrize("rule", [r for r in RULES.values() if r.severity == "info"], ids=lambda r: r.code)
def test_the_hint_of_an_info_rule_says_that_no_action_is_needed(rule: Rule) -> None:
    assert rule.hint.startswith("No action needed")


def test_a_rule_links_to_a_page_of_a_vendor_or_to_none() -> None:
    assert [r.code for r in RULES.values() if not re.fullmatch(r"(https://[^\s/]+/\S+)?", r.url)] == []


@pytest.mark.parametrize("code", ["AE206", "AE902"])
def test_an_issue_has_the_link_of_its_rule(code: str) -> None:
    """Of a row, and of the dataset as a whole."""
    report = validate_eval_set(list(RULES[code].bad))
    assert {issue.url for issue in report.iter_issues() if issue.code == code} == {RULES[code].url}
    assert set(report.issues.loc[report.issues["code"] == code, "url"]) == {RULES[code].url}
    [issue, *_] = [i for i in json.loads(report.to_json())["issues"] if i["code"] == code]
    assert issue["url"] == RULES[code].url


def test_all_rules_as_json() -> None:
    document = json.loads(rules_json(list(RULES.values()), FIXABLE))
    rules = {rule["code"]: rule for rule in document["rules"]}
    assert list(rules) == list(RULES)
    assert {code for code, rule in rules.items() if rule["fixable"]} == set(FIXABLE)
    rule = RULES["AE406"]
    assert rules["AE406"] == {
        "code": "AE406",
        "name": "document-key",
        "severity": "warning",
        "family": "Retrieval",
        "summary": rule.summary,
        "why": rule.why,
        "hint": rule.hint,
        "fixable": True,
        "url": rule.url,
        "examples": {"bad": list(rule.bad), "good": list(rule.good)},
        "no_example": None,
    }
    assert (rules["AE001"]["url"], rules["AE001"]["examples"]) == (None, {"bad": [], "good": []})
    assert rules["AE006"]["examples"]["bad"] == [{"request": "Hi \\ud83d", "response": "Hello"}]


def test_names_are_unique() -> None:
    assert len({r.name for r in RULES.values()}) == len(RULES)


def test_explain_knows_only_its_rules() -> None:
    with pytest.raises(EvalSetError, match="got 'AE999'"):
        explain("AE999")


@pytest.mark.parametrize(("typed", "meant"), [("AE999", ""), ("AE77", ""), ("mesage-role", "message-role")])
def test_an_unknown_rule_suggests_a_close_name_and_no_code(typed: str, meant: str) -> None:
    with pytest.raises(EvalSetError) as error:
        explain(typed)
    assert str(error.value).partition("did you mean ")[2] == (f"{meant!r}?" if meant else "")


def test_the_beginning_of_codes_lists_them() -> None:
    with pytest.raises(EvalSetError, match=r"'AE31' begins AE310 expectation-beside-inputs, AE311 placeholder-text, "):
        explain("AE31")


def test_select_and_ignore_take_codes_prefixes_and_names() -> None:
    assert chosen(("AE206",), ()) == {"AE206"}
    assert chosen(("message-role",), ()) == {"AE206"}
    assert {c[:3] for c in chosen(("AE4",), ())} == {"AE4"}
    assert chosen((), ("AE4",)) == {c for c in RULES if not c.startswith("AE4")}
    assert chosen(("AE2",), ("AE206",)) == {c for c in RULES if c.startswith("AE2")} - {"AE206"}


def test_a_selector_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(EvalSetError, match="got 'AE77'"):
        chosen(("AE77",), ())


def test_a_rule_that_is_ignored_does_not_make_a_row_invalid() -> None:
    rows = [{"request": "Hi", "response": "Hello", "retrieved_context": [{"content": "x"}]}]
    assert validate_eval_set(rows).invalid_count == 1
    report = validate_eval_set(rows, ignore=["AE403"])
    assert (report.valid_count, report.counts) == (1, {})


def test_select_leaves_only_the_rules_that_are_named() -> None:
    rows = [{"request": None, "response": "", "team": "x"}]
    assert validate_eval_set(rows, select="AE201").counts == {"AE201": 1}


FILES_OF_TESTS = sorted(path for path in (ROOT / "tests" / "data").rglob("*.json*") if path.stat().st_size < 500_000)


def test_every_hint_is_a_sentence() -> None:
    """Whether it is that of the rule or says more; the attacks of tests/fuzz require the same of every issue."""
    assert [rule.code for rule in RULES.values() if not is_hint(rule.hint)] == []
    examples = [list(rule.bad) for rule in RULES.values() if rule.bad]
    own = {}
    for data in (*examples, *map(str, sorted(path for path in SAMPLES.iterdir())), *map(str, FILES_OF_TESTS)):
        with suppress(EvalSetError):  # some are files of something else
            own |= {
                issue.hint: issue.code
                for issue in validate_eval_set(data).iter_issues()
                if issue.hint != RULES[issue.code].hint
            }
    assert len(own) > 50
    assert {hint: code for hint, code in own.items() if not is_hint(hint) or hint.count("`") % 2} == {}


def test_every_hint_that_is_written_in_the_package_is_a_sentence() -> None:
    """Those that no sample or test data leads to, too."""
    hints = [
        (path.name, hint.lineno, text)
        for path in sorted((ROOT / "agent_eval_schema").rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        for hint in (*call.args[HINT.get(call.func.id, 99) :], *(k.value for k in call.keywords if k.arg == "hint"))
        if (text := text_of(hint)) not in ("", "…")
    ]
    assert len(hints) > 5
    assert [place for place in hints if not is_hint(place[2])] == []


HINT = {"Finding": 4, "finding_at": 3, "_at": 3, "_found": 3, "_problem": 3, "Problem": 4}
"""The place of the hint among the arguments of what makes a finding."""


@pytest.mark.parametrize(
    ("code", "name", "words"),
    [
        ("AE950", "my-rule", "code: expected two to six letters, not AE, and three digits; got 'AE950'"),
        ("x1", "my-rule", "code: expected two to six letters, not AE, and three digits; got 'x1'"),
        ("HD901", "My rule", "name: expected lower case, such as message-role; got 'My rule'"),
    ],
)
def test_a_rule_of_a_package_with_another_code_or_name_is_refused(code: str, name: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        RowRule(Rule(code, name, Severity.ERROR, "s", "w", "h"), ("request",), lambda _: [])


def test_a_rule_whose_package_is_not_installed_has_a_stand_in() -> None:
    assert rule_of("AE201") is RULES["AE201"]
    assert (rule_of("HD999").name, rule_of("HD999").severity) == ("rule-not-installed", "warning")

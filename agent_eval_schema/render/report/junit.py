"""Reports as JUnit XML, for the test views of GitLab, Jenkins and Azure: a file is a suite, a rule is a case.

    testsuites
    └─ testsuite name=file, tests, failures, time
       ├─ properties      version, format, outputs, rows
       ├─ testcase        a rule that found nothing: passed
       ├─ testcase        a rule at or above the level that fails a run: failure, with its count and examples
       └─ testcase        a rule below that level: passed, its findings in system-out

The tree is built by xml.etree, which escapes; what XML 1.0 cannot hold at all (control characters, surrogates) is
written out by `visible`, and what a CI runner would take for a command is a character reference. Source of the
structure: the JUnit schema of Jenkins' xunit plugin (junit-10.xsd).
"""

from collections.abc import Collection, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from agent_eval_schema.render.console import finding
from agent_eval_schema.render.report.advice import report_headline
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.visible import XML_ESCAPE, escape_ci_commands, visible


def junit_xml(reports: Sequence[ReportSummary], *, failing: Collection[Severity] = (Severity.ERROR,)) -> str:
    """The document for a run. A rule of a `failing` severity that found something is a failed test case.

    It is written in ASCII, so that it is right in whatever encoding a console has.
    """
    root = Element("testsuites", name="agent-eval-schema")
    for report in reports:
        _add_suite(root, report, failing)
    for total in ("tests", "failures", "errors"):
        root.set(total, str(sum(int(suite.attrib[total]) for suite in root)))
    root.set("time", f"{sum(report.seconds for report in reports):.3f}")
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    # A line may begin with what a cell says. In tags there is neither `::` nor `##`.
    return "".join(f"{escape_ci_commands(line, XML_ESCAPE)}\n" for line in document.decode().splitlines())


def _add_suite(root: Element, report: ReportSummary, failing: Collection[Severity]) -> None:
    name = visible(report.name or "data")
    failures = [c for c in report.counts if RULES[c].severity in failing]
    suite = SubElement(root, "testsuite", name=name, tests=str(len(report.codes)), failures=str(len(failures)))
    suite.attrib.update(errors="0", skipped="0", time=f"{report.seconds:.3f}")
    properties = SubElement(suite, "properties")
    facts = {
        "version": __version__,
        "format": report.format,
        "outputs": report.outputs,
        "rows": report.row_count,
        "valid_rows": report.valid_count,
        "invalid_rows": report.invalid_count,
        "rules_off": len(report.codes_off),
    }
    for key, value in facts.items():
        SubElement(properties, "property", name=key, value=visible(value))
    for code in report.codes:
        case = SubElement(suite, "testcase", name=f"{code} {RULES[code].name}", classname=name, time="0")
        if code in report.counts:
            rule = RULES[code]
            count, examples = report.counts[rule.code], report.examples.get(rule.code, [])
            lines = [finding(issue) + (f" → {visible(issue.hint)}" if issue.hint else "") for issue in examples]
            lines += [f"… and {count - len(examples):,} more"] if count > len(examples) else []
            message = f"{count:,} × {rule.summary}"
            if code in failures:
                SubElement(case, "failure", type=str(rule.severity), message=message).text = "\n".join(lines)
            else:
                SubElement(case, "system-out").text = "\n".join([f"{rule.severity}: {message}", *lines])
    SubElement(suite, "system-out").text = report_headline(report)

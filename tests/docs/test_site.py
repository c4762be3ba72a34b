"""The built site: every public thing has its place, links lead somewhere, nothing is loaded from the network."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest

import agent_eval_schema
from agent_eval_schema import ces, scorers
from agent_eval_schema.cli import argument_parser
from agent_eval_schema.formats.inference_tables import TABLE_FAMILIES
from agent_eval_schema.formats.json_schema import SCHEMAS
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.inference_tables.plan import REASONS
from agent_eval_schema.metrics.catalog import METRICS
from agent_eval_schema.metrics.definitions import DEFINITIONS
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import COLUMNS
from tests.conftest import ROOT
from tests.helpers.docstrings import members

PACKAGES = ("sphinx", "numpydoc", "myst_nb", "pydata_sphinx_theme", "sphinx_design", "sphinx_copybutton")
if os.environ.get("AGENT_EVAL_SCHEMA_DOCS") != "built" and not all(map(find_spec, PACKAGES)):
    pytest.skip("the group docs is not installed", allow_module_level=True)

pytestmark = [pytest.mark.docs, pytest.mark.xdist_group("docs")]


class Page(HTMLParser):
    """The anchors of a page, its links, what a browser loads for it, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._inside = [*self._inside, tag] if tag in ("script", "style") else self._inside
        self.anchors.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "index", "search", "genindex"):
            self.loaded.append(given.get("href", ""))
        self.loaded += [given[name] for name in ("src", "srcset", "data") if name in given and tag != "a"]

    def handle_endtag(self, tag: str) -> None:
        if self._inside[-1:] == [tag]:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        self.text += "" if self._inside else data


Site = dict[str, Page]


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the site, built without a warning; `.ci/run docs` has built it."""
    out = ROOT / "docs" / "_build" / "html"
    if os.environ.get("AGENT_EVAL_SCHEMA_DOCS") == "built":
        return out
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-n", "-b", "html", "docs", str(out)]
    offline = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    environment = {**os.environ, **offline, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return out


@pytest.fixture(scope="module")
def site(folder: Path) -> Site:
    return {
        path.relative_to(folder).as_posix(): Page(path)
        for path in folder.rglob("*.html")
        if "_static" not in path.parts
    }


def test_every_public_name_has_a_page_and_its_members_have_anchors(site: Site) -> None:
    for module in (agent_eval_schema, scorers, ces):
        for name in module.__all__:
            value = getattr(module, name)
            path = f"{module.__name__}.{name}"
            page = site[f"reference/api/{path}.html"]
            if not inspect.ismodule(value):
                assert path in page.anchors, path
            if inspect.isclass(value) and module is not scorers:
                missing = [member for member, _ in members(value) if f"{path}.{member}" not in page.anchors]
                assert missing == [], path


def test_every_rule_has_a_page_that_says_what_why_and_how(site: Site) -> None:
    for rule in RULES.values():
        page = site[f"reference/rules/{rule.name}.html"]
        assert rule.code.lower() in page.anchors
        for text in (rule.summary, rule.why, rule.hint):
            assert _plain(text) in _plain(page.text), rule.code
        assert f"{rule.name}.html" in site["reference/rules/index.html"].links


def _plain(text: str) -> str:
    """Letters and digits: what typography and line breaks leave as it is."""
    return re.sub(r"\W+", "", text)


def test_every_format_metric_column_reason_family_and_schema_has_its_place(site: Site, folder: Path) -> None:
    for form in FORMATS:
        assert "Detection" in site[f"reference/formats/{form.name}.html"].text
    coverage = site["reference/metrics/coverage.html"].text
    assert [m.name for m in METRICS if m.name not in coverage] == []
    assert [name for name in DEFINITIONS if name not in coverage] == []
    columns = site["reference/schema/columns.html"]
    assert [name for name in COLUMNS if name.replace("_", "-") not in columns.anchors] == []
    reasons = site["reference/production/exclusion-reasons.html"]
    assert [
        r.name
        for r in REASONS.values()
        if r.name not in reasons.anchors or _plain(r.remedy) not in _plain(reasons.text)
    ] == []
    families = site["reference/production/table-families.html"].text
    assert [family.name for family in TABLE_FAMILIES if family.name not in families] == []
    downloads = {path.name for path in (folder / "_downloads").rglob("*.json")}
    assert downloads == {f"{name}.schema.json" for name in (*SCHEMAS, "review-journal")}


def test_every_command_has_a_page_and_every_option_an_anchor(site: Site) -> None:
    for words, parser in _commands(argument_parser()):
        page = site[f"reference/cli/{'-'.join(words)}.html"]
        for action in parser._actions:
            for option in action.option_strings[-1:]:
                anchor = f"cmdoption-agent-eval-schema-{'-'.join(words)}-{option.lstrip('-')}"
                assert anchor in page.anchors, (words, option)


def _commands(
    parser: argparse.ArgumentParser, *before: str
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for action in inner:
        for name, command in action.choices.items():
            yield from _commands(command, *before, name)
    if not inner:
        yield before, parser


def test_links_inside_the_site_lead_to_a_page_and_an_anchor(site: Site, folder: Path) -> None:
    broken = []
    for name, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name == "404.html":
                continue
            target = os.path.normpath(Path(name).parent / unquote(parts.path)) if parts.path else name
            target = target.removeprefix("./")
            if target in site:
                if parts.fragment and unquote(parts.fragment) not in site[target].anchors:
                    broken.append((name, link))
            elif not (folder / target).exists():
                broken.append((name, link))
    assert broken == []


def test_a_link_to_a_source_leads_to_the_page_that_is_made_of_it(site: Site) -> None:
    """In a clone, a rule is a row of the index, and a tutorial is a notebook."""
    assert "../../reference/rules/no-place-in-target.html" in site["how-to/convert/convert-between-formats.html"].links
    assert "01_validate.html" in site["tutorials/index.html"].links
    assert "06_ci.html" in site["tutorials/07_profile.html"].links
    assert "reference/api/agent_eval_schema.validate_eval_set.html" in site["index.html"].links


def test_the_links_of_the_published_readme_lead_to_a_page(site: Site) -> None:
    pytest.importorskip("hatch_fancy_pypi_readme")
    command = [sys.executable, "-m", "hatch_fancy_pypi_readme"]
    readme = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = TO_THE_SITE.findall(readme)
    assert len(found) > 10
    assert [link for link in found if link not in site] == []


TO_THE_SITE = re.compile(r"https://agent-eval-schema\.github\.io/agent-eval-schema/([\w./-]*)")

REMOTE = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)


def test_nothing_is_loaded_from_the_network(site: Site, folder: Path) -> None:
    loaded = {(name, source) for name, page in site.items() for source in page.loaded if REMOTE.match(source)}
    assert loaded == set()
    styles = list(folder.rglob("*.css"))
    assert styles
    remote = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", re.IGNORECASE)
    assert [path.name for path in styles if remote.search(path.read_text(encoding="utf-8"))] == []


def test_a_newcomer_is_two_clicks_away_from_each_task(site: Site) -> None:
    wanted = {
        "reference/cli/validate.html",
        "how-to/mlflow/before-genai-evaluate.html",
        "how-to/production/build-from-inference-table.html",
        "how-to/agents/run-an-agent.html",
        "how-to/convert/convert-between-formats.html",
        "how-to/ci/github-actions.html",
    }
    assert wanted - set(site["index.html"].links) == set()


def test_agents_get_the_site_as_text(folder: Path, site: Site) -> None:
    listed = re.findall(r"\]\(([^)]+\.html)\)", (folder / "llms.txt").read_text(encoding="utf-8"))
    assert len(listed) > 100
    assert [name for name in listed if name not in site] == []
    whole = (folder / "llms-full.txt").read_text(encoding="utf-8")
    assert [rule.code for rule in RULES.values() if f"{rule.name} ({rule.code})" not in whole] == []
    assert "Validate every row" in whole


def test_search_works_offline(folder: Path) -> None:
    index = (folder / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")
    assert "missing-doc-uri" in index


@pytest.mark.parametrize("words", [("annot",), ("label",), ("ground", "truth")])
def test_a_search_for_labels_finds_the_review(folder: Path, words: tuple[str, ...]) -> None:
    index = json.loads((folder / "searchindex.js").read_text(encoding="utf-8")[len("Search.setIndex(") : -1])
    for word in words:
        parts = (index[kind].get(word, []) for kind in ("terms", "titleterms"))
        numbers = {n for found in parts for n in (found if isinstance(found, list) else [found])}
        assert {"how-to/validate/review", "index"} <= {index["docnames"][n] for n in numbers}


def test_a_search_for_pii_finds_redaction(folder: Path) -> None:
    index = json.loads((folder / "searchindex.js").read_text(encoding="utf-8")[len("Search.setIndex(") : -1])
    found = {index["docnames"][number] for number in index["terms"]["pii"]}
    assert {"how-to/production/redact", "how-to/validate/private-data"} <= found


QUESTIONS = {
    "validate a file": "fix-a-file|read-the-report|quickstart",
    "fix broken rows": "fix-a-file",
    "convert to ragas": "from-ragas|convert-between-formats|ragas",
    "compare two runs": "compare-two-runs|compare-runs",
    "github actions": "github-actions",
    "label rows": "review",
    "annotate": "review",
    "redact pii": "redact|private-data",
    "pre-commit": "pre-commit",
    "import spreadsheet": "import-a-spreadsheet",
    "excel": "import-a-spreadsheet",
    "langsmith": "langsmith",
    "deepeval": "deepeval",
    "openai": "openai",
    "opentelemetry traces": "opentelemetry",
    "mlflow dataset": "datasets",
    "databricks notebook": "databricks-notebook",
    "inference table": "inference-table",
    "custom metric": "custom-metrics|add-a-metric",
    "spark": "spark",
    "large files": "large-files",
    "pytest": "pytest",
    "rename columns": "name-columns",
    "sample size": "profile|statistics",
    "feedback": "labels-from-feedback|feedback",
    "gate a release": "gate-a-release",
    "jenkins": "gitlab-jenkins-azure",
    "editor": "editor",
    "resume": "resume",
    "near duplicates": "profile",
    # written down from README alone, before the documentation and its search were looked at
    "my evaluation run crashed because of one bad row": "read-the-report|quickstart|fix-a-file|before-genai-evaluate",
    "find out which row is broken": "read-the-report|quickstart|fix-a-file|split-valid",
    "typo in column name": "name-columns|fix-a-file|misspelled",
    "why is a metric missing": "coverage|read-the-report|choose-scorers",
    "automatically fix my dataset": "fix-a-file",
    "excel file with questions and answers": "import-a-spreadsheet",
    "convert mlflow dataset to ragas": "ragas|convert-between-formats|datasets",
    "convert langsmith export to deepeval": "langsmith|deepeval|convert-between-formats",
    "turn production traces into test cases": "traces|build-from-inference-table",
    "build a golden dataset from logs": "build-from-inference-table|other-logs|grow-a-dataset",
    "remove personal data email phone": "redact|private-data",
    "have experts label answers": "review",
    "annotate expected responses together": "review",
    "is the new prompt better than the old one": "compare",
    "score tool calls of my agent": "run-an-agent|trajector",
    "compare trajectory with reference trajectory": "trajector|run-an-agent",
    "run my agent on the dataset": "run-an-agent",
    "how many examples do I need": "profile|statistics",
    "dataset does not fit in memory": "large-files",
    "read from s3 bucket": "places",
    "spark dataframe validate": "spark",
    "fail the pull request when the eval data is invalid": "github-actions",
    "git hook before commit": "pre-commit",
    "gitlab pipeline junit report": "gitlab-jenkins-azure",
    "test the dataset in pytest": "pytest",
    "upload evaluations to google ces": "ces/index|update-an-evaluation",
    "which scorers can I use with my data": "choose-scorers",
    "what does AE206 mean": "message-role",
    "opentelemetry spans to dataset": "opentelemetry",
    "duplicate questions in the dataset": "profile|duplicate",
    "save only the valid rows": "split-valid|fix-a-file|normalize",
    "my csv columns have other names": "name-columns|import-a-spreadsheet",
    "how do I read the html report": "read-the-report",
    "add a custom rule for our team": "extend|add-a-rule|select-rules",
    "ignore a rule": "select-rules",
    "evaluate langgraph agent": "run-an-agent|agents-cli|runnable",
    "agent is too slow timeout": "timeouts-and-resume",
    "statistical significance of a difference": "compare|statistics",
    "multi turn conversations": "evaluation-datasets",
    "tag user feedback thumbs down": "feedback",
    "sample rows from an inference table by customer": "sample-and-stratify",
    "delta table unity catalog": "places|spark",
    "vscode errors while typing": "editor",
    "share the dataset without private data": "private-data|redact",
    "update an existing evaluation in google": "ces",
}
"""What people type into the search, and the pages (parts of their names) of which one is among the first three hits."""


@pytest.mark.browser
def test_the_search_finds_a_task_by_the_words_that_people_use(folder: Path, browser: Any) -> None:
    assert len(QUESTIONS) == 75
    page, missed = browser.new_page(), {}
    for words, expected in QUESTIONS.items():
        page.goto(f"{(folder / 'search.html').as_uri()}?q={quote(words)}")
        page.wait_for_function(
            "document.querySelector('#search-results .search-summary')?.textContent.includes('found')"
        )
        links = "#search-results li a"
        hits = page.eval_on_selector_all(links, "found => found.map(a => a.getAttribute('href').split(/[?#]/)[0])")
        first = list(dict.fromkeys(hits))[:3]
        if not any(name in hit for name in expected.split("|") for hit in first):
            missed[words] = first
    assert missed == {}

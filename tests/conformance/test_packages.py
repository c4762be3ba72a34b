"""What another package declares is one of ours in every command; what is broken costs only itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pyarrow as pa
import pytest

from agent_eval_schema.rules import RULES
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan
from tests.conftest import ROOT

TEMPLATE = ROOT / "docs" / "how-to" / "extend" / "template"
TICKETS = [
    {"ticket": 7, "problem": "The badge does not open.", "solution": "Renew it at http://help.", "queue": "access"},
    {"ticket": 8, "problem": " ", "solution": "Restart it.", "queue": "it"},
]

BROKEN = {
    "broken_import": "raise RuntimeError('boom')\nX = 1\n",
    "exits": "raise SystemExit(0)\n",
    "not_a_format": "X = {'name': 'x'}\n",
    "no_columns": "from agent_eval_schema.extend import Format, Signs\n"
    "X = Format(name='odd', title='R', summary='R', page='p', signs=Signs(sure=5))\n",
    "name_with_blanks": "from agent_eval_schema.extend import Format, Signs\n"
    "X = Format(name='--to x', title='R', summary='R', page='p', signs=Signs(sure=(('a', 'b'),)))\n",
    "rule_without_hint": "from agent_eval_schema.extend import RowRule, Rule, Severity\n"
    "X = RowRule(Rule('HD901', 'my-rule', Severity.ERROR, 's', 'w', None), ('request',), lambda row: [])\n",
    "rule_that_clears_the_screen": "from agent_eval_schema.extend import RowRule, Rule, Severity\n"
    "X = RowRule(Rule('HD902', 'my-rule', Severity.ERROR, 's\\x1b[2J', 'w', 'h'), ('request',), lambda row: [])\n",
    "metric_without_info": "from agent_eval_schema.extend import RowMetric\n"
    "X = RowMetric(info=None, reads=('response',), measure=len, better={}, worse={})\n",
    "name_of_ours": "from agent_eval_schema.extend import Format, Signs\n"
    "X = Format(name='ragas', title='R', summary='R', page='p', signs=Signs(sure=(('a', 'b'),)))\n",
    "rule_name_of_ours": "from agent_eval_schema.extend import RowRule, Rule, Severity\n"
    "X = RowRule(Rule('HD900', 'message-role', Severity.ERROR, 's', 'w', 'h'), ('request',), lambda row: [])\n",
    "rule_code_of_ours": "from agent_eval_schema.extend import RowRule, Rule, Severity\n"
    "X = RowRule(Rule('AE950', 'my-rule', Severity.ERROR, 's', 'w', 'h'), ('request',), lambda row: [])\n",
    "metric_name_of_ours": "from agent_eval_schema.extend import MetricInfo, RowMetric\n"
    "X = RowMetric(info=MetricInfo('bleu'), reads=('response',), measure=len, better={}, worse={})\n",
    "metric_of_no_column": "from agent_eval_schema.extend import MetricInfo, RowMetric\n"
    "X = RowMetric(info=MetricInfo('mood'), reads=('mood',), measure=len, better={}, worse={})\n",
}


def group_of(kind: str) -> str:
    return next((f"{word}s" for word in ("rule", "metric") if kind.startswith(f"{word}_")), "formats")


def add_package(site: Path, name: str, code: str, group: str, value: str = "X") -> None:
    """Install a package of one module, as pip leaves it."""
    (site / f"{name}.py").write_text(code)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agent_eval_schema.{group}]\nx = {name}:{value}\n")


CONFORMANCE = ("-p", "agent_eval_schema.conformance.plugin", "--agent-eval-schema-conformance")
"""With the plug-in by its name: an environment that was installed before it was declared does not load it."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of a clean environment, in which the wheel of the template is installed by pip. It finds this
    package and what that requires where they are, so that no network is needed."""
    folder = tmp_path_factory.mktemp("packages")
    source, clean = folder / "source", folder / "clean"
    shutil.copytree(TEMPLATE, source)
    pip, offline = [sys.executable, "-m", "pip", "-q"], ["--no-deps", "--no-index"]
    subprocess.run([*pip, "wheel", *offline, "--no-build-isolation", "-w", str(folder), str(source)], check=True)
    venv.create(clean, with_pip=False)
    (site,) = clean.glob("lib/python*/site-packages")
    (site / "here.pth").write_text("".join(f"{path}\n" for path in (ROOT, *site_packages())))
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "--python", str(python_of(site)), "install", *offline, str(wheel)], check=True)
    return site


def site_packages() -> list[str]:
    return [path for path in sys.path if Path(path).name == "site-packages"]


def python_of(site: Path) -> Path:
    """The interpreter of an environment; of a mere folder of packages this one, which then has to find them."""
    own = site.parents[2] / "bin" / "python"
    return own if own.exists() else Path(sys.executable)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TICKETS))
    return tmp_path


def run(here: Path, site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = python_of(site)
    paths = os.pathsep.join([str(site), str(ROOT)] if own == Path(sys.executable) else [])
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"}
    return subprocess.run([str(own), *words], cwd=here, env=environment, capture_output=True, text=True)


def command(here: Path, site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(here, site, "-m", "agent_eval_schema", *words)


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("validate tickets.jsonl", "tickets format (the columns ticket, problem"),
        ("validate tickets.jsonl --format tickets --jobs 2", "1 of 2 rows cannot be evaluated"),
        ("metrics tickets.jsonl", "Metric coverage"),
        ("profile tickets.jsonl", "tickets format"),
        ("diff tickets.jsonl tickets.jsonl", "No difference"),
        ("convert tickets.jsonl ragas.jsonl --to ragas", "1 of 2 rows"),
        ("convert tickets.jsonl same.jsonl --to tickets", "1 of 2 rows"),
        ("formats", "of agent-eval-schema-tickets 0.1.0"),
        ("formats tickets", "From the package agent-eval-schema-tickets 0.1.0"),
        ("validate tickets.jsonl --format ticket", "did you mean 'tickets'?"),
        ("rules", "HD001  warning  insecure-link"),
        ("rules --output json", '"family": "agent-eval-schema-tickets 0.1.0"'),
        ("explain insecure-link", "From the package agent-eval-schema-tickets 0.1.0"),
        ("explain HD00", "HD001 insecure-link"),
        ("validate tickets.jsonl", "HD001 insecure-link  The expected answer"),
        ("validate tickets.jsonl --jobs 2", "HD001 insecure-link  The expected answer"),
        ("validate tickets.jsonl --output sarif", '"id": "HD001"'),
        ("validate tickets.jsonl --select HD --fail-on warning", "HD001 insecure-link"),
        ("metrics tickets.jsonl", "Metric coverage (agent-eval-schema-tickets)"),
        ("metrics tickets.jsonl --system agent-eval-schema-tickets", "brevity"),
        ("score tickets.jsonl --metrics brevity", "brevity  not scored"),
    ],
)
def test_every_command_knows_the_format(words: str, shown: str, here: Path, installed: Path) -> None:
    found = command(here, installed, *words.split())
    assert shown in found.stdout + found.stderr, found.stdout + found.stderr
    assert "Warning" not in found.stderr


@pytest.mark.process
def test_processes_judge_as_one(here: Path, installed: Path) -> None:
    link, rows = "See http://help.example.com.", 20_000
    with (here / "many.jsonl").open("w") as file:
        for n in range(rows):
            row = {"ticket": n, "problem": f"Problem {n}", "solution": link if n % 4 == 0 else "Restart it."}
            file.write(json.dumps(row) + "\n")
    one, two = (
        json.loads(command(here, installed, "validate", "many.jsonl", "--output", "json", "--jobs", jobs).stdout)
        for jobs in ("1", "2")
    )
    assert one == two
    assert one["counts"]["HD001"] == rows / 4


@pytest.mark.process
@pytest.mark.parametrize("kind", ["csv", "parquet", "json", "xlsx"])
def test_every_container_has_its_rows(kind: str, here: Path, installed: Path) -> None:
    converted = command(here, installed, "convert", "tickets.jsonl", f"same.{kind}", "--to", "tickets")
    assert converted.returncode == 1, converted.stderr
    found = json.loads(command(here, installed, "validate", f"same.{kind}", "--output", "json").stdout)
    assert (found["format"], found["counts"]["HD001"]) == ("tickets", 1)


@pytest.mark.process
def test_its_own_tests_and_the_conformance_suite_pass(here: Path, installed: Path) -> None:
    shutil.copy(TEMPLATE / "test_tickets_format.py", here)
    tested = run(here, installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CONFORMANCE)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "18 passed" in tested.stdout


@pytest.mark.process
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_package_costs_only_itself(kind: str, here: Path, installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    add_package(site, kind, BROKEN[kind], group_of(kind))
    good, bad = (command(here, at, "validate", "tickets.jsonl", "--output", "json") for at in (installed, site))
    assert bad.stdout == good.stdout
    assert (good.returncode, bad.returncode) == (1, 1)
    assert f"{kind} 1.0 is not used (agent_eval_schema.{group_of(kind)})" in bad.stderr
    assert "Traceback" not in bad.stderr


@pytest.mark.process
def test_two_packages_with_one_name_are_both_named(here: Path, installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    (site / "other_tickets.py").write_text((TEMPLATE / "tickets_format.py").read_text())
    info = site / "other_tickets-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-tickets\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[agent_eval_schema.formats]\nx = other_tickets:TICKETS\n")
    found = command(here, site, "validate", "tickets.jsonl", "--format", "tickets")
    assert found.returncode == 2
    assert "agent-eval-schema-tickets 0.1.0 and other-tickets 2.0" in found.stderr
    assert "the name is taken" in found.stderr


RAISING = """
from agent_eval_schema.extend import RowRule, Rule, Severity
def check(row):
    raise KeyError(row["expected_response"])
X = RowRule(Rule("ZZ001", "raises", Severity.ERROR, "s", "w", "h"), ("expected_response",), check)
"""


@pytest.mark.process
@pytest.mark.parametrize("hidden", [False, True])
def test_a_rule_that_raises_costs_only_its_own_issues(
    hidden: bool, here: Path, installed: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    add_package(site, "raising", RAISING, "rules")
    words = ["validate", "tickets.jsonl", "--output", "json", *(["--no-values"] if hidden else [])]
    good, bad = (json.loads(command(here, at, *words).stdout) for at in (installed, site))
    codes = {issue["code"]: issue for issue in bad["issues"]}
    assert codes.keys() - {issue["code"] for issue in good["issues"]} == {"AE013"}
    assert codes["AE013"]["message"].startswith("`ZZ001` of raising 1.0 raised an exception: KeyError")
    assert ("Restart it." in json.dumps(bad)) is not hidden
    assert [row["supported"] for row in bad["metrics"]] == [row["supported"] for row in good["metrics"]]


DETECTION = """
from agent_eval_schema.extend import Format, Nested, Signs
def detect(names, head):
    raise OSError("no service")
nested = Nested(detect, lambda row: [])
X = Format(name="odd", title="O", summary="O", page="p", signs=Signs(sure=(("odd",),)), nested=(nested,))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise ValueError(chr(0xD800))", r"ValueError: \\ud800"),
        ("import itertools; return itertools.repeat(('request', 'm'))", "more than 1,000 issues of a row"),
        ("return 'ab'", "ValueError"),
        ("return [('request', 'm' * 3_000_000)]", "m" * 2000),
    ],
    ids=["exits", "surrogate", "endless", "text", "long"],
)
def test_a_rule_ends_no_command(body: str, shown: str, here: Path, installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    add_package(site, "raising", RAISING.replace('raise KeyError(row["expected_response"])', body), "rules")
    found = command(here, site, "validate", "tickets.jsonl", "--output", "json")
    assert "raises" in found.stdout or "AE013" in found.stdout
    assert shown in found.stdout
    assert len(found.stdout) < 30_000


@pytest.mark.process
def test_an_exception_of_a_format_names_its_package(here: Path, installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    code = DETECTION.replace('raise OSError("no service")', "return True").replace("row: []", "row: 1 / 0")
    add_package(site, "odd", code, "formats")
    found = command(here, site, "validate", "tickets.jsonl")
    assert found.returncode == 2
    assert found.stderr.strip() == (
        "agent-eval-schema: odd 1.0 raised an exception: ZeroDivisionError: division by zero: "
        "report it to its authors, or uninstall it"
    )


FIELDS = "Field('problem', 'request'), Field('solution', 'response'), Field('ticket', 'request_id')"
WRONG_RESULTS = {
    "nested=(Nested(lambda n, h: True, lambda row: None),)": "nested[0].unfold: expected Iterable[tuple[dict[str, Any]",
    "nested=(Nested(lambda n, h: True, lambda row: [row]),)": "nested[0].unfold: expected tuple[dict[str, Any], Seq",
    "nested=(Nested(lambda n, h: True, lambda row: [(dict(row), 'x')]),)": "nested[0].unfold: expected tuple[dict[str",
    "nested=(Nested(lambda n, h: True, lambda: lambda row: [1], counts=True),)": "nested[0].unfold: expected tuple[",
    "nested=(Nested(lambda n, h: True, lambda row: [(dict(row), ())], ends=lambda r: 5),)": "nested[0].ends: expected",
    "inspect_row=lambda row: None": "inspect_row: expected Iterable[Finding], got a NoneType",
    "inspect_row=lambda row: ['x']": "inspect_row: expected Finding, got a str",
    "prepare=lambda source: None": "prepare: expected Source, got a NoneType",
    "remarks=lambda batches: ['x']": "remarks: expected list[Finding], got a list",
    f"fields=({FIELDS.replace(')', ', lambda v: 1j)', 1)})": "fields[0].read: expected JSON, got a complex: Encoding",
    "read_rest=lambda source, row: row.update(response={1j})": "read_rest: expected JSON, got a dict: Encoding",
    f"fields=({FIELDS.replace(')', ', write=lambda v: [1j])', 1)})": "fields[0].write: expected JSON, got a list: Enco",
    "write_rest=lambda row, made: made.update(ticket=1j)": "write_rest: expected JSON, got a dict: Encoding",
    "writer=Writer(of_rows=lambda rows: 5)": "writer.of_rows: expected dict[str, Any] | list[dict[str, Any]], got",
    "writer=Writer(of_rows=lambda rows: [5])": "writer.of_rows: expected dict[str, Any] | list[dict[str, Any]], got a",
    "writer=Writer(of_rows=lambda rows: {'a': 1j})": "writer.of_rows: expected JSON, got a dict: Encoding",
    "writer=Writer(cells=lambda row: 5)": "writer.cells: expected dict[str, Any], got a int",
    "writer=Writer(cells=lambda row: {'a': 1j})": "writer.cells: expected JSON, got a dict: Encoding",
}


@pytest.mark.process
@pytest.mark.parametrize("part", WRONG_RESULTS)
def test_a_result_of_another_type_names_its_package(part: str, here: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    fields = "" if part.startswith("fields") else f"fields=({FIELDS}), "
    code = (
        "from agent_eval_schema.extend import Field, Format, Nested, Signs, Writer\n"
        "X = Format(name='odd', title='R', summary='R', page='p', signs=Signs(sure=(('ticket', 'problem'),)), "
    )
    add_package(site, "odd", f"{code}{fields}{part})\n", "formats")
    verb = ["convert", "tickets.jsonl", "out.csv" if "cells" in part else "out.json", "--to", "odd"]
    found = command(here, site, *(verb if "writ" in part else ["validate", "tickets.jsonl"]))
    assert found.returncode == 2
    assert found.stderr.startswith(f"agent-eval-schema: odd of odd 1.0: {WRONG_RESULTS[part]}")
    assert found.stderr.endswith(": report it to its authors\n")


@pytest.mark.process
def test_detection_goes_on_without_a_format_that_raises(here: Path, installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    add_package(site, "odd", DETECTION, "formats")
    good, bad = (command(here, at, "validate", "tickets.jsonl", "--output", "json") for at in (installed, site))
    assert (bad.stdout, bad.returncode) == (good.stdout, good.returncode)
    assert "odd of odd 1.0 is not detected: OSError: no service" in bad.stderr


def test_a_rule_that_is_not_installed_in_a_worker_is_reported() -> None:
    batch = pa.RecordBatch.from_pylist([{"request": "a", "response": "b"}])
    checked = check_batch(batch, Plan("databricks", "provided", True, frozenset([*RULES, "HD001"])))
    (note,) = checked.column(checked.schema.get_field_index("issues")).to_pylist()[0]
    assert note["code"] == "AE013"
    assert note["message"] == "expected the rule HD001, got none: its package is not installed"


TAKEN = "from agent_eval_schema.formats.registry import FORMATS; X = FORMATS[0]"
SLOW = {
    "formats": """
import time
from agent_eval_schema.extend import Format, Nested, Signs
def detect(names, head):
    time.sleep(1.1)
    return False
nested = Nested(detect, lambda row: [])
X = Format(name="slow", title="S", summary="S", page="p", signs=Signs(sure=(("odd",),)), nested=(nested,))
""",
    "rules": """
import time
from agent_eval_schema.extend import RowRule, Rule, Severity
def check(row):
    time.sleep(0.6)
    return []
X = RowRule(Rule("ZZ001", "slow", Severity.ERROR, "s", "w", "h"), ("expected_response",), check)
""",
    "metrics": """
import time
from agent_eval_schema.extend import MetricInfo, RowMetric
def measure(answer):
    time.sleep(0.6)
    return 1.0
X = RowMetric(info=MetricInfo("slow"), reads=("response",), measure=measure, better={}, worse={})
""",
}
READ = "problem=request --columns solution=expected_response"
VALIDATED = "from agent_eval_schema.cli import main; main()"
SCORED = "from agent_eval_schema import EvalTask; EvalTask([{'response': 'a'}] * 2, ['slow']).evaluate()"


@pytest.mark.process
@pytest.mark.parametrize(
    ("group", "code", "run_code", "expected"),
    [
        (
            "formats",
            f"import time; time.sleep(1.1); {TAKEN}",
            VALIDATED,
            r"x of slow 1\.0 took .* s to load \(agent_eval_s",
        ),
        ("formats", SLOW["formats"], VALIDATED, r"slow of slow 1\.0 took .* s to look whether rows are its own"),
        ("rules", SLOW["rules"], VALIDATED, r"ZZ001 of slow 1\.0 took .* s for 2 rows"),
        ("metrics", SLOW["metrics"], SCORED, r"slow of slow 1\.0 took .* s for 2 rows"),
    ],
    ids=["loads", "detects", "judges", "measures"],
)
def test_a_slow_package_is_named(
    group: str, code: str, run_code: str, expected: str, here: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    add_package(site, "slow", code, group)
    found = run(here, site, "-c", run_code, *f"validate tickets.jsonl --columns {READ}".split())
    assert re.search(expected, found.stderr), found.stderr
    assert "Traceback" not in found.stderr


ON_SPARK = """
import sys
from pathlib import Path
from agent_eval_schema import convert_eval_set, normalize_eval_set, validate_eval_set
from tests.helpers.spark_session import start_spark
rows = [("The badge does not open.", "Renew it at http://help."), (" ", "Restart it.")]
df = start_spark(Path(sys.argv[1])).createDataFrame(rows, ["problem", "solution"])
print([row.expected_response for row in normalize_eval_set(df, on_invalid="drop").collect()])
report = validate_eval_set(df)
print(report.format, report.counts["HD001"], report.metrics.set_index("metric").loc["brevity", "total"])
asked = df.sparkSession.createDataFrame([("Where is it?", "Here.")], ["request", "expected_response"])
print(convert_eval_set(asked, "tickets").data.select("problem", "solution").collect())
"""


@pytest.mark.spark
def test_the_executors_of_spark_find_it(here: Path, installed: Path) -> None:
    found = run(here, installed, "-W", "ignore", "-c", ON_SPARK, str(here))
    ticket = "[Row(problem='Where is it?', solution='Here.')]"
    assert found.stdout.splitlines() == ["['Renew it at http://help.']", "tickets 1 2", ticket], found.stderr


def test_without_a_package_nothing_is_imported_for_it() -> None:
    code = (
        "import sys; import agent_eval_schema.formats.registry as r; r.detect(['request']);"
        "print('importlib.metadata' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert found.stdout.strip() == "False"

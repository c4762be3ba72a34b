"""CI: of this project, and what users paste into theirs. The files are valid, the commands parse, the scripts run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from agent_eval_schema.cli import argument_parser, main
from tests.conftest import NEEDS, PATIENCE, QUICK, ROOT, SAMPLES, WITHOUT_NEEDS, some_cases

README = ROOT / "README.md"
PAGES = ROOT / "docs" / "how-to" / "ci"
GITHUB = ROOT / ".github"
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
HOOK = HOOKS["agent-eval-schema-validate"]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
CI = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8"))

SCHEMAS = {
    "action.yml": "github-actions",
    "CITATION.cff": "citation-file-format",
    ".github/dependabot.yml": "dependabot",
    ".github/ISSUE_TEMPLATE/bug.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/rule.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
    **{path.relative_to(ROOT).as_posix(): "github-workflows" for path in (GITHUB / "workflows").iterdir()},
}


def snippets(path: Path) -> list[tuple[str, str]]:
    """The blocks of YAML of a page that are marked, each with its mark."""
    mark = r"(?:<!-- ([\w-]+) -->|% ([\w-]+))"
    found = re.findall(rf"^{mark}\n```yaml\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [(of_readme or of_page, text) for of_readme, of_page, text in found]


SNIPPETS = [
    pytest.param(mark, text, id=f"{path.stem}-{mark}-{number}")
    for path in (README, *sorted(PAGES.glob("*.md")), ROOT / "docs" / "tutorials" / "06_ci.md")
    for number, (mark, text) in enumerate(snippets(path))
]


def require_valid(path: Path, schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def steps_of(workflow: Any) -> list[Any]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def parses(command: str, *more: str) -> None:
    program, *arguments = shlex.split(command.partition(" > ")[0])
    assert program == "agent-eval-schema"
    argument_parser().parse_args([*arguments, *more])


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_files_of_github_are_valid(name: str) -> None:
    pytest.importorskip("check_jsonschema")
    require_valid(ROOT / name, SCHEMAS[name])


def test_actionlint_has_no_complaint() -> None:
    if shutil.which("actionlint") is None:
        pytest.skip("no actionlint on this machine")
    done = subprocess.run(
        ["actionlint", *(GITHUB / "workflows").iterdir()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_github_runs_every_leg_that_ci_run_has() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lanes = re.search(r"^lanes=\((.*)\)$", script, re.MULTILINE)
    assert lanes is not None
    legs = lanes[1].replace('"', "").split()
    assert CI["jobs"]["legs"]["strategy"]["matrix"]["leg"] == legs
    functions = set(re.findall(r"^(\w+)\(\) \{", script, re.MULTILINE))
    assert {*legs, "fast", "platforms"} <= functions
    runs = [step["run"] for name in ("fast", "legs") for step in CI["jobs"][name]["steps"] if "run" in step]
    assert runs == [".ci/run fast", '.ci/run "$LEG"']


STAND_INS = {
    "static": "echo one; .ci/none; echo two",  # no such program: a leg ends with the first command that fails
    "tests": "sleep 60 & echo $! > $OLDPWD/asleep; wait",
    "docs": "until [ -s $OLDPWD/asleep ]; do sleep 0.1; done; static",
    "needs": "echo three",
    "try": "echo four",
}


def ci_run(folder: Path, lanes: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`.ci/run` in a repository of its own, with legs that take no time."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    script = re.sub(r"^lanes=.*$", f"lanes={lanes}", script, flags=re.MULTILINE)
    legs = "".join(f"{name}() {{ {body}; }}\n" for name, body in STAND_INS.items())
    (folder / ".ci").mkdir()
    (folder / ".ci" / "run").write_text(
        script.replace("# Three at a time", f"{legs}\n# Three at a time"), encoding="utf-8"
    )
    shutil.copy(README, folder)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "legs")
    command = ["bash", ".ci/run", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE)


def test_legs_beside_each_other_print_a_block_each_and_their_seconds(tmp_path: Path) -> None:
    done = ci_run(tmp_path, '("needs" "try")')
    assert done.returncode == 0, done.stderr
    *blocks, table = done.stdout.split("\n", 2)
    assert sorted(blocks) == ["four", "three"]
    assert re.fullmatch(r"\nleg +seconds +of CPU\n((needs|try) +\d+ +\d+ *\n){2}", table), done.stdout


def test_a_leg_that_fails_ends_those_beside_it(tmp_path: Path) -> None:
    done = ci_run(tmp_path, '("tests needs" "try docs")')
    assert done.returncode == 127
    assert done.stdout.startswith("four\none\n")
    assert re.search(r"^docs +\d+ +\d+ +failed$", done.stdout, re.MULTILINE), done.stdout
    assert "two" not in done.stdout
    status = Path("/proc") / (tmp_path / "asleep").read_text(encoding="utf-8").strip() / "stat"
    assert not status.exists() or ") Z " in status.read_text(encoding="utf-8")  # ended, even if its parent did not look


def test_legs_that_are_named_run_one_after_the_other(tmp_path: Path) -> None:
    done = ci_run(tmp_path, '("tests" "static")', "try", "static", "needs")
    assert done.returncode == 127
    assert done.stdout.startswith("four\none\n")
    assert "three" not in done.stdout


def test_what_the_leg_of_the_first_command_looks_for_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    tried = re.search(r'^tried="(.+)"$', script, re.MULTILINE)
    assert tried is not None
    assert main(["validate", *(str(path) for path in sorted(SAMPLES.glob("broken*")))]) == 1
    assert tried[1] in capsys.readouterr().out


def test_every_test_is_in_a_leg() -> None:
    """README's command, the leg `needs` and the leg `docs` leave out none of the tests, whatever marks it has."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    listed = re.search(r'^marks="(.*)"$', script, re.MULTILINE)
    assert listed is not None
    assert [*listed[1].split(), "docs"] == list(NEEDS)
    assert f"not ({' or '.join(NEEDS)})" == WITHOUT_NEEDS
    assert "-m pytest tests/docs -m docs\n" in script
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if "mark.docs" in path.read_text(encoding="utf-8")]
    assert {path.parent.name for path in marked if path != Path(__file__)} == {"docs"}
    selected = re.search(r'^needs\(\) \{ marked "\((.*)\)(.*)"; \}$', script, re.MULTILINE)
    assert selected is not None
    assert selected[1] == "${marks// / or }"
    legs = (QUICK, f"({' or '.join(listed[1].split())}){selected[2]}", "docs")
    for values in product((False, True), repeat=len(NEEDS) + 1):
        marks = dict(zip((*NEEDS, "smoke"), values, strict=True))
        assert any(eval(leg, {}, marks) for leg in legs), marks  # an expression of marks is one of Python


def test_github_runs_every_python_that_the_classifiers_name() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    matrix = CI["jobs"]["fast"]["strategy"]["matrix"]
    assert matrix["python"] == named
    minimum = re.search(r'requires-python = ">=([\d.]+)"', text)
    assert minimum is not None
    assert minimum[1] == named[0]


def test_the_legs_of_the_oldest_and_the_newest_python_know_every_one_of_the_classifiers() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    oldest, newest = (minors.split() for minors in re.findall(r"\$\(python_of ([\d ]+)\)", script))
    pythons = CI["jobs"]["fast"]["strategy"]["matrix"]["python"]
    assert [f"3.{minor}" for minor in oldest] == pythons
    assert [f"3.{minor}" for minor in newest] == pythons[:0:-1]  # pandas 3 requires Python 3.11


@pytest.mark.parametrize(("version", "found"), [("3.98", "on-path"), ("3.99", "of-pyenv"), ("3.97", "")])
def test_a_shim_without_its_python_is_no_interpreter(version: str, found: str, tmp_path: Path) -> None:
    for name, prints in {
        "on-path/python3.98": "3.98",
        "of-pyenv/versions/3.98.1/bin/python": "3.98",
        "on-path/python3.99": "",  # a shim whose version is not selected prints nothing and fails
        "of-pyenv/versions/3.99.1/bin/python": "3.99",
        "of-pyenv/versions/3.97.1/bin/python": "",
    }.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{f'echo {prints}' if prints else 'exit 127'}\n", encoding="utf-8")
        program.chmod(0o755)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    function = re.search(r"^interpreter\(\) \{.*?^\}", script, re.MULTILINE | re.DOTALL)
    assert function is not None
    command = ["bash", "-euo", "pipefail", "-c", f"{function[0]}\ninterpreter {version} || true"]
    environment = {"PATH": f"{tmp_path / 'on-path'}:{os.defpath}", "PYENV_ROOT": str(tmp_path / "of-pyenv")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).relative_to(tmp_path).parts[0] == found if found else not done.stdout


@pytest.mark.oracle
@pytest.mark.parametrize(("mark", "text"), SNIPPETS)
def test_what_users_paste_is_valid(mark: str, text: str, tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema")
    path = tmp_path / "pasted.yml"
    given = yaml.safe_load(text)
    if mark == "step":  # a step alone is no workflow
        given = {"on": "push", "jobs": {"job": {"runs-on": "ubuntu-latest", "steps": given}}}
        text = yaml.safe_dump(given)
    path.write_text(text, encoding="utf-8")
    if mark == "pre-commit":
        pytest.importorskip("pre_commit")
        command = [sys.executable, "-m", "pre_commit", "validate-config", str(path)]
        assert subprocess.run(command, check=False).returncode == 0
    else:
        require_valid(path, {"gitlab": "gitlab-ci", "azure": "azure-pipelines"}.get(mark, "github-workflows"))
    if mark in ("workflow", "step"):
        for step in steps_of(given):
            if step.get("uses", "").startswith("agent-eval-schema/"):
                assert set(step["with"]) <= set(ACTION["inputs"])
    for command in re.findall(r"agent-eval-schema (?:validate|diff|score) [^\n'\"]*", text):
        parses(command)


@pytest.mark.parametrize("path", [README, PAGES / "pre-commit.md"], ids=["readme", "page"])
def test_the_hook_that_users_paste_is_the_one_that_there_is(path: Path) -> None:
    (repository,) = yaml.safe_load(dict(snippets(path))["pre-commit"])["repos"]
    assert [hook["id"] for hook in repository["hooks"]] == list(HOOKS)
    parses(HOOK["entry"], *HOOK["args"], "evals/a.jsonl")
    assert all(hook.keys() == {"id"} for hook in repository["hooks"])  # `files` would replace the filter of the hook
    assert re.search(HOOK["files"], "evals/a.jsonl")


@pytest.mark.parametrize("path", ["eval.jsonl", "evals/a.csv", "data/eval_sets/hr/b.parquet", "tests/evaluation.json"])
def test_the_hook_takes_evaluation_sets(path: str) -> None:
    assert re.search(HOOK["files"], path)


@pytest.mark.parametrize("path", ["package.json", "data/a.csv", "retrieval/a.jsonl", "eval.py", "evals/README.md"])
def test_the_hook_leaves_other_files_alone(path: str) -> None:
    assert not re.search(HOOK["files"], path)


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def require_index(folder: Path) -> None:
    """Skip a test that installs packages where there is no index of packages."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(folder), "hatchling"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no index of packages can be reached")


# ---------------------------------------------------------------------------------------------------------------------
# a commit that renames the ground truth, or loses it otherwise, in a repository with what users paste
BAD: dict[str, Callable[[str], str]] = {
    "renamed ground truth": lambda text: text.replace('"expected_response"', '"ground_truth"'),
    "ground truth under a name of its own": lambda text: text.replace('"expected_response"', '"our_note"'),
    "a row less": lambda text: text.partition("\n")[2],
}
GOOD: dict[str, Callable[[str], str]] = {
    "a row more": lambda text: text + '{"request": "On Sundays?", "response": "No.", "expected_response": "No."}\n',
}


def scripts_of(path: Path) -> Iterator[list[str]]:
    """The commands of each snippet of a page that run without the action, in order; those that install are left out."""
    text = path.read_text(encoding="utf-8")
    groovy = re.findall(r"```groovy\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    found = [re.findall(r"sh '(.*)'", block) for block in groovy]
    steps: list[list[str]] = []
    for mark, block in snippets(path):
        pasted = yaml.safe_load(block)
        if mark == "gitlab":
            found.append(next(iter(pasted.values()))["script"])
        elif mark in ("azure", "step"):
            listed = pasted["steps"] if mark == "azure" else pasted
            steps.append([step.get("script", step.get("run")) for step in listed if {"script", "run"} & step.keys()])
    together = [[line for step in steps for line in step]] if path.stem == "github-actions" else steps
    yield from ([line for line in lines if not line.startswith("pip ")] for lines in [*found, *together])


@pytest.fixture
def repository(tmp_path: Path, runner: Path) -> Path:
    """A repository whose branch `main` has a valid dataset, with a remote, and the command on the path."""
    folder = tmp_path / "repository"
    (folder / "evals").mkdir(parents=True)
    shutil.copy(SAMPLES / "good.jsonl", folder / "evals" / "help_desk.jsonl")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a dataset")
    git(folder, "clone", "-q", "--bare", ".", str(tmp_path / "remote.git"))
    git(folder, "remote", "add", "origin", str(tmp_path / "remote.git"))
    assert runner == tmp_path
    return folder


def changed(repository: Path, change: Callable[[str], str]) -> None:
    path = repository / "evals" / "help_desk.jsonl"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def ran(script: str, repository: Path, *arguments: str) -> int:
    programs = repository.parent / "temp" / "agent-eval-schema" / "bin"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = ["bash", "-e", "-o", "pipefail", "-c", script, *arguments]
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, check=False).returncode


PASTED = [
    pytest.param(lines, id=f"{path.stem}-{number}")
    for path in sorted(PAGES.glob("*.md"))
    for number, lines in enumerate(scripts_of(path))
]


@pytest.mark.process
@pytest.mark.parametrize("change", ["renamed ground truth", *GOOD])
@pytest.mark.parametrize("lines", PASTED)
def test_what_users_paste_stops_a_bad_commit(lines: list[str], change: str, repository: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "before")
    changed(repository, {**BAD, **GOOD}[change])
    git(repository, "commit", "-q", "-a", "--allow-empty", "-m", change)
    assert any("--fail-on warning" in line for line in lines)
    assert any("--fail-on loss" in line for line in lines)
    assert (ran("\n".join(lines), repository) == 0) == (change in GOOD)


@pytest.mark.parametrize("change", [*BAD, *GOOD])
@pytest.mark.parametrize("path", [README, PAGES / "pre-commit.md"], ids=["readme", "page"])
def test_the_hooks_stop_a_bad_commit(path: Path, change: str, repository: Path) -> None:
    changed(repository, {**BAD, **GOOD}[change])
    codes = []
    for pasted in yaml.safe_load(dict(snippets(path))["pre-commit"])["repos"][0]["hooks"]:
        hook = HOOKS[pasted["id"]] | pasted
        passed = ["evals/help_desk.jsonl"] if hook["pass_filenames"] else []
        program, *arguments = [*shlex.split(hook["entry"]), *hook.get("args", []), *passed]
        codes.append(ran('"$@"', repository, "_", program, *arguments))
    assert (codes == [0, 0]) == (change in GOOD)


@pytest.mark.process
@pytest.mark.parametrize("change", [*BAD, *GOOD])
def test_the_action_stops_a_bad_commit(change: str, repository: Path) -> None:
    changed(repository, {**BAD, **GOOD}[change])
    git(repository, "commit", "-q", "-a", "--allow-empty", "-m", change)
    shutil.rmtree(repository.parent / "work")
    repository.rename(repository.parent / "work")
    done = run_step(1, repository.parent, files="evals/*.jsonl", artifact="")
    assert (done.returncode == 0) == (change in GOOD), done.stdout + done.stderr


@pytest.mark.process
@pytest.mark.parametrize("there", ["", "17"], ids=["first", "again"])
def test_the_action_comments_what_a_pull_request_changes(there: str, repository: Path) -> None:
    """In the summary of the job, and as a comment, which a later run replaces."""
    changed(repository, BAD["a row less"])
    git(repository, "commit", "-q", "-a", "-m", "a row less")
    shutil.rmtree(repository.parent / "work")
    repository.rename(repository.parent / "work")
    summary, temporary = repository.parent / "summary.md", repository.parent / "temp"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_STEP_SUMMARY", str(summary))
        assert run_step(1, repository.parent, files="evals/*.jsonl", artifact="").returncode == 1
    changes = (temporary / "agent-eval-schema-changes.md").read_text(encoding="utf-8")
    assert summary.read_text(encoding="utf-8") == changes
    assert changes.startswith("```text\n--- HEAD^1:evals/")
    assert "1 removed" in changes
    program = temporary / "gh"
    program.write_text(f'#!/bin/sh\necho "$@" >> {temporary}/calls\n[ "$2" != --paginate ] || echo "{there}"\n')
    program.chmod(0o755)
    step = next(step for step in ACTION["runs"]["steps"] if step["name"].startswith("Comment"))
    own = {
        "PATH": f"{temporary}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(temporary),
        "COMMENTS": "all",
        "COMMENT": "c",
    }
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], env={**os.environ, **own}, check=True)
    last = (temporary / "calls").read_text().splitlines()[-1]
    body = temporary / "agent-eval-schema-comment.md"
    assert last == f"api {f'-X PATCH c/{there}' if there else 'all'} -F body=@{body}"
    assert body.read_text(encoding="utf-8") == f"<!-- agent-eval-schema -->\n{changes}"


@pytest.mark.process
def test_the_action_fetches_the_commit_that_checkout_did_not(repository: Path) -> None:
    changed(repository, BAD["a row less"])
    git(repository, "commit", "-q", "-a", "-m", "a row less")
    git(repository, "push", "-q", "origin", "main")
    shutil.rmtree(repository.parent / "work")
    remote = f"file://{repository.parent / 'remote.git'}"
    git(repository, "clone", "-q", "--depth=1", remote, str(repository.parent / "work"))
    done = run_step(1, repository.parent, files="evals/*.jsonl", artifact="")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error::rows or metrics of a dataset are lost since HEAD^1" in done.stdout
    assert run_step(1, repository.parent, files="evals/*.jsonl", artifact="", base="").returncode == 0
    done = run_step(1, repository.parent, files="evals/*.jsonl", artifact="", base="nowhere")
    assert (done.returncode, "::warning::nothing is compared" in done.stdout) == (0, True)


@pytest.mark.process
def test_pre_commit_runs_the_hook(tmp_path: Path) -> None:
    """With pre-commit itself, which installs the package of this repository."""
    pytest.importorskip("pre_commit")
    require_index(tmp_path / "probe")
    source, data = tmp_path / "source", tmp_path / "data"
    for name in ("agent_eval_schema", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", ".gitignore"):
        source.mkdir(exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, source / name)
    (data / "evals").mkdir(parents=True)
    for folder in (source, data):
        git(folder, "init", "-q")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "the package")

    def tried(sample: str) -> subprocess.CompletedProcess[str]:
        shutil.copy(SAMPLES / sample, data / "evals" / "help_desk.jsonl")
        git(data, "add", "-A")
        command = [sys.executable, "-m", "pre_commit", "try-repo", str(source), HOOK["id"], "--all-files", "--verbose"]
        environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "cache"), "PYTHONPATH": ""}
        return subprocess.run(command, cwd=data, env=environment, capture_output=True, text=True, check=False)

    good = tried("good.jsonl")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "All 12 rows are valid" in good.stdout
    broken = tried("broken.jsonl")
    assert broken.returncode == 1
    assert "AE206 message-role" in broken.stdout


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """The folders of a runner; the package is installed, as after the first step of the action."""
    programs = tmp_path / "temp" / "agent-eval-schema" / "bin"
    programs.mkdir(parents=True)
    program = programs / "agent-eval-schema"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m agent_eval_schema "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    for name in ("evals", "evals/deep er"):
        (tmp_path / "work" / name).mkdir(parents=True)
    shutil.copy(SAMPLES / "good.jsonl", tmp_path / "work" / "evals")
    shutil.copy(SAMPLES / "broken.jsonl", tmp_path / "work" / "evals" / "deep er")
    return tmp_path


def run_step(number: int, runner: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a step of the action as a runner does."""
    step = ACTION["runs"]["steps"][number]
    given = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | inputs
    variables = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: given[m[1]], v) for name, v in step["env"].items()
    }
    variables["REPORTS"] = str(runner / "temp" / "agent-eval-schema-reports") if given["artifact"] else ""
    environment = {**os.environ, **variables, "RUNNER_TEMP": str(runner / "temp"), "GITHUB_ACTION_PATH": str(ROOT)}
    environment["GITHUB_PATH"] = str(runner / "path")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(command, cwd=runner / "work", env=environment, capture_output=True, text=True, check=False)


def test_the_action_annotates_and_writes_a_page_per_file(runner: Path) -> None:
    done = run_step(1, runner, files="evals/**/*.jsonl evals/*.csv")
    assert done.returncode == 1, done.stderr
    assert "::error file=evals/deep er/broken.jsonl,line=" in done.stdout
    pages = sorted(path.name for path in (runner / "temp" / "agent-eval-schema-reports").iterdir())
    assert pages == ["evals-deep er-broken.jsonl.html", "evals-good.jsonl.html"]


@pytest.mark.parametrize(
    ("inputs", "code", "printed"),
    [
        ({"files": "evals/*.jsonl"}, 0, "evals/good.jsonl: ✓ All 12 rows are valid."),
        ({"files": "evals/**/*.jsonl", "fail-on": "never"}, 0, "::error file="),
        ({"files": "evals/*.csv"}, 2, "::error::no file matches evals/*.csv"),
        ({"files": "$(touch owned) evals/good.jsonl; touch owned"}, 2, ""),
    ],
    ids=["good", "never", "no file", "no command"],
)
def test_the_action_fails_as_the_command_does(inputs: dict[str, str], code: int, printed: str, runner: Path) -> None:
    done = run_step(1, runner, **inputs, artifact="")
    assert (done.returncode, printed in done.stdout) == (code, True), done.stdout + done.stderr
    assert not (runner / "temp" / "agent-eval-schema-reports").exists()
    assert not (runner / "work" / "owned").exists()


def test_the_action_writes_sarif(runner: Path) -> None:
    assert run_step(1, runner, files="evals/**/*.jsonl", sarif="true").returncode == 1
    (run,) = json.loads((runner / "temp" / "agent-eval-schema.sarif").read_text(encoding="utf-8"))["runs"]
    assert "AE206" in {result["ruleId"] for result in run["results"]}


def test_arguments_of_the_action_reach_the_command(runner: Path) -> None:
    done = run_step(1, runner, files="evals/**/*.jsonl", arguments="--select AE206 --no-values", artifact="")
    assert "AE206" in done.stdout
    assert not re.search(r"AE(?!206)\d", done.stdout)


@pytest.mark.process
def test_the_action_installs_the_package(runner: Path) -> None:
    require_index(runner / "probe")
    shutil.rmtree(runner / "temp" / "agent-eval-schema")
    done = run_step(0, runner)
    assert done.returncode == 0, done.stderr
    (folder,) = (runner / "path").read_text(encoding="utf-8").split()
    assert [path.name for path in Path(folder).iterdir()] == ["agent-eval-schema"]
    assert subprocess.run([f"{folder}/agent-eval-schema", "--version"], env={}, check=False).returncode == 0


def test_the_page_of_the_action_names_its_inputs() -> None:
    page = (PAGES / "github-actions.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `([\w-]+)` \| (?:`([^`]*)`|required|) ?\|", page, re.MULTILINE)
    assert dict(shown) == {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()}


def test_of_each_test_so_many_cases_run() -> None:
    """In the legs of other versions: the first case, the last one, and those between them."""
    names = [f"test_numbers[{i}-[x]]" for i in range(10)] + ["test_words[a]", "test_words[b]", "test_alone"]
    items: Any = [SimpleNamespace(nodeid=f"tests/test_x.py::{name}") for name in names]
    assert [names[items.index(item)] for item in some_cases(items, 3)] == [names[i] for i in (0, 4, 9, 10, 11, 12)]
    assert [names[items.index(item)] for item in some_cases(items, 1)] == [names[i] for i in (0, 10, 12)]


def test_the_legs_of_other_versions_run_some_cases_of_each_test() -> None:
    command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", __file__, "-k", "the_hook_leaves"]
    counts = []
    for cases in ("0", "2"):
        env = os.environ | {"AGENT_EVAL_SCHEMA_CASES": cases, "PYTEST_ADDOPTS": ""}
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
        counts.append(done.stdout.count("test_ci.py::"))
    assert counts == [5, 2]

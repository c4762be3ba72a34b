"""What users paste into their CI runs: the commands parse, the hook exists and takes the files that it should."""

import re
import shlex
from typing import Any

import pytest
import yaml

from agent_eval_schema.cli import argument_parser
from tests.conftest import ROOT

(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())


def snippet(mark: str) -> Any:
    found = re.search(rf"<!-- {mark} -->\n```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return yaml.safe_load(found[1])


def parses(command: str, *more: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "agent-eval-schema"
    argument_parser().parse_args([*arguments, *more])


def test_the_step_for_github() -> None:
    *_, step = snippet("github")
    parses(step["run"])


def test_the_line_for_gitlab_and_jenkins() -> None:
    found = re.search(r"`(agent-eval-schema validate [^`]*junit) >\s", (ROOT / "README.md").read_text())
    assert found is not None
    parses(found[1])


def test_the_hook_that_users_paste_is_the_one_that_there_is() -> None:
    (repository,) = snippet("pre-commit")["repos"]
    (hook,) = repository["hooks"]
    assert hook["id"] == HOOK["id"]
    parses(HOOK["entry"], *hook["args"], "evals/a.jsonl")
    assert re.search(hook["files"], "evals/a.jsonl")


@pytest.mark.parametrize("path", ["eval.jsonl", "evals/a.csv", "data/eval_sets/hr/b.parquet", "tests/evaluation.json"])
def test_the_hook_takes_evaluation_sets(path: str) -> None:
    assert re.search(HOOK["files"], path)


@pytest.mark.parametrize("path", ["package.json", "data/a.csv", "retrieval/a.jsonl", "eval.py", "evals/README.md"])
def test_the_hook_leaves_other_files_alone(path: str) -> None:
    assert not re.search(HOOK["files"], path)

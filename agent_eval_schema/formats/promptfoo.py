"""promptfoo: tests, as JSON, JSON Lines, CSV, or the `tests:` of a YAML configuration.

    vars                                        request: question, query, prompt, input …, or the only one; inputs
    vars.context                                retrieved_context
    assert: equals, factuality, similar,        expected_response
            context-recall
    assert: contains, icontains, contains-all   expected_facts, the answer among them if there is one
    assert: llm-rubric, g-eval,                 guidelines, by their metric
            model-graded-closedqa
    assert: trajectory:tool-sequence,           reference_trajectory
            tool-used, tool-args-match
    providerOutput                              response
    metadata                                    tags

In a CSV file `__expected`, `__expected1`, … are assertions (`python: …`, `contains: …`; without a type `equals`),
`__metadata:key` is metadata, and all other columns are variables. A configuration has `tests`, and `scenarios`, each of
which runs all of its tests on each entry of its `config`. Source: the documentation of promptfoo (test case files,
assertions, scenarios).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.format import Field, Format, Nested, Row, Unfolded, Writer, lists_in
from agent_eval_schema.formats.roles import role_of
from agent_eval_schema.formats.shapes import (
    all_of,
    as_tags,
    as_text,
    has_entries,
    id_of_tags,
    objects_of,
    question,
    read_context,
)
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.reading import NOT_A_LIST
from agent_eval_schema.text.jsontext import as_object, structured

# --- variables
_QUESTIONS = ("question", "query", "prompt", "input", "message", "user_input", "text")
_CONTEXT = "context"


def _question_in(cell: Any) -> Any:
    """The variable that is the request: by its name, or the only one beside the context; else all of them."""
    variables = structured(cell)
    if not isinstance(variables, dict):
        return variables
    known = [name for name in _QUESTIONS if isinstance(variables.get(name), str)]
    others = [name for name, value in variables.items() if name != _CONTEXT and isinstance(value, str)]
    known = known or [name for name in others if role_of(name).column == "request"]
    if known or len(others) == 1:
        return variables[(known or others)[0]]
    rest = {n: v for n, v in variables.items() if n != _CONTEXT}
    return {"messages": chat.user_message(as_text(rest))} if others else None


def _context(value: Any) -> Any:
    context = as_object(structured(value)).get(_CONTEXT)
    if isinstance(context, str) and context.startswith(_READ):  # its text is elsewhere
        return [{"doc_uri": context}]
    return read_context(context) if context else None


def _write_context(documents: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The texts of the documents; of a file, which promptfoo reads, its name."""
    values = [d["doc_uri"] if d["content"] is None else d["content"] for d in documents]
    texts = [t for t, d in zip(values, documents, strict=True) if d["content"] is not None or str(t).startswith(_READ)]
    return {_CONTEXT: texts[0] if len(texts) == 1 else texts} if texts or not documents else None


_READ = "file://"


# --- assertions
_SIMILAR = ("similar:cosine", "similar:dot", "similar:euclidean", "similar")
_ANSWERS = ("equals", "factuality", "model-graded-factuality", *_SIMILAR, "context-recall")
_FACTS = ("contains", "icontains", "contains-all", "icontains-all")
_RUBRICS = ("llm-rubric", "g-eval", "model-graded-closedqa")
_SEQUENCE, _USED, _ARGUMENTS = (f"trajectory:tool-{name}" for name in ("sequence", "used", "args-match"))
_GROUP = "guidelines"


def _of_type(value: Any, types: Sequence[str]) -> list[dict[str, Any]]:
    return [a for a in all_of(value) if isinstance(a, dict) and a.get("type") in types and a.get("value") is not None]


def _answer(value: Any) -> Any:
    return next((as_text(a["value"]) for a in _of_type(value, _ANSWERS)), None)


def _facts(value: Any) -> Any:
    values = [v for a in _of_type(value, _FACTS) for v in _several(a["value"])]
    return [as_text(v) for v in values] or None


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _guidelines(value: Any) -> Any:
    result: dict[str, list[Any]] = {}
    for rubric in _of_type(value, _RUBRICS):
        result.setdefault(str(rubric.get("metric") or _GROUP), []).extend(map(as_text, _several(rubric["value"])))
    return result or None


def _calls(assertions: Any) -> Any:
    """The calls of a sequence, else those that must occur; each with the arguments that are compared."""
    arguments = [a["value"] for a in _of_type(assertions, (_ARGUMENTS,)) if isinstance(a["value"], dict)]
    names = [n for a in _of_type(assertions, (_SEQUENCE,)) for n in _steps(a["value"])]
    names = names or [n for a in _of_type(assertions, (_USED,)) for n in _steps(a["value"])]
    names = names or [_name(value) for value in arguments]
    result = []
    for name in names:
        wanted = next((value for value in arguments if _name(value) == name), None)
        if wanted is not None:
            arguments.remove(wanted)
        result.append({"tool_name": name, **({} if wanted is None else {"tool_input": wanted.get("args") or {}})})
    return result or None


def _steps(value: Any) -> Sequence[Any]:
    steps = value.get("steps", [_name(value)]) if isinstance(value, dict) else value
    return [_name(step) if isinstance(step, dict) else step for step in _several(steps) if step is not None]


def _name(value: dict[str, Any]) -> Any:
    return value.get("name") or value.get("tool")


def _write_calls(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sequence = {"type": _SEQUENCE, "value": {"mode": "exact", "steps": [c["tool_name"] for c in calls]}}
    expected = [{"name": c["tool_name"], "args": c["tool_input"], "mode": "exact"} for c in calls if c["tool_input"]]
    return [sequence, *({"type": _ARGUMENTS, "value": value} for value in expected)]


def _write_guidelines(guidelines: dict[str, list[str]]) -> list[dict[str, Any]]:
    return [
        {"type": "llm-rubric", "value": text, **({} if name == _GROUP else {"metric": name})}
        for name, texts in guidelines.items()
        for text in texts
    ]


# --- rows
def _read_rest(source: Row, row: dict[str, Any]) -> None:
    if source.get("request") is not None:  # which the user has named
        row.pop("request", None)
    if isinstance(row.get("expected_facts"), list) and "expected_response" in row:
        row["expected_facts"] = [row.pop("expected_response"), *row["expected_facts"]]  # a row has one of them
    variables = structured(source.get("vars"))
    if isinstance(variables, dict):
        row |= {name: _rendered(row[name], variables) for name in _TEMPLATES if name in row}
        if row.get("request") is not None and len(variables) > 1:
            row["inputs"] = {k: v for k, v in variables.items() if k != _CONTEXT}
    id_of_tags(row)


_TEMPLATES = ("expected_response", "expected_facts", "guidelines")
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def _rendered(value: Any, variables: Row) -> Any:
    """The value with the variables that its texts name, as promptfoo renders assertions."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda m: as_text(variables[m[1]]) if m[1] in variables else m[0], value)
    if isinstance(value, dict):
        return {k: _rendered(v, variables) for k, v in value.items()}
    return [_rendered(v, variables) for v in value] if isinstance(value, list) else value


def _write_rest(row: Row, written: dict[str, Any]) -> None:
    inputs, variables = row.get("inputs"), written.get("vars", {})
    request = _question_in(inputs)
    request = question(request) if isinstance(request, dict) else request
    if isinstance(inputs, dict) and _CONTEXT not in inputs and request == variables.get("question"):
        written["vars"] = {**inputs, **{k: v for k, v in variables.items() if k == _CONTEXT}}
    if row.get("request_id") is not None:
        written["metadata"] = {**(written.get("metadata") or {}), "request_id": row["request_id"]}
    if isinstance(written.get("vars", {}).get(_CONTEXT), list):  # which would become a test for each of its texts
        written["options"] = {"disableVarExpansion": True}


# --- CSV, and whole configurations
_EXPECTED = re.compile(r"__expected\d*")


def row_of_csv(row: Row) -> Iterator[Unfolded]:
    result: dict[str, Any] = {"vars": {}, "assert": []}
    for name, value in row.items():
        if _EXPECTED.fullmatch(name):
            result["assert"].append(_assertion(str(value)))
        elif name.startswith("__metadata:"):
            result.setdefault("metadata", {})[name.partition(":")[2].removesuffix("[]")] = value
        elif name.startswith("__"):
            result[name[2:]] = value
        else:
            result["vars"][name] = value
    yield result, ()


def _assertion(text: str) -> dict[str, Any]:
    """`type: value`, `type(threshold): value`, a type alone, the name of a file, or the value of `equals`."""
    for prefix, type in _CODE.items():
        if text.startswith(prefix):
            return {"type": type, "value": text.removeprefix(prefix).strip()}
    if found := _FILE.fullmatch(text):
        return {"type": "python" if found[1] == "py" else "javascript", "value": text}
    typed = _TYPED.fullmatch(text)
    if typed is None:
        return {"type": "equals", "value": text}
    type, threshold, value = typed.groups()
    result = {"type": type}
    if value is not None:
        result["value"] = [v.strip() for v in value.split(",")] if type.endswith(("-all", "-any")) else value.strip()
    return result | ({"threshold": threshold} if threshold else {})


_CODE = {
    "javascript:": "javascript",
    "fn:": "javascript",
    "eval:": "javascript",
    "python:": "python",
    "grade:": "llm-rubric",
}
_FILE = re.compile(r"file://.*\.([cm]?[jt]s|py)(?::\w+)?")
_TYPES = (
    *_ANSWERS,
    *_FACTS,
    *_RUBRICS,
    *(_SEQUENCE, _USED, _ARGUMENTS, "trajectory:goal-success", "trajectory:step-count", "tool-call-f1", "skill-used"),
    *("answer-relevance", "context-faithfulness", "context-relevance", "conversation-relevance", "moderation"),
    *("contains-any", "icontains-any", "contains-html", "contains-json", "contains-sql", "contains-xml", "regex"),
    *("is-html", "is-json", "is-refusal", "is-sql", "is-xml", "starts-with", "finish-reason", "guardrails", "webhook"),
    *("is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call"),
    *("bleu", "gleu", "rouge-l", "rouge-n", "rouge-s", "meteor", "levenshtein", "perplexity", "perplexity-score"),
    *("classifier", "cost", "latency", "pi", "ruby", "search-rubric", "select-best", "max-score"),
    *("trace-error-spans", "trace-span-count", "trace-span-duration"),
)
"""The types that a cell of a CSV file may begin with; any other text with a colon is an answer."""
_TYPED = re.compile(rf"((?:not-)?(?:{'|'.join(_TYPES)}))(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL)


LISTS = ("tests", "scenarios")
"""The keys of a configuration that hold tests."""

_is_configuration = has_entries(LISTS, "vars", marks=("prompts", "providers", "targets", "defaultTest"))
"""A configuration, whose tests may be in other files, or a list of tests that have variables."""


def rows_of_configuration(row: Row) -> Iterator[Unfolded]:
    """The tests of a configuration, then those of its scenarios, each with the defaults of all tests."""
    shared = structured(row.get("defaultTest"))
    for test in all_of(row.get("tests")):
        yield _joined(shared, test), ()
    for i, scenario in enumerate(map(structured, all_of(row.get("scenarios")))):
        data, unread = _entries(scenario, "config", f"scenarios[{i}]")
        tests, others = _entries(scenario, "tests", f"scenarios[{i}]")
        if not unread and not others:
            others = list(_run_on_nothing(scenario, f"scenarios[{i}]"))
        yield from (({"vars": None, "assert": None}, (finding,)) for finding in [*unread, *others])
        yield from ((_joined(shared, value, test), ()) for value in data for test in tests)


def _entries(scenario: Row, name: str, path: str) -> tuple[list[Any], list[Finding]]:
    """The entries of a list of a scenario, one without anything if there is none, and the issues of those unread."""
    return ([{}], []) if scenario.get(name) is None else objects_of(scenario[name], f"{path}.{name}")


def _run_on_nothing(scenario: Row, path: str) -> Iterator[Finding]:
    """The first empty list of a scenario: promptfoo runs each test on each entry, so it runs none, and reports none."""
    for name in ("config", "tests"):
        if structured(scenario.get(name)) == []:
            hint = f"Remove the key `{name}`, or add an entry: promptfoo runs no test of this scenario."
            yield Finding(NOT_A_LIST, "expected a list of objects, got an empty list", path=f"{path}.{name}", hint=hint)
            return


def _joined(*parts: Any) -> dict[str, Any]:
    """The parts of a test as one: objects and lists of assertions are joined, of others the last one counts."""
    result: dict[str, Any] = {}
    for part in map(structured, parts):
        for name, value in as_object(part).items():
            parsed, before = structured(value), result.get(name)
            if name in _OBJECTS and isinstance(parsed, dict) and isinstance(before, dict):
                result[name] = {**before, **parsed}
            elif name == "assert" and isinstance(parsed, list) and isinstance(before, list):
                result[name] = [*before, *parsed]
            else:
                result[name] = parsed if name in _OBJECTS or name == "assert" else value
    return result


_OBJECTS = frozenset({"vars", "metadata", "options"})


_EXECUTED = re.compile(rf"\{{\{{|\{{%|\{{#|^{_READ}")
"""Templates of Nunjucks, which nothing escapes, and the address of a file (promptfoo 0.123.1)."""

PROMPTFOO = Format(
    name="promptfoo",
    title="promptfoo",
    summary="tests of promptfoo: vars and assertions",
    also_read="CSV with `__expected`, the `tests` of a YAML configuration",
    page="https://www.promptfoo.dev/docs/configuration/test-cases/",
    signs=Signs(sure=each_with("vars", "assert", "metadata", "options", "threshold"), likely=(("vars",),)),
    fields=(
        Field("vars", "request", _question_in, lambda request: {"question": question(request)}),
        Field("vars", "retrieved_context", _context, _write_context),
        Field("assert", "expected_response", _answer, lambda text: [{"type": "factuality", "value": text}]),
        Field("assert", "expected_facts", _facts, lambda facts: [{"type": "contains-all", "value": facts}]),
        Field("assert", "guidelines", _guidelines, _write_guidelines),
        Field("assert", "reference_trajectory", _calls, _write_calls),
        Field("providerOutput", "response"),
        Field("metadata", "tags", as_tags),
        Field("metadata.request_id", "request_id", as_text, lambda _: None),
    ),
    passthrough_columns=(
        *("description", "options", "threshold", "provider", "providers", "prompts", "assertScoringFunction"),
        "assertionTemplates",
    ),
    read_rest=_read_rest,
    write_rest=_write_rest,
    inspected=("request",),
    nested=(
        lists_in(*LISTS, unfold=rows_of_configuration, columns=("vars", "assert"), detect=_is_configuration),
        Nested(lambda names, _: any(_EXPECTED.fullmatch(name) for name in names), row_of_csv),
    ),
    # in a CSV file every column is a variable
    writer=Writer(
        marks={"assert": [], "options": None},
        texts=("vars", "assert"),
        # an answer that is empty is asked for again
        executes={"vars": _EXECUTED, "assert": _EXECUTED, "providerOutput": re.compile("^$")},
    ),
)

"""What a column holds by its name, in fifteen languages, and what is proposed for tables with such names: the names of
a request × those of ground truth × what the table is beside them, and whether the requests are questions or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats import suggestions
from agent_eval_schema.formats.roles import meanings_of, role_of
from agent_eval_schema.formats.suggestions import suggested_columns
from agent_eval_schema.validation.report import summary_of

Row = dict[str, Any]

QUESTIONS = [f"How is order {n} returned?" for n in range(4)]
TASKS = [f"Cancel order {n}, and confirm it by mail" for n in range(4)]

ASKED = [
    *(
        "prompt",
        "user_input",
        "question",
        "query",
        "input",
        "nl_question",
        "question_text",
        "prompt_text",
        "input_text",
    ),
    *(
        "prompt_text",
        "userMessage",
        "User Query",
        "instruction",
        "utterance",
        "task",
        "customer_request",
        "ticket_text",
    ),
]
TRUTHS = [
    *("ground_truth", "gold", "gold_answer", "expected_output", "expectedAnswer", "Ideal Answer", "reference_answer"),
    *("target", "correct_answer", "golden_response", "solution", "groundtruth"),
]

LANGUAGES = {
    "de": ("Kundenfrage", "Musterantwort"),
    "de, in two words": ("Anfrage des Kunden", "erwartete Antwort"),
    "fr": ("Question du client", "Réponse attendue"),
    "fr, a request": ("demande", "réponse de référence"),
    "es": ("pregunta", "respuesta_esperada"),
    "pt": ("pergunta", "gabarito"),
    "it": ("domanda", "risposta corretta"),
    "nl": ("klantvraag", "verwacht antwoord"),
    "pl": ("pytanie", "oczekiwana odpowiedź"),
    "tr": ("soru", "beklenen yanıt"),
    "ru": ("вопрос клиента", "эталонный ответ"),
    "ar": ("السؤال", "الإجابة المتوقعة"),
    "hi": ("प्रश्न", "अपेक्षित उत्तर"),
    "zh": ("用户问题", "标准答案"),
    "ja": ("質問", "期待される回答"),
    "ko": ("질문", "예상 답변"),
}


def table(name: str, truth: str, asked: list[str], **more: Any) -> list[Row]:
    return [{name: text, truth: f"Done: {n}.", **more} for n, text in enumerate(asked)]


def read_as_proposed(rows: list[Row]) -> Any:
    """The report with the mapping that the issues of a table propose."""
    return validate_eval_set(rows, columns=suggestion(rows))


def suggestion(rows: list[Row]) -> dict[str, str]:
    return dict(summary_of(validate_eval_set(rows)).suggested)


@pytest.mark.parametrize("asked", [QUESTIONS, TASKS], ids=["questions", "tasks"])
@pytest.mark.parametrize("more", [{}, {"response": "Yes."}, {"response": "Yes.", "team": "a"}], ids=str)
@pytest.mark.parametrize("name", ASKED)
def test_no_ground_truth_beside_a_request_is_passed_by(name: str, more: Row, asked: list[str]) -> None:
    for truth in TRUTHS:
        require_read_or_named(table(name, truth, asked, **more), name, truth, more)


def require_read_or_named(rows: list[Row], name: str, truth: str, more: Row) -> None:
    report = validate_eval_set(rows)
    if any(row["expected_response"] for row in report.iter_rows()):  # a format reads both names
        return
    assert {"AE113", "AE119"} & set(report.counts), report.to_text()
    read = read_as_proposed(rows)
    assert read.ok, read.to_text()
    for row, given in zip(read.iter_rows(), rows, strict=True):
        assert row["expected_response"] == given[truth]
        assert row["request"]["messages"][-1]["content"] == given[name]
        assert row["response"] == more.get("response")


@pytest.mark.parametrize("asked", [QUESTIONS, TASKS], ids=["questions", "tasks"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_names_of_a_language_are_known(language: str, asked: list[str]) -> None:
    name, truth = LANGUAGES[language]
    found = suggestion(table(name, truth, asked))
    assert found == {name: "request", truth: "expected_response"}
    report = validate_eval_set(table(name, truth, asked), columns="auto")
    assert report.ok
    assert report.counts == {"AE117": 2}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("question_type", "metadata"),
        ("question_id", "ID"),
        ("user_id", "metadata"),
        ("answer_relevance_score", "score"),
        ("preference", "metadata"),
        ("input_tokens", "metadata"),
        ("goldDocIds", "expected documents"),
        ("expected_tools", "expected tool calls"),
        ("tools", "tool definitions"),
        ("tools_called", "tool calls"),
        ("gold_sql", "SQL"),
        ("sql.query", "SQL"),
        ("metadata.question", "metadata"),
        ("expected_intent", "label"),
        ("key_facts", "facts"),
        ("grading_rubric", "guidelines"),
        ("Bot-Antwort", "response"),
        ("system_prompt", ""),
        ("contextual", ""),
        ("android", ""),
        ("throughput", ""),
    ],
)
def test_the_role_of_a_name(name: str, role: str) -> None:
    assert role_of(name).name == role


@pytest.mark.parametrize("name", ["", " ", "_", "x" * 10_000, "质" * 5_000, "\ud800", ".", "a..b", "[]"], ids=range(9))
def test_any_text_can_be_a_name(name: str) -> None:
    assert meanings_of(name) == (frozenset(), False)
    assert role_of(name).column is None


DEFINITIONS: list[list[Row]] = [
    [{"name": "f", "description": "Finds.", "parameters": {"type": "object", "properties": {}}}],
    [{"name": "f", "input": {"properties": {"a": {"type": "string"}}}}],
    [{"type": "function", "function": {"name": "f", "description": "Finds."}, "name": "f", "arguments": {}}],
]


@pytest.mark.parametrize("tools", DEFINITIONS)
@pytest.mark.parametrize("key", ["tools", "functions", "available_tools", "tool_calls", "x"])
def test_a_definition_is_no_call(key: str, tools: list[Row]) -> None:
    rows = [{"question": text, key: tools} for text in TASKS]
    assert suggestion(rows) == {"question": "request"}


def test_sentences_are_no_names_of_tools() -> None:
    rows = [{"question": text, "actions": ["Open the page", "Press the button"]} for text in TASKS]
    assert suggestion(rows) == {"question": "request"}


@pytest.mark.parametrize("name", ["query", "statement"])
def test_sql_is_what_a_question_is_answered_with(name: str) -> None:
    rows = [{"utterance": text, "sql": {name: f"SELECT {n} FROM t"}} for n, text in enumerate(TASKS)]
    found = suggestion(rows)
    assert found["utterance"] == "request"
    assert found.get("sql.query", "expected_response") == "expected_response"
    flat = [{"nl": text, "query": f"SELECT {n} FROM t"} for n, text in enumerate(TASKS)]
    assert "request" not in {suggestion(flat).get("query")}


def test_questions_of_which_fewer_than_half_are_sql_are_requests() -> None:
    texts = ["SELECT 1 FROM t", "SELECT 2 FROM t", "Who pays?", "How much is it?", "Where is the canteen?"]
    assert suggestion([{"query": text, "note": "x"} for text in texts]).get("query") == "request"


def test_a_conversation_with_its_last_answer_is_not_proposed_as_a_request() -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert suggestion([{"dialog": turns, "topic": "a"}]) == {}
    assert suggestion([{"dialog": turns[:1], "topic": "a"}]) == {"dialog": "request.messages"}


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ({"inputs": {"question": "Hi?", "ground_truth": "Hello"}, "outputs": "Hi"}, "inputs.ground_truth"),
        (
            {"inputs.query": "Hi?", "inputs.ground_truth": "Hello", "outputs.response": "Hi"},
            "inputs.ground_truth",
        ),
        ({"inputs": {"question": "Hi?"}, "outputs": "Hi", "reference_answer": "Hello"}, "reference_answer"),
    ],
    ids=str,
)
def test_ground_truth_inside_the_inputs_is_named(row: Row, path: str) -> None:
    report = validate_eval_set([row])
    (issue,) = (issue for issue in report.iter_issues() if issue.code == "AE119")
    assert issue.path == path
    assert "=expectations.expected_response" in str(issue.hint)
    read = validate_eval_set([row], columns=dict(summary_of(report).suggested))
    assert [found["expected_response"] for found in read.iter_rows()] == ["Hello"]
    assert "AE119" not in read.counts


@pytest.mark.parametrize(
    ("format", "row", "path"),
    [
        ("langsmith", {"inputs": {"q": "Hi?"}, "outputs": {"expected_answer": "Hello"}}, "outputs.expected_answer"),
        ("langsmith", {"inputs": {"q": "Hi?", "gold": "Hello"}, "outputs": {}}, "inputs.gold"),
        ("promptfoo", {"vars": {"question": "Hi?", "ground_truth": "Hello"}}, "vars.ground_truth"),
    ],
)
def test_ground_truth_inside_the_objects_of_a_format_is_named(format: str, row: Row, path: str) -> None:
    rows = [{**row, "dataset_id": "d", "id": str(n)} if format == "langsmith" else row for n in range(2)]
    report = validate_eval_set(rows)
    (issue,) = (issue for issue in report.iter_issues() if issue.code == "AE119")
    assert (report.format, issue.column, f"--columns {path}=expected_response" in issue.hint) == (
        format,
        path.partition(".")[0],
        True,
    )
    read = read_as_proposed(rows)
    assert [found["expected_response"] for found in read.iter_rows()] == ["Hello"] * 2
    assert "AE119" not in read.counts


@pytest.mark.parametrize("key", ["ground_truth", "reference_answer", "Musterantwort", "gold", "answer", "key_facts"])
def test_ground_truth_under_another_name_in_the_expectations_is_named(key: str) -> None:
    truth = ["Hello"] if key == "key_facts" else "Hello"
    row = {"inputs": {"question": "Hi?"}, "outputs": "Hi", "expectations": {"max_length": 30, key: truth}}
    report = validate_eval_set([row])
    (issue,) = (issue for issue in report.iter_issues() if issue.code == "AE119")
    ours = "expected_facts" if key == "key_facts" else "expected_response"
    assert issue.column == "expectations"
    assert f"--columns expectations.{key}=expectations.{ours}" in str(issue.hint)
    for columns in (dict(summary_of(report).suggested), "auto"):
        (written,) = convert_eval_set([row], "mlflow", columns=columns).data.to_dict("records")
        assert written["expectations"] == {"max_length": 30, ours: truth}


@pytest.mark.parametrize(
    "key",
    [
        "max_length",
        "category",
        "label",
        "sql",
        "answer_style",
        "expected_topic",
        "min_score",
        "documents",
        "answer_format",
    ],
)
def test_what_a_scorer_of_ones_own_reads_is_no_ground_truth(key: str) -> None:
    rows = [
        {"inputs": {"question": text}, "outputs": "Hi", "expectations": {key: f"{key} of {text}"}} for text in TASKS
    ]
    assert "AE119" not in validate_eval_set(rows).counts


def test_a_renamed_key_overwrites_none() -> None:
    row = {"inputs": {"question": "Hi?"}, "outputs": "Hi", "expectations": {"gold": "a", "expected_response": "b"}}
    (read,) = validate_eval_set([row], columns={"expectations.gold": "expectations.expected_response"}).iter_rows()
    assert (read["expected_response"], read["expectations.rest"]) == ("a", {"expected_response": "b"})


def test_ground_truth_inside_the_objects_that_a_format_reads_is_no_warning() -> None:
    for row in ({"inputs": {"q": "Hi?"}, "outputs": {"answer": "Hello"}, "dataset_id": "d", "id": "1"},):
        report = validate_eval_set([row])
        assert ("AE119" in report.counts, [r["expected_response"] for r in report.iter_rows()]) == (False, ["Hello"])


def test_ground_truth_that_is_read_elsewhere_is_no_warning() -> None:
    row = {"inputs": {"question": "Hi?", "answer": "x"}, "expectations": {"expected_response": "Hello"}}
    assert "AE119" not in validate_eval_set([row]).counts


def test_what_no_mapping_is_proposed_for_is_named_with_what_it_has() -> None:
    rows = [{"request": text, "answers": ["a", "b"], "Ergebnis": f"Fall {n}"} for n, text in enumerate(TASKS)]
    issues = {issue.column: issue for issue in validate_eval_set(rows).iter_issues()}
    assert (issues["answers"].code, issues["answers"].message) == ("AE119", "`answers` is not used: list, 4 of 4 rows")
    assert issues["Ergebnis"].message == "`Ergebnis` is not used: text, 4 of 4 rows: ground truth?"
    assert "--columns Ergebnis=expected_response" in str(issues["Ergebnis"].hint)


def test_of_two_names_the_sure_one_is_meant() -> None:
    rows = [{"task": "qa", "xyz_question": "b", "question": text} for text in TASKS]
    assert suggested_columns(list(rows[0]), rows, whole=True) == {"question": "request"}


def test_the_next_command_reads_the_truth_as_review_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps({"user_input": t, "response": "x", "gold": "Done"}) + "\n" for t in TASKS))
    assert main(["validate", str(path)]) == 0
    shown = capsys.readouterr().out
    assert f"agent-eval-schema validate {path} --columns gold=expected_response" in shown
    assert "--queue truth" not in shown
    assert main(["review", str(path), "--bundle", str(tmp_path / "page.html")]) == 0
    assert "--columns gold=expected_response" in capsys.readouterr().err


def test_a_role_is_looked_up_a_few_times_per_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """No column is compared with all others: a row may have thousands."""
    asked = 0

    def counted(name: str) -> Any:
        nonlocal asked
        asked += 1
        return role_of(name)

    monkeypatch.setattr(suggestions, "role_of", counted)
    validate_eval_set([{"request": "Hi", "response": "Hello", **{f"column {i}": i for i in range(500)}}])
    assert 500 <= asked < 5_000

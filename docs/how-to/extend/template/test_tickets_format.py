"""What is read, by hand; `pytest --agent-eval-schema-conformance` tests the rest."""

from agent_eval_schema import EvalTask, convert_eval_set, validate_eval_set

TICKET = {"ticket": 7, "problem": "The badge does not open the door.", "solution": "Renew it.", "queue": "access"}


def test_a_ticket_is_a_row() -> None:
    report = validate_eval_set([TICKET])
    assert (report.format, report.ok) == ("tickets", True)
    (row,) = report.iter_rows()
    assert row["expected_response"] == "Renew it."
    assert row["tags"] == {"queue": "access"}


def test_a_row_becomes_a_ticket() -> None:
    ticket = convert_eval_set([{"request": "Where is my order?", "expected_response": "On its way."}], "tickets")
    assert ticket.data.to_dict("records") == [{"problem": "Where is my order?", "solution": "On its way."}]


def test_a_link_without_https_is_an_issue() -> None:
    report = validate_eval_set([{**TICKET, "solution": "See http://help.example.com"}])
    assert report.counts["HD001"] == 1


def test_a_long_answer_is_not_brief() -> None:
    rows = [{"response": "Renew it, please.", "reference": "Renew"}, {"response": "Renew", "reference": "Renew it."}]
    scores = EvalTask(rows, ["brevity"]).evaluate().metrics_table["brevity/score"]
    assert scores.round(2).tolist() == [0.29, 1.0]

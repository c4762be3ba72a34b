"""A golden CSV to start from."""

from typing import Any

from agent_eval_schema.formats.ces.golden_writer import golden_csv_text


def golden_template() -> str:
    """Return a golden CSV to start from.

    Returns
    -------
    str
        The text of a file with one evaluation that uses each of the eight actions.

    See Also
    --------
    read_golden_csv : Read the evaluations of a golden CSV file.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> ces.read_golden_csv(ces.golden_template()).evaluations[0]["displayName"]
    'Refund happy path'
    """
    return golden_csv_text(_TEMPLATE, groups={"Refund happy path": ["Regression"]})[0]


def _expects(**condition: Any) -> dict[str, Any]:
    return {"expectation": condition}


_TEMPLATE: list[dict[str, Any]] = [
    {
        "displayName": "Refund happy path",
        "name": "refund-happy-path",
        "description": "A customer asks for a refund and sends a photo",
        "tags": ["refund", "p0"],
        "golden": {
            "turns": [
                {
                    "steps": [
                        {"userInput": {"variables": {"customer_id": "C-1"}}},
                        {"userInput": {"text": "I want a refund, please"}},
                        _expects(toolCall={"tool": "get_order", "args": {"order_id": "42"}}, note="looks up the order"),
                        _expects(toolResponse={"tool": "get_order", "response": {}}),
                        _expects(agentTransfer={"targetAgent": "refunds_agent"}),
                        _expects(agentResponse={"role": "refunds_agent", "chunks": [{"text": "Please send a photo."}]}),
                    ]
                },
                {
                    "steps": [
                        {"userInput": {"image": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}},
                        {
                            "userInput": {
                                "toolResponses": {
                                    "toolResponses": [{"tool": "scan_receipt", "response": {"output": {"total": 12.5}}}]
                                }
                            }
                        },
                        _expects(
                            agentResponse={"role": "refunds_agent", "chunks": [{"text": "Your refund is on its way."}]}
                        ),
                    ]
                },
            ]
        },
    }
]

"""JSON documents of results."""

import json
from typing import Any

import numpy as np

from agent_eval_schema.render.document import json_text, plain_values


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_numbers_of_numpy_are_numbers_and_other_objects_their_text() -> None:
    made = plain_values({"mean": np.float64(0.5), "all": np.arange(2), "ok": np.bool_(True), "of": complex(1, 2)})
    assert made == {"mean": 0.5, "all": [0, 1], "ok": True, "of": "(1+2j)"}


def test_a_value_that_is_nested_too_deep_is_its_kind_and_what_is_beside_it_is_kept() -> None:
    made = plain_values({"score": 1, "call": nested(5_000), "flat": nested(20)})
    assert made["score"] == 1
    assert made["flat"] == nested(20)
    assert str(json.loads(json_text(made))["call"]).strip("[]'") == "a list of 1"

"""The wire table of the evaluation API: what its accessors say, and that it is what the vendor's package says."""

import pytest

from agent_eval_schema.formats.ces import schema


def test_a_field_is_known_by_both_of_its_names() -> None:
    evaluation = schema.message("Evaluation")
    assert evaluation.json_name("displayName") == evaluation.json_name("display_name") == "displayName"
    assert evaluation.json_name("display-name") is None


def test_what_the_table_says_of_a_field() -> None:
    fields = schema.message("Evaluation").fields
    assert fields["displayName"].required
    assert fields["etag"].output_only
    assert fields["golden"].oneof == "inputs"
    assert schema.message("Evaluation").oneofs == {"inputs": ("golden", "scenario")}
    assert schema.message("Evaluation.Golden").fields["turns"].repeated


def test_a_path_is_followed_through_messages_only() -> None:
    assert [f.proto_name for f in schema.field_at("golden.turns")] == ["golden", "turns"]
    assert schema.field_at("golden.turnz") == ()
    assert schema.field_at("displayName.text") == ()
    assert schema.field_at("scenario.variableOverrides.anything") == ()


def test_enums_have_all_their_values() -> None:
    assert dict(schema.table().enums["EvaluationResult.Outcome"]) == {
        "OUTCOME_UNSPECIFIED": 0,
        "PASS": 1,
        "FAIL": 2,
        "SKIPPED": 3,
    }


def test_the_table_is_closed() -> None:
    """Every type that a field names is a scalar, a well-known type, or in the table."""
    scalars = {"string", "bool", "bytes", "int32", "float", "double", "map"}
    for message in schema.table().messages.values():
        for field in message.fields.values():
            if field.enum:
                assert schema.table().enums[field.enum]
            elif not field.message:
                assert field.type in scalars or field.type.startswith("google."), field


def test_no_message_of_an_evaluation_or_a_result_has_a_map() -> None:
    """`inspection` and the JSON Schema know none."""
    of_maps = {name for name, m in schema.table().messages.items() if any(f.map_value for f in m.fields.values())}
    reached, todo = set[str](), [schema.EVALUATION, schema.RESULT]
    while todo:
        if (name := todo.pop()) not in reached:
            reached.add(name)
            todo += [field.message for field in schema.message(name).fields.values() if field.message]
    assert len(reached) > 50
    assert not reached & of_maps


@pytest.mark.oracle
def test_the_table_is_what_the_vendors_descriptors_say() -> None:
    types = pytest.importorskip("google.cloud.ces_v1beta.types")
    for name, message in schema.table().messages.items():
        found = types
        for part in name.split("."):
            found = getattr(found, part)
        descriptor = found.pb().DESCRIPTOR
        theirs = {f.json_name: (f.name, bool(f.is_repeated) and not _is_map(f)) for f in descriptor.fields}
        assert {n: (f.proto_name, f.repeated) for n, f in message.fields.items()} == theirs, name
        assert message.oneofs == {
            o.name: tuple(f.json_name for f in o.fields) for o in descriptor.oneofs if not o.name.startswith("_")
        }, name


def _is_map(field: object) -> bool:
    kind = field.message_type  # type: ignore[attr-defined]
    return kind is not None and kind.GetOptions().map_entry

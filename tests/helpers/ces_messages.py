"""Messages of the CES API as users may write them, as strategies."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import strategies as st

from agent_eval_schema.formats.ces import schema

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 53), 1 << 53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
SCALARS: dict[str, Any] = {
    "string": st.text(max_size=6),
    "bool": st.booleans(),
    "bytes": st.binary(max_size=5).flatmap(
        lambda b: st.sampled_from(
            [
                base64.b64encode(b).decode(),
                base64.urlsafe_b64encode(b).decode(),
                base64.b64encode(b).decode().rstrip("="),
            ]
        )
    ),
    "int32": st.integers(-(1 << 31), (1 << 31) - 1).flatmap(lambda n: st.sampled_from([n, str(n), float(n)])),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False)
    | st.sampled_from(["0.5", "NaN", "-Infinity", 3]),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    schema.STRUCT: st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    schema.TIMESTAMP: st.sampled_from(["2025-01-31T12:00:00Z", "2024-02-29T23:59:59.250Z"]),
    schema.DURATION: st.sampled_from(["1.500s", "0s", "-3s"]),
}


@st.composite
def messages(draw: st.DrawFn, name: str, depth: int = 0) -> dict[str, Any]:
    """A message of the table, as a user may write it: fields in any order, under either name, null or absent."""
    message, made = schema.message(name), {}
    chosen = {
        draw(st.sampled_from([n for n in group if depth < 6 or not message.fields[n].message] or group))
        for group in message.oneofs.values()
    }
    for json_name, field in message.fields.items():
        wanted = json_name in chosen if field.oneof else field.required or (depth < 5 and draw(st.integers(0, 3)) == 0)
        if field.output_only or field.type in ("map", schema.STATUS) or not wanted:
            continue
        key = field.proto_name if draw(st.integers(0, 5)) == 0 else json_name
        made[key] = draw(values(name, json_name, field, depth))
        if not field.required and not field.oneof and draw(st.integers(0, 9)) == 0:
            made[key] = None
    return dict(draw(st.permutations(list(made.items()))))


IMAGES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
WORDS = {"dtmf": ["1", "*09#A"], "noiseSuppressionLevel": ["low", "very_high"]}


def values(message: str, name: str, field: schema.FieldType, depth: int) -> Any:
    limits = schema.range_of(message, name)
    if field.type == "Image":
        one: Any = st.sampled_from(
            [{"mimeType": kind, "data": base64.b64encode(data).decode()} for kind, data in IMAGES.items()]
        )
    elif field.message:
        one = messages(field.message, depth + 1)
    elif field.enum:
        known = schema.table().enums[field.enum]
        numbers = list(known.values())
        one = st.sampled_from([*known, *numbers] if not field.required else [*list(known)[1:], *numbers[1:]])
    elif field.resource_format:
        full = field.resource_format[0].replace("{", "").replace("}", "")
        one = st.sampled_from(["a name", full])
    elif name in WORDS:
        one = st.sampled_from(WORDS[name])
    elif limits and field.type == "int32":
        one = st.integers(*limits).flatmap(lambda n: st.sampled_from([n, str(n), float(n)]))
    elif limits and field.type == "float":
        one = st.floats(*limits, width=32) | st.sampled_from(["0.5", "1", 1])
    elif field.required and field.type in ("bytes", "int32"):
        one = st.just("QUI=" if field.type == "bytes" else 8000)
    else:
        one = SCALARS[field.type]
        if field.required and field.type == "string":
            one = st.text(min_size=1, max_size=6)
    if not field.repeated:
        return one
    return st.lists(one, min_size=1 if field.required else 0, max_size=2)


_ONE: dict[str, Any] = {
    "string": "a text",
    "bool": True,
    "bytes": "QUI=",
    "int32": 8000,
    "float": 0.5,
    "double": 0.5,
    schema.STRUCT: {"city": "Berlin"},
    schema.TIMESTAMP: "2025-01-31T12:00:00Z",
    schema.DURATION: "1.500s",
}


def complete(name: str, above: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Messages of the table which together have every field that a client sets, of a recursive one once."""
    fields = {
        json_name: _alternatives(name, json_name, field, (*above, name))
        for json_name, field in schema.message(name).fields.items()
        if not field.output_only and field.type not in ("map", schema.STATUS) and field.message not in (*above, name)
    }
    groups = [
        [(option, value) for option in group for value in fields.get(option, ())]
        for group in schema.message(name).oneofs.values()
    ]
    chosen = {option for group in groups for option, _ in group}
    groups += [[(option, value) for value in values] for option, values in fields.items() if option not in chosen]
    count = max(map(len, groups), default=1)
    return [dict(group[i % len(group)] for group in groups if group) for i in range(count)]


def _alternatives(message: str, name: str, field: schema.FieldType, above: tuple[str, ...]) -> list[Any]:
    limits = schema.range_of(message, name)
    found: list[Any]
    if field.type == "Image":
        found = [{"mimeType": "image/png", "data": base64.b64encode(IMAGES["image/png"]).decode()}]
    elif field.message:
        found = complete(field.message, above)
    elif field.enum:
        found = [list(schema.table().enums[field.enum])[1]]
    elif field.resource_format:
        found = [field.resource_format[0].replace("{", "").replace("}", "")]
    else:
        found = [WORDS[name][0] if name in WORDS else limits[0] if limits else _ONE[field.type]]
    return [found] if field.repeated else found

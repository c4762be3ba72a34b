"""A page per format, and the conversion matrix: the samples are converted while the site is built."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from agent_eval_schema import EvalSetError, convert_eval_set, normalize_eval_set, validate_eval_set
from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.fix.fix import FIXED_FORMATS
from agent_eval_schema.formats.ces.golden import ACTIONS, OPTIONAL
from agent_eval_schema.formats.kept import KEPT_BY_CLASSES
from agent_eval_schema.formats.names import TARGETS
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import FORMATS, Format, find_format
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.columns import FORBIDDEN_COLUMN, UNKNOWN_COLUMN
from agent_eval_schema.schema import COLUMNS
from reference.markdown import CONTENTS, Pages, code, codes, entry, json_block, prose, shortened, table, toctree


def pages(root: Path) -> Pages:
    """The pages below reference/formats, their order, and the losses of each conversion."""
    samples = samples_of(root / "sample_data")
    made = {f"reference/formats/{form.name}.md": _page(form, samples.get(form.name)) for form in FORMATS}
    lost = losses_of(tuple(samples.items()))
    return {
        **made,
        "reference/formats/pages.inc": toctree((form.name for form in FORMATS), "maxdepth: 1"),
        "reference/generated/losses.inc": _losses(lost, samples),
        "reference/generated/platforms.inc": _platforms(),
        **{f"reference/generated/losses-{name}.inc": _losses_of_one(name, lost) for name in samples},
    }


def samples_of(folder: Path) -> dict[str, Path]:
    """A valid sample of each format: the first file whose rows are all valid."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in (".jsonl", ".json", ".csv") and "broken" not in path.name:
            report = validate_eval_set(str(path))
            if report.ok:
                found.setdefault(report.format, path)
    return {form.name: found[form.name] for form in FORMATS if form.name in found}


# ---------------------------------------------------------------------------------------------------------------------
# one format
def index() -> str:
    """The table of all formats."""
    rows = [
        (
            entry(form.name, code(form.name)),
            prose(form.summary),
            "yes",
            "yes" if form.writer is not None else "no",
            "yes" if form.name in FIXED_FORMATS else "no",
            " *or* ".join(codes(group) for group in form.signs.sure[:3]) + (" …" if len(form.signs.sure) > 3 else ""),
        )
        for form in FORMATS
    ]
    return "\n".join(
        [
            "# Formats\n",
            "The format is detected from the column names; `--format` and `format=` override detection. Messages name "
            "the columns of the input.\n",
            table(("Format", "Content", "Read", "Write", "Fix", "Known by the columns"), rows),
            "*Fix*: `validate --fix` can fix rows of the format.\n",
            "Request logs are read as [inference tables](../production/table-families.md), which are no format of "
            "evaluation rows.\n",
            "## What a platform keeps and demands\n",
            "What the class of a platform keeps of a row that it loads, recorded with its package. Other columns of a "
            "file that a conversion writes are a loss ([AE817](../rules/index.md#not-loaded)), and those of another "
            "kind of row, too ([AE198](../rules/index.md#dropped-field)).\n",
            table(("Format", "Package", "Recorded", "Rows", "Columns"), _kept()),
            CONTENTS,
        ]
    )


def _kept() -> list[tuple[str, ...]]:
    return [
        (
            *(code(name), code(k.release), k.recorded, kind or "all"),
            "every column" if columns is None else codes(columns),
            _demands(find_format(name)),
        )
        for name, k in KEPT_BY_CLASSES.items()
        for kind, columns in k.kept.items()
    ]


def _demands(form: Format) -> str:
    """What the platform rejects a whole file for."""
    _, having, lacking = form.one_kind
    kinds = [f"rows of one kind ({having} or {lacking})"] if having else []
    unknown = form.adapted(Finding(UNKNOWN_COLUMN, "", "column"))
    forbids = unknown is not None and unknown.rule is FORBIDDEN_COLUMN
    return ", ".join([*kinds, *["no other column"] * forbids])


def _platforms() -> str:
    """The formats whose originals are kept, for the page on other platforms to include."""
    found = sorted((f for f in FORMATS if f.fields and f.originals is None), key=lambda form: form.title.lower())
    rows = [(f.title, f"[{code(f.name)}](../../reference/formats/{f.name}.md)", f.also_read) for f in found]
    return table(("Platform", "Format", "Also read"), rows)


def _page(form: Format, sample: Path | None) -> str:
    parts = [f"# {form.name}\n", f"{prose(form.summary[0].upper() + form.summary[1:])}.\n"]
    parts += [f"Documented by its owner at <{form.page}>.\n"]
    parts += ["## Detection\n", _detection(form), "## Columns\n", _columns(form)]
    parts += ["## Conversations\n", f"{form.truth_of}\n"]
    if form.name == "ces-csv":
        rows = [
            (code(name), codes(action.required), codes(c for c in action.columns if c in OPTIONAL))
            for name, action in ACTIONS.items()
        ]
        parts += ["## Actions\n", table(("Action", "Required columns", "Optional columns"), rows)]
    if sample is not None:
        parts += _sample(form, sample)
    written = "lists what each conversion to and from this format loses"
    parts += ["## Conversion\n", f"The [conversion matrix](../conversion-matrix.md) {written}.\n"]
    return "\n".join(parts)


def _detection(form: Format) -> str:
    signs = form.signs
    lines = [f"- {codes(group)}" for group in signs.sure]
    text = "A table has this format if it has all columns of one of these groups:\n\n" + "\n".join(lines) + "\n"
    likely = [group for group in signs.likely if signs.known.issuperset(group)]
    if likely:
        text += "\nIf no format matches by such a group, one of these is sufficient:\n\n"
        text += "\n".join(f"- {codes(group)}" for group in likely) + "\n"
    if len(likely) < len(signs.likely):
        text += (
            "\nAn [inference table](../production/table-families.md) that is mistaken for a dataset has this "
            "format, too; validation reports it.\n"
        )
    if signs.never:
        text += f"\nA table with one of {codes(sorted(signs.never))} never has this format.\n"
    return text


def _columns(form: Format) -> str:
    if form.name == "databricks":
        return "Its columns are the [canonical columns](../schema/columns.md).\n"
    if form.system == "ces":
        return (
            "One row of the file is not one evaluation row: each turn of a golden conversation becomes one canonical "
            "row, see the example below.\n"
        )
    if form.name in ("traces", "otel", "search_traces"):
        exports = " [Exports of other shapes](../../how-to/mlflow/traces-from-opentelemetry.md) get this one."
        derived = "The canonical columns are [derived from the trace](../schema/traces.md) of each row."
        return f"{derived}{exports if form.name == 'otel' else ''}\n"
    origins = form.origins(())
    known = form.reads | (set(form.writer.columns) if form.writer else set()) | form.signs.known
    rows = []
    for column in COLUMNS:
        place = origins.get(column, column if column in known else None)
        if place is not None:
            rows.append((f"[{code(column)}](../schema/columns.md#{column})", code(place)))
    mapped = {place.partition(".")[0] for _, place in origins.items()} | set(COLUMNS)
    rest = sorted(form.reads - mapped)
    text = table(("Canonical column", "Column or path in this format"), rows) if rows else _NESTED
    if rest:
        text += f"\nAlso read, as parts or other names of these: {codes(rest)}.\n"
    if others := sorted(form.own_columns - mapped - form.reads):
        text += f"\nPassed through without an issue: {codes(others)}.\n"
    return text


_NESTED = "The rows are made of a nested document; the example below shows how its parts become canonical columns.\n"


def _sample(form: Format, sample: Path) -> list[str]:
    theirs = next(iter(native_rows(next(iter(open_source(str(sample)).batches())))))
    if form.system == "ces":
        ours = convert_eval_set(str(sample), "databricks").data.iloc[0].to_dict()
    else:
        ours = normalize_eval_set(str(sample), on_invalid="drop").iloc[0].to_dict()
    return [
        "## Example\n",
        f"The first row of `sample_data/{sample.name}`:\n",
        json_block(shortened(_present(theirs))),
        "The same row with canonical columns:\n",
        json_block(shortened(_present(ours))),
    ]


def _present(row: dict[str, Any]) -> dict[str, Any]:
    """The cells that have a value."""
    plain = pd.Series(row, dtype=object)
    return {
        str(k): _parsed(v) for k, v in plain.items() if v is not None and not (pd.api.types.is_scalar(v) and pd.isna(v))
    }


def _parsed(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return value


# ---------------------------------------------------------------------------------------------------------------------
# what conversions lose
Lost = dict[tuple[str, str], list[tuple[str, str, str]] | str]


@lru_cache(maxsize=1)
def losses_of(samples: tuple[tuple[str, Path], ...]) -> Lost:
    """Of each pair of formats the losses of the sample (code, path, message), or why it cannot be converted."""
    found: Lost = {}
    for source, path in samples:
        for target in TARGETS:
            try:
                losses = convert_eval_set(str(path), target).losses  # type: ignore[arg-type]
            except EvalSetError as error:
                found[source, target] = str(error)
                continue
            found[source, target] = [
                (row["code"], _pattern(row["path"] or row["column"] or "row"), row["message"])
                for row in losses.to_dict("records")
            ]
    return found


def _pattern(path: str) -> str:
    """A path without its numbers: what is lost in each entry of a list is one line."""
    head = path.split("[")[0]
    return head + ("[]" + "".join(path.partition("]")[2:]).split("[")[0] if "[" in path else "")


def _losses(lost: Lost, samples: dict[str, Path]) -> str:
    rows = [
        (f"[{code(source)}](#from-{source})", *(_cell(lost[source, target]) for target in TARGETS))
        for source in samples
    ]
    parts = [
        table(("From \\ to", *TARGETS), rows),
    ]
    for source in samples:
        parts += [f"(from-{source})=\n## From {source}\n", f"Sample: `sample_data/{samples[source].name}`.\n"]
        parts += [_lost_table(source, lost)]
    return "\n".join(parts)


def _losses_of_one(source: str, lost: Lost) -> str:
    """The losses of one format, for how-tos to include."""
    return _lost_table(source, lost)


def _lost_table(source: str, lost: Lost) -> str:
    rows = []
    for target in TARGETS:
        found = lost[source, target]
        if isinstance(found, str):
            rows.append((code(target), prose(found), ""))
            continue
        by_path = {(name, path) for name, path, _ in found}
        kinds = {
            name: codes(path for _, path in sorted(paths))
            for name, paths in groupby(sorted(by_path), key=lambda entry: entry[0])
        }
        kept = "; ".join(text for c, text in kinds.items() if c in _KEPT_IN_PART)
        rows.append((code(target), "; ".join(text for c, text in kinds.items() if c not in _KEPT_IN_PART), kept))
    return table(("To", "Not kept", "Changed"), rows)


_KEPT_IN_PART = ("AE805", "AE812", "AE815", "AE817")
"""The rules about values that the target has in another form."""


def _cell(found: list[tuple[str, str, str]] | str) -> str:
    if isinstance(found, str):
        return "*no*"
    count = len({path for _, path, _ in found})
    return str(count) if count else "**0**"

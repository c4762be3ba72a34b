"""Values that become text in a file whose cells are text.

MLflow reads the text of an output as text, whatever it looks like; Inspect does so with an input, promptfoo with every
variable. So in Parquet, CSV and Delta, a number, an object or a list is read back as its JSON text there, and writing
such a file emits a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import is_text
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.errors import warn_caller
from agent_eval_schema.formats.registry import detect, find_format
from agent_eval_schema.io.write import keeps_types


class ValuesAsTextWarning(UserWarning):
    """A file was written from which values that are not text are read back as their JSON text.

    See Also
    --------
    write_eval_set : Emits this warning for `outputs` of MLflow rows that are written to Parquet, CSV or Delta.

    Examples
    --------
    >>> import warnings
    >>> from agent_eval_schema import write_eval_set
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = write_eval_set([{"inputs": {"question": "6 * 7?"}, "outputs": 42}], "rows.parquet")
    >>> [w.category.__name__ for w in caught]
    ['ValuesAsTextWarning']
    """


class TextCounts:
    """The values per column that become text in a file of a format (None: by its columns), counted when written."""

    def __init__(self, schema: pa.Schema, path: str, format: str | None = None) -> None:
        form = format or detect(schema.names, schema.metadata).format
        writer = None if form is None or keeps_types(path) else find_format(form).writer
        self._names = [] if writer is None else [name for name in writer.texts if name in schema.names]
        self._only_text = path.lower().endswith(".csv")
        self._counts: Counter[str] = Counter()

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches."""
        for batch in batches:
            for name in [n for n in self._names if n in batch.schema.names]:
                self._counts[name] += self._count(batch.schema.field(name), batch.column(name))
            yield batch

    def _count(self, field: pa.Field, cells: pa.Array) -> int:
        if is_json_column(field):
            return int(pc.sum(pc.invert(pc.starts_with(cells, '"'))).as_py() or 0)
        return len(cells) - cells.null_count if self._only_text and not is_text(field.type) else 0

    def warn(self) -> None:
        """Emit a warning with the number of values of each column that are read back as text, if there are any."""
        if counts := ", ".join(f"{count:,} of `{name}`" for name, count in self._counts.items() if count):
            message = f"values that are not text ({counts}) are read back as their JSON text: write .jsonl to keep them"
            warn_caller(message, ValuesAsTextWarning)

"""A command that makes no DataFrame does not wait for pandas, whose import takes as long as the check of a small file.

pyarrow looks for pandas at its first array, whatever that is made of. If it was not found, pyarrow looks again as soon
as it has to make a DataFrame.
"""

import sys
from collections.abc import Sequence


class _NoPandas:
    """A finder of modules, before all others: there is no pandas."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def put_off_pandas() -> None:
    """Let pyarrow look for pandas now, and not find it. Only for a process that is ours."""
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.scalar(None)
    finally:
        sys.meta_path.remove(_NoPandas)


def find_pandas() -> None:
    """Let pyarrow look again, before it is handed what pandas made."""
    import pyarrow as pa

    pa.nulls(0).to_pandas()

"""What the name of a place means: a file and its kind, the files of a folder or glob, a URL, a table of a catalog.

rows.jsonl.gz                  the kind is that of the file extension, before that of the compression
evals/   evals/*.jsonl         their files in the order of their names, which are of one kind
s3://bucket/rows.jsonl         what begins with a scheme; of one letter, it is a drive
main.evals.rows                three names, if there is no such file
"""

import glob
import os
import re
import stat
from collections import Counter

from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError
from agent_eval_schema.io.streams import COMPRESSIONS, STDIN

KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}

ALONE = (".xlsx", ".yaml", ".yml", ".zip")
"""Of files that are read, but are no part of a folder of rows."""

_URL = re.compile(r"[A-Za-z][\w+.:-]+://")
"""How a URL begins; one letter is a drive. Without `://` a name is that of a file, a folder or a version of a table."""

_GLOB = re.compile(r"[*?]|\[[^\]]+\]")
_WEB = ("http://", "https://")


def real_path(path: str) -> str:
    """The absolute path without links. Raises EvalSetError for a relative one if the working directory is gone."""
    try:
        return os.path.realpath(path)
    except FileNotFoundError as error:
        raise EvalSetError(f"{path}: no such file: the working directory does not exist any more") from error


def is_url(name: str) -> bool:
    return _URL.match(name) is not None


def is_pipe(name: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(name).st_mode)
    except (OSError, ValueError):  # no such file; a NUL in its name
        return False


def is_glob(name: str) -> bool:
    """Whether a name is a glob: no file is called so. The `?` of a web address begins its query."""
    if name.startswith(_WEB):
        return False
    return _GLOB.search(name) is not None and (is_url(name) or not os.path.lexists(name))


def ending_of(name: str) -> str:
    """The file extension, in lower case and without that of a compression. What is written to stdout is JSON Lines."""
    if name == STDIN:
        return ".jsonl"
    unpacked = _path_in(name).lower().rstrip("/").removesuffix(compression_of(name))
    return os.path.splitext(unpacked)[1]


def compression_of(name: str) -> str:
    """The file extension of the compression, "" without one."""
    plain = _path_in(name).lower()
    return next((c for c in COMPRESSIONS if plain.endswith(c)), "")


def _path_in(name: str) -> str:
    return name.partition("?")[0] if name.startswith(_WEB) else name


def part_of(name: str) -> tuple[str, str]:
    """The file that a name means, and the part of it: the sheet of `a.xlsx#Sheet`, the list of `a.json#key` or
    `a.yaml#key`; "" for the whole file."""
    found = None if "\0" in name or os.path.exists(name) else _PART_OF_FILE.fullmatch(name)
    return (found[1], found[2]) if found else (name, "")


def with_part(path: str, name: str | None) -> str:
    """The same part of another file: `b.xlsx#Sheet` for `a.xlsx#Sheet`."""
    part = part_of(name or "")[1]
    return f"{path}#{part}" if part else path


_PART_OF_FILE = re.compile(r"(.+?\.(?:xlsx|json|ya?ml))#(.+)", re.IGNORECASE | re.DOTALL)


def kind_of(name: str) -> str | None:
    return KINDS.get(ending_of(name))


_PART = r"(?:\w[\w-]*|`[^`]+`)"
_TABLE = re.compile(rf"{_PART}(?:\.{_PART}){{2}}")


def is_catalog_table(name: str) -> bool:
    """Whether a name is that of a table `catalog.schema.table`, and of no file."""
    is_file = os.path.lexists(name) or compression_of(name) or kind_of(name) or ending_of(name) in (".zip", ".yaml")
    return _TABLE.fullmatch(name) is not None and not is_file


# --- several files
def files_of(path: str) -> list[str]:
    """The files of a table: of a folder those with rows, of a glob what it matches, in the order of their names; or the
    file itself.

    Of the folders in a folder only `column=value` are looked into: a folder of anything is not a table because there
    are rows somewhere below. Names that begin with _ or . are skipped, and TEST_CONFIG; of a glob too the JOURNALS.
    """
    if os.path.isdir(path):
        files = []
        for folder, folders, names in os.walk(path):
            folders[:] = [name for name in folders if "=" in name and _counts(name)]
            files += [os.path.join(folder, name) for name in names if _counts(name) and kind_of(name)]
        return sorted(files)
    if is_glob(path) and not is_url(path):
        files = [file for file in glob.glob(path, recursive=True) if not os.path.isdir(file)]
        return sorted(file for file in files if path.endswith(JOURNALS) or not file.endswith(JOURNALS))
    return [path]


def _counts(name: str) -> bool:
    return name[:1] not in ("_", ".") and name != TEST_CONFIG and not name.endswith(JOURNALS)


JOURNALS = ".review.jsonl"
"""The file extension of the journals of a review, which are beside its rows."""

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

_RECORD = re.compile(rf"({UUID})(?:\.json|_samples\.jsonl)")


def record_files(path: str) -> tuple[()] | tuple[str, str]:
    """The aggregate record of every-eval-ever and its samples, if the name of the path is that of one of them."""
    match = _RECORD.fullmatch(os.path.basename(path))
    stem = match and os.path.join(os.path.dirname(path), match[1])
    return (f"{stem}.json", f"{stem}_samples.jsonl") if stem else ()


TEST_CONFIG = "test_config.json"
"""The criteria of google-adk for the evalsets beside it."""


def is_part(path: str) -> bool:
    """Whether a file of this path, seen from a folder, is one of the files of that folder."""
    *folders, name = path.split("/")
    return all("=" in n and _counts(n) for n in folders) and _counts(name) and kind_of(name) is not None


def root_of(path: str) -> str:
    """The folder from which the files of a folder or glob are named."""
    if os.path.isdir(path):
        return path
    fixed: str = _GLOB.split(path, maxsplit=1)[0] if is_glob(path) else path
    return os.path.dirname(fixed)


def require_one_kind(path: str, files: list[str]) -> str:
    """The kind of the files of a folder or glob. Raises EvalSetError if there are none, or files of several kinds."""
    if not files and os.path.isdir(path):
        raise EvalSetError(
            f"{path}: is a directory without files of rows: expected files named {', '.join(KINDS)} "
            "(also compressed), all of one kind"
        )
    if not files:
        raise EvalSetNotFoundError(f"{path}: no file matches")
    for file in files:
        if kind_of(file) is None:
            raise EvalSetError(f"{file}: unknown file extension: expected one of {', '.join((*KINDS, *ALONE))}")
    counts = Counter(KINDS[ending_of(file)] for file in files)
    if len(counts) > 1:
        kinds = " and ".join(f"{n:,} {kind}" for kind, n in counts.items())
        some = os.path.join(path if os.path.isdir(path) else root_of(path), f"*{ending_of(files[0])}")
        raise EvalSetError(f"{path}: expected files of one kind, got {kinds}: choose one with a glob, such as {some}")
    return next(iter(counts))

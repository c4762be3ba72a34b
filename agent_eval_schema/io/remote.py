"""URLs ⇄ local copies, through fsspec: what the user named is fetched, nothing that data names.

s3://bucket/rows.jsonl           the file
s3://bucket/evals/*.jsonl        the files that match
s3://bucket/evals                the files of rows in the folder; of a Delta folder, all files
"""

import http
import os
import shutil
import time
from typing import Any
from urllib.parse import urlsplit

from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError, import_extra
from agent_eval_schema.io.places import is_glob, is_part
from agent_eval_schema.io.streams import CHUNK
from agent_eval_schema.text.privacy import first_line
from agent_eval_schema.text.visible import without_secrets


def fetch_url(url: str, path: str) -> None:
    """Copy a file to `path`, or the files of a folder or glob into a folder of that name. Raises EvalSetError if they
    cannot be read, or the package that reads them is not installed."""
    store, place = _store(url)
    protocols = (store.protocol,) if isinstance(store.protocol, str) else store.protocol
    try:
        if is_glob(url):
            files = {name: name.rpartition("/")[2] for name in sorted(store.glob(place)) if not store.isdir(name)}
            if len({*files.values()}) < len(files):
                different = "expected files of different names: two of one name are in different folders"
                raise EvalSetError(f"{without_secrets(url)}: {different}")
        elif "http" in protocols or not store.isdir(place):  # a missing name is opened, for the driver's own error
            _copy(store, place, path)
            return
        else:
            files = _in_folder(store, place)
        if not files:
            raise EvalSetNotFoundError(f"{without_secrets(url)}: no file matches")
        for name, part in files.items():
            local = os.path.join(path, *part.split("/"))
            os.makedirs(os.path.dirname(local), exist_ok=True)
            _copy(store, name, local)
    except EvalSetError:
        raise
    except Exception as error:  # drivers raise exceptions of any type
        raise _failed(url, "read", error) from error


def _in_folder(store: Any, place: str) -> dict[str, str]:
    """The files of a folder, each with its path in it."""
    start = len(store._strip_protocol(place).rstrip("/")) + 1
    parts = {name: name[start:] for name in sorted(store.find(place))}
    if any(part.startswith("_delta_log/") for part in parts.values()):
        return {name: part for name, part in parts.items() if ".." not in part.split("/")}
    return {name: part for name, part in parts.items() if is_part(part)}


MOST_SECONDS, MOST_MEGABYTES = 3_600, 100_000
"""What a download may take. AGENT_EVAL_SCHEMA_URL_SECONDS and AGENT_EVAL_SCHEMA_URL_MB set other limits."""

STALLED = 60
"""Seconds within which a server sends something."""


def _copy(store: Any, name: str, path: str) -> None:
    seconds, most = _limit("SECONDS", MOST_SECONDS), _limit("MB", MOST_MEGABYTES) << 20
    started, size = time.monotonic(), 0
    with store.open(name, "rb") as remote, open(path, "wb") as local:
        while chunk := remote.read(CHUNK):
            local.write(chunk)
            size += len(chunk)
            if time.monotonic() - started > seconds:
                raise _Refused(f"expected an answer within {seconds:,} s: set AGENT_EVAL_SCHEMA_URL_SECONDS to more")
            if size > most:
                raise _Refused(f"expected at most {most >> 20:,} MB, got more: set AGENT_EVAL_SCHEMA_URL_MB to more")


def _limit(name: str, usual: int) -> int:
    text = os.environ.get(f"AGENT_EVAL_SCHEMA_URL_{name}", "")
    return int(text) if text.isascii() and text.isdigit() else usual


class _Refused(Exception):
    """A download that took too much: its message is the whole reason."""


def send_file(path: str, url: str) -> None:
    """Copy a local file to a URL. Raises EvalSetError if it cannot be written."""
    store, place = _store(url)
    try:
        with open(path, "rb") as local, store.open(place, "wb") as remote:
            shutil.copyfileobj(local, remote, CHUNK)
    except Exception as error:  # drivers raise exceptions of any type
        raise _failed(url, "written", error) from error


def require_store(url: str) -> None:
    """Raise EvalSetError now, rather than after the work, if there is no driver for a URL."""
    _store(url, "written")


def _store(url: str, done: str = "read") -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    fsspec = import_extra("fsspec", "remote", "fsspec (and the driver of the store: gcsfs, s3fs, adlfs)")
    try:
        options = _http_options() if url.lower().startswith("http") else {}
        store, place = fsspec.core.url_to_fs(url, **options)
    except Exception as error:  # an unknown scheme, a driver that is not installed
        raise _failed(url, done, error) from error
    return store, place


def _http_options() -> dict[str, Any]:
    """A server that sends nothing does not hold up a command; how long all of an answer takes, `_copy` limits."""
    aiohttp = import_extra("aiohttp", "remote", "fsspec[http]")
    return {"client_kwargs": {"timeout": aiohttp.ClientTimeout(total=None, sock_connect=STALLED, sock_read=STALLED)}}


def _status(error: BaseException | None) -> int | None:
    """The status of the answer that caused an error: a driver takes any of them for a file that does not exist."""
    while error is not None:
        if isinstance(status := getattr(error, "status", None), int):
            return status
        error = error.__cause__ or error.__context__
    return None


_ADVICE = {401: "log in, or set the credentials of its driver", 403: "ask for access", 404: "check the address"}


def _failed(url: str, done: str, error: Exception) -> EvalSetError:
    """The error for a URL that cannot be read or written. The words of its driver may quote the URL or a part of it."""
    parts = urlsplit(url)
    words = first_line(error) if isinstance(error, _Refused) else f"{type(error).__name__}: {first_line(error)}"
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        words = f"the server sent nothing for {STALLED} s: try again later"
    elif (status := _status(error)) is not None:
        reason = next((s.phrase for s in http.HTTPStatus if s == status), "an error")
        words = f"the server answers {status} ({reason}): {_ADVICE.get(status, 'try again later')}"
    for secret in (parts.netloc.rpartition("@")[0], parts.query):
        words = words.replace(secret, "***") if secret else words
    return EvalSetError(without_secrets(f"{url}: cannot be {done}: {words}"))

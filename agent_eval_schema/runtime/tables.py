"""The data that comes with the package, in files beside the modules that read them."""

from pkgutil import get_data  # importing importlib.resources takes longer than decoding the tables of most commands
from typing import TypeVar

T = TypeVar("T")


def packaged(package: str | None, name: str, kind: type[T]) -> T:
    """The table in a file of a package, checked by its type."""
    import msgspec  # the help of a command needs no decoder

    return msgspec.json.decode(file_of_package(package, name), type=kind)


def file_of_package(package: str | None, name: str) -> bytes:
    """The content of a file of a package."""
    return get_data(package or "", name) or b""

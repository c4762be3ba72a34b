"""A Reading: what a call asks of its data. It lives with the data, so that no step asks for something else, and the
advice of every step repeats it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from agent_eval_schema.errors import EvalSetError


class Reading(Struct, frozen=True, omit_defaults=True):
    """How the data of a call are read and judged: the options that every function on evaluation datasets may have."""

    columns: Mapping[str, str] = {}
    format: str = "auto"
    outputs: str = "auto"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    show_values: bool = True
    max_cell_bytes: int | None = None

    def changed(self) -> dict[str, Any]:
        """The options that are not the defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(Reading(), name)}

    def words(self) -> dict[str, Any]:
        """The options that advice repeats, under the names of functions and of commands."""
        return {**self.changed(), **({} if self.show_values else {"no_values": True})}

    def require_agreement(self, other: "Reading") -> None:
        """Raise EvalSetError if another call on the same data asks for something else."""
        for name, value in other.changed().items():
            if (own := getattr(self, name)) != value:
                raise EvalSetError(
                    f"{name}: the report was made with {name}={own!r}, this call asks for {value!r}: "
                    "leave the option out, or pass the data instead of the report"
                )

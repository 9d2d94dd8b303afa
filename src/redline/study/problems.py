"""Bad input in sentences: which key, which value, what is allowed and the nearest valid name."""

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from pydantic import ValidationError

from redline.config.words import nearest, shown
from redline.files import UserError


class Problems:
    """Collects what is wrong with one source, so that a person sees all of it at once."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines: list[str] = []

    @contextmanager
    def at(self, key: str) -> Generator[None]:
        """Note a `UserError` raised inside as a problem of `key`, and go on."""
        try:
            yield
        except UserError as error:
            self.note(key, str(error))

    def note(self, key: str, message: str) -> None:
        """Add one problem."""
        self.lines.append(f"{self.source}: {key}: {message}")

    def raise_if_any(self) -> None:
        """Raise everything noted as one `UserError`, a problem a line."""
        if self.lines:
            raise UserError("\n".join(self.lines))


def unknown(name: str, allowed: Iterable[str]) -> UserError:
    """The error for a name that is not allowed, with those that are and the nearest of them."""
    names = list(allowed)
    return UserError(f"no such key (allowed: {', '.join(names)}){nearest(name, names)}")


def known(name: str, allowed: Iterable[str]) -> None:
    """Pass a name that is allowed.

    Raises:
        UserError: it is not.
    """
    names = list(allowed)
    if name not in names:
        raise unknown(name, names)


def sentence(error: ValidationError, *, depth: int) -> str:
    """What pydantic found, without the `depth` outer parts of each location."""
    clauses: list[str] = []
    for detail in error.errors():
        key = ".".join(map(str, detail["loc"][depth:]))
        message, value = detail["msg"], detail["input"]
        match detail["type"]:
            case "missing":
                clauses.append(f"{key} is missing")
            case "value_error":
                clauses.append(message.removeprefix("Value error, "))
            case _:
                where = f"{key} = " if key else ""
                choices = re.findall(r"'([^']*)'", message)
                rule = message.replace("Input should", "must", 1)
                clauses.append(f"{where}{shown(value)} {rule}{nearest(str(value), choices)}")
    return "; ".join(clauses)

"""Fields of forms that are read as they are meant: a name in whatever case, a yes in whatever language."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator

T = TypeVar("T")
_YES = "yes y true ja oui sí si sì sim да 是 はい 예 네 ใช่ نعم"
_NO = "no n false nein non não нет 否 不 不是 いいえ 아니요 ไม่ ไม่ใช่ لا"
_TRUTHS: dict[str, bool] = {**dict.fromkeys(_NO.split(), False), **dict.fromkeys(_YES.split(), True)}
_AROUND = " \t\n.!\"'*`。！"


def _truth(value: T) -> T | bool:
    return _TRUTHS.get(value.strip(_AROUND).casefold(), value) if isinstance(value, str) else value


Truth = Annotated[bool, BeforeValidator(_truth)]
"""True or false, or a word for it."""


def one_of(options: Sequence[str | int]) -> Any:
    """Return the type of a field that holds one of these names or numbers, in whatever case."""
    meant = {str(option).casefold(): option for option in options}

    def read(value: T) -> T | str | int:
        return meant.get(str(value).strip(_AROUND).casefold(), value)

    return Annotated[Literal[tuple(options)], BeforeValidator(read)]

"""The shipped towns, and those in files of the user's."""

from pathlib import Path

from pydantic import ValidationError

from reflective_agents.state.errors import Misuse, problems_of, reason_of
from reflective_agents.state.settings.town import Town

_SHIPPED = Path(__file__).parent / "towns"
LARGEST = 1_000_000
"""Bytes that the file of a town may have."""


def shipped() -> list[str]:
    """List the names of the shipped towns."""
    return sorted(file.stem for file in _SHIPPED.glob("*.json"))


def load_town(setting: str | Town) -> Town:
    """Load the town that a setting names; reads a file.

    Args:
        setting: The name of a shipped town, the path of a JSON file, or a town itself.

    Raises:
        Misuse: if there is no such file, or it holds no town.
    """
    if isinstance(setting, Town):
        return setting
    file = _SHIPPED / f"{setting}.json" if setting in shipped() else Path(setting)
    try:
        if file.stat().st_size > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        return Town.model_validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise Misuse(f"town: {setting}: {_reason(error)}; the shipped ones are {', '.join(shipped())}") from error


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ValidationError):
        return problems_of(error, "the file")[0]
    return reason_of(error)

"""Variables that nothing reads are told, with what was probably meant."""

import re
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.cli.environment import OTHERS, PROCESS, load_env

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("REFLECT_MAX_MODEL_CAL", "did you mean REFLECT_MAX_MODEL_CALLS?"),
        ("REFLECT_MAX_EXPANSION", "did you mean REFLECT_MAX_EXPANSIONS?"),
        ("REFLECT_XYZZY", "reflect run STRATEGY --help lists the settings"),
    ],
)
def test_an_unknown_variable_is_told(
    name: str, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "3")
    load_env()
    warning = capsys.readouterr().err
    assert warning.startswith(f"warning: nothing reads {name}")
    assert hint in warning
    assert warning.count("\n") == 1


def test_a_typo_in_the_file_is_told_and_other_programs_variables_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    Path(".env").write_text("OPENAI_API_KY=x\nPORT=3\nEDITOR=vi\nREFLECT_MAX_MODEL_CALLS=3\n", "utf-8")
    load_env()
    assert capsys.readouterr().err == "warning: nothing reads OPENAI_API_KY; did you mean OPENAI_API_KEY?\n"


def test_every_variable_that_the_code_reads_is_known() -> None:
    folders = [ROOT / name for name in ("graphs", "nodes", "state", "reflective_agents")]
    read = {
        name
        for folder in folders
        for path in folder.rglob("*.py")
        for name in re.findall(r"environ\S*?[\[(]\s*\"([A-Z_]+)\"", path.read_text("utf-8"))
    }
    ours = {name.removeprefix("REFLECT_") for name in read if name.startswith("REFLECT_")}
    assert ours
    assert ours - PROCESS - {"EMBEDDINGS"} == set()
    written = re.findall(r"^# ([A-Z][A-Z_]+)=", (ROOT / ".env.example").read_text("utf-8"), re.MULTILINE)
    assert {name for name in written if not name.startswith("REFLECT_")} <= OTHERS


def test_bare_command_prints_the_help_and_the_version_is_told(reflect: Any) -> None:
    warning = reflect()
    assert (warning.code, warning.err) == (0, "")
    assert "strategies" in warning.out
    version = reflect("--version")
    assert version.code == 0
    assert re.fullmatch(r"reflect \d+\.\d+\.\d+\n", version.out)

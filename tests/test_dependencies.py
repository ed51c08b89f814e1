"""What each dependency may reach is known."""

import re
import tomllib

from tests.support.needs import ROOT


def test_every_dependency_is_listed_with_what_it_may_reach() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    names = {re.split(r"[^\w-]", each, maxsplit=1)[0] for each in required} - {project["name"]}
    _, _, after = (ROOT / "docs/security.md").read_text().partition("## What each dependency may reach")
    rows = [row.strip("| ").split(" | ") for row in after.partition("\n## ")[0].splitlines() if row.startswith("| ")]
    listed = [row[0] for row in rows[1:]]
    assert sorted(listed) == sorted(names)
    assert {len(row) for row in rows} == {5}

"""Refuses an editable install of a checkout without symbolic links, which would have no `reflective_agents.graphs`."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LinksHook(BuildHookInterface[Any]):
    """Looks at the links before a wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise an error that says what to do, if the wheel is an editable one and the links are missing."""
        package = Path(self.root, ".editable", "reflective_agents")
        if version == "editable" and not (package / "graphs").is_dir():
            raise RuntimeError(
                "an editable install needs the symbolic links of this checkout, which git has written as text files: "
                "make them with `git config core.symlinks true && git checkout -- .editable reflective_agents` "
                "(on Windows in developer mode, after deleting those files), or install without --editable"
            )

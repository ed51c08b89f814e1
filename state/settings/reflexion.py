"""The settings of `graphs.reflexion`."""

from typing import ClassVar

from pydantic import Field

from reflective_agents.state.families import SourcedContext, ToolsContext
from reflective_agents.state.verifiers import VerifiedContext


class ReflexionContext(ToolsContext, SourcedContext, VerifiedContext):
    """Settings of `graphs.reflexion`."""

    does: ClassVar[str] = "Answers, searches for what is missing, and revises."
    use_when: ClassVar[str] = "the answer needs evidence, at a modest price"

    max_rounds: int = Field(default=3, ge=1, le=100, description="Most revisions of the first answer.")
    max_queries: int = Field(default=3, ge=1, le=10, description="Most new search queries run in one round.")

"""The offline model: extractive, deterministic, without network or key. All that others need of it stands here."""

from reflective_agents.offline.model import OfflineChatModel
from reflective_agents.offline.writing import NOTE

__all__ = ["NOTE", "OfflineChatModel"]

"""What a node leaves that does not end, because its run is cancelled, pauses for a person, or meets an error.

LangGraph drops the update of such a node and runs it anew when the run is resumed. What it has spent is spent, though,
and a summary is made once.
"""

import asyncio

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.runtime import ExecutionInfo

from reflective_agents.state.json_types import JsonObject

_COMMAND = "00000000-0000-0000-0000-000000000000"
"""The task to which LangGraph books `Command(update=...)`: a run that is resumed applies this first."""


async def keep_for_resumption(update: JsonObject, execution: ExecutionInfo | None) -> None:
    """Store what the node, when it is run anew, finds in the state.

    Args:
        update: Values of `DeltaChannel`s.
        execution: The execution of the node. Without a thread there is nothing to resume.
    """
    saver: BaseCheckpointSaver[str] | None = get_config().get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER)
    if not update or not saver or not execution or not execution.thread_id:
        return
    checkpoint: RunnableConfig = {
        "configurable": {
            "thread_id": str(execution.thread_id),
            "checkpoint_ns": execution.checkpoint_ns.rpartition("|")[0],
            "checkpoint_id": execution.checkpoint_id,
        }
    }
    # A cancelled node may be cancelled again.
    await asyncio.shield(_write(saver, checkpoint, update))


async def _write(saver: BaseCheckpointSaver[str], checkpoint: RunnableConfig, update: JsonObject) -> None:
    """Add to what is written to a checkpoint by commands."""
    stored = await saver.aget_tuple(checkpoint)
    pending = (stored.pending_writes if stored else None) or []
    earlier = [(name, value) for task, name, value in pending if task == _COMMAND and name not in WRITES_IDX_MAP]
    # Savers tell them apart by their position.
    await saver.aput_writes(checkpoint, [*earlier, *update.items()], _COMMAND)

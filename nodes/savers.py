"""The checkpointers of synchronous callers, for what their nodes run in an event loop.

A caller of `invoke` may have a checkpointer without the asynchronous half, such as `SqliteSaver`, and nodes are
coroutines that may run other graphs, which keep their steps there, too.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.constants import CONFIG_KEY_CHECKPOINTER


def awaitable(config: RunnableConfig) -> RunnableConfig:
    """Return the config of a node with a checkpointer that can be awaited, if it has one."""
    configurable = config.get("configurable", {})
    saver = configurable.get(CONFIG_KEY_CHECKPOINTER)
    if not isinstance(saver, BaseCheckpointSaver) or isinstance(saver, _InThreads):
        return config
    return {**config, "configurable": {**configurable, CONFIG_KEY_CHECKPOINTER: _InThreads(saver)}}


class _InThreads(BaseCheckpointSaver[Any]):
    """A checkpointer whose asynchronous half is the synchronous one of another, in threads."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._saver.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[Any]:
        return _InThreads(self._saver.with_allowlist(extra_allowlist))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._saver.get_tuple(config)

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        return self._saver.list(config, **options)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._saver.put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        # Checkpointers of earlier versions take no path.
        self._saver.put_writes(config, writes, task_id, *([task_path] if task_path else []))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._saver.get_delta_channel_history(config=config, channels=channels)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for found in await asyncio.to_thread(lambda: [*self.list(config, **options)]):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await asyncio.to_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))

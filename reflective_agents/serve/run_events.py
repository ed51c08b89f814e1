"""The events of runs in Redis, in two round trips each instead of four, and as they were sent.

Aegra loses what is sent between a listener's look at what is kept and its subscription, and while its connection is
lost, and it decodes escapes: where an answer shows \\u00e9, its listeners would read é.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

from aegra_api.core import sse
from aegra_api.core.redis_manager import redis_manager
from aegra_api.services import redis_broker
from aegra_api.utils import generate_event_id

_WAKE = 0.5
"""Seconds after which a listener looks whether a run is over whose end could not be sent."""


class Events(redis_broker.RedisRunBroker):  # type: ignore[misc]  # Aegra has no types here
    """The events of one run."""

    _sent = ""

    async def _cache_event(self, message: str) -> None:
        """Keep an event for those who come later, and send it to those who listen."""
        async with _client().pipeline(transaction=True) as pipe:
            pipe.rpush(self._cache_key, message)
            pipe.ltrim(self._cache_key, -redis_broker._REPLAY_MAX_EVENTS, -1)
            pipe.expire(self._cache_key, redis_broker._REPLAY_TTL_SECONDS)
            pipe.incr(self._counter_key)
            pipe.expire(self._counter_key, redis_broker._REPLAY_TTL_SECONDS)
            pipe.publish(self._channel, message)
            await pipe.execute()
        self._sent = message

    async def _publish_event(self, message: str) -> None:
        """Send an event, unless it was sent when it was kept."""
        if message is not self._sent:
            await super()._publish_event(message)

    async def _subscribe_and_listen(self) -> AsyncIterator[tuple[str, Any]]:
        """Yield the events until the end, from the first that is kept: listeners leave out those that they have."""
        async with _client().pubsub() as pubsub:
            await pubsub.subscribe(self._channel)
            heard = set[str]()
            async for event_id, payload in self._kept_and_sent(pubsub):
                # A Redis that kept nothing over a restart counts from 1 again, up to the end.
                if event_id not in heard:
                    heard.add(event_id)
                    yield event_id, payload
                if payload[0] == "end":
                    self._finished = True
                    return

    async def _kept_and_sent(self, pubsub: Any) -> AsyncIterator[tuple[str, Any]]:
        while True:
            message = await pubsub.get_message(timeout=_WAKE)
            if message is not None and message["type"] == "message":
                sent = json.loads(message["data"])
                yield sent["event_id"], redis_broker._deserialize_payload(sent["payload"])
                continue
            is_over = message is None and self._finished
            # A subscription is confirmed, or anew after a lost connection: before it nothing was heard. And the last
            # events of a run that is over may have come in this moment.
            if message is not None or is_over:
                for event in await self.replay(None):
                    yield event
            if is_over:
                return


class EventsOfRuns(redis_broker.RedisBrokerManager):  # type: ignore[misc]
    """The events of all runs."""

    def _make_broker(self, run_id: str) -> Events:
        made = super()._make_broker(run_id)
        return Events(run_id, made._channel, made._cache_key, made._counter_key)

    async def allocate_event_id(self, run_id: str) -> str:
        """Return the id of the next event of a run."""
        key = f"{self._counter_prefix}{run_id}"
        try:
            async with _client().pipeline(transaction=False) as pipe:
                pipe.incr(key)
                pipe.expire(key, redis_broker._REPLAY_TTL_SECONDS)
                number, _ = await pipe.execute()
        except redis_broker.RedisError:
            return str(await super().allocate_event_id(run_id))
        return str(generate_event_id(run_id, int(number)))


def _client() -> Any:
    return redis_manager.get_client()


def configure() -> None:
    """Let Aegra send events so, before it has begun to."""
    redis_broker.RedisBrokerManager = EventsOfRuns
    sse._decode_literal_unicode_escapes = str  # which returns a text as it is

"""No search at all: the requests of 10 expansions of 5 candidates through OpenAI's own client."""

import asyncio

from openai import AsyncOpenAI


class Search:
    """Ten times one request, and then five at once; there is only one setting, the empty one."""

    def __init__(self, setting: str) -> None:
        self._client, self._runner = AsyncOpenAI(), asyncio.Runner()

    def run(self, question: str) -> None:
        """Send everything."""
        self.calls = 0
        self._runner.run(self._send(question))

    def root(self) -> None:
        """Return None: there is no tree."""

    async def _send(self, question: str) -> None:
        for step in range(10):
            await self._ask(f"{question} Step {step}?")
            await asyncio.gather(*(self._ask(f"{question} Rate step {step}.{i}.") for i in range(5)))

    async def _ask(self, text: str) -> None:
        self.calls += 1
        await self._client.chat.completions.create(model="bench", messages=[{"role": "user", "content": text}])

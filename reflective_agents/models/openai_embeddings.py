"""OpenAI's embeddings, whose replies are read beside the event loop, vector by vector: OpenAI's client takes a second
for 500,000 numbers."""

import asyncio
import base64
import json
import re
from typing import Any

import numpy as np
from langchain_openai import OpenAIEmbeddings

LONGEST = 1_000_000
"""Most bytes of a vector in words."""
# An object without another one in it.
_OBJECT = re.compile(rb"\{[^{}]{0,%d}\}" % LONGEST)


class CompatibleOpenAIEmbeddings(OpenAIEmbeddings):
    """OpenAIEmbeddings that take from a reply nothing but its vectors."""

    async def aembed_documents(self, texts: list[str], chunk_size: int | None = None, **kwargs: Any) -> list[Any]:
        """Make vectors of texts by one request.

        Returns:
            What the server sends as vectors, in its order.

        Raises:
            ValueError: if it sends none that can be read.
        """
        reply = await self.async_client.with_raw_response.create(input=texts, **self._invocation_params, **kwargs)
        return await asyncio.to_thread(_vectors, reply.http_response.content, len(texts))


def _vectors(body: bytes, count: int) -> list[Any]:
    """Return the vectors of a reply, of which one too many tells that it is not what was asked for."""
    vectors: list[Any] = []
    for each in _OBJECT.finditer(body):
        read = json.loads(each[0])
        if "embedding" in read:
            vectors.append(_numbers(read["embedding"]))
        if len(vectors) > count:
            break
    return vectors


def _numbers(vector: Any) -> Any:
    if isinstance(vector, str):
        return np.frombuffer(base64.b64decode(vector), "<f4")
    return np.asarray(vector, np.float64)

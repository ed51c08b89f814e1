"""OpenAI's HTTP client over aiohttp: it takes less for each of many calls, and warns if nobody closes it."""

from typing import Any

import aiohttp
import httpx2
from openai import DefaultAioHttpClient

_UNREACHED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class AioHttpClient(DefaultAioHttpClient):
    """The client of OpenAI, which takes a connection that breaks off for one that took too long to be made.

    A call on it may have been answered and paid for, so the difference counts.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request.

        Raises:
            httpx2.HTTPError: if there is no response: ReadError if the connection breaks off.
        """
        try:
            return await super().send(request, **options)
        except httpx2.ConnectTimeout as error:
            if isinstance(error.__cause__, _UNREACHED):
                raise
            raise httpx2.ReadError(str(error), request=request) from error.__cause__

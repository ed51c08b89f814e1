"""OpenAI's HTTP client over aiohttp: it takes less for each of many calls, and warns if nobody closes it."""

from typing import Any

import aiohttp
import httpx2
from openai import DefaultAioHttpClient


class AioHttpClient(DefaultAioHttpClient):
    """The client of OpenAI, which takes whatever goes wrong with a connection for one that took too long to be made.

    A call on a connection that breaks off may have been answered and paid for, so the difference counts.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request.

        Raises:
            httpx2.HTTPError: if there is no response: ConnectError if the server cannot be reached, ReadError if the
                connection breaks off.
        """
        try:
            return await super().send(request, **options)
        except httpx2.ConnectTimeout as error:
            cause = error.__cause__
            if isinstance(cause, aiohttp.ConnectionTimeoutError):
                raise
            kind = httpx2.ConnectError if isinstance(cause, aiohttp.ClientConnectorError) else httpx2.ReadError
            raise kind(str(error), request=request) from cause

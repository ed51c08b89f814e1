"""The certificates that are trusted where the web is searched."""

import asyncio
import ssl
from functools import cache

import httpx


async def certificates() -> ssl.SSLContext:
    """Load the certificates of httpx, SSL_CERT_FILE or SSL_CERT_DIR, once: that takes 20 ms of disk and CPU."""
    return await asyncio.to_thread(_read)


@cache
def _read() -> ssl.SSLContext:
    return httpx.create_ssl_context()

"""One headless browser for the tests of the live page."""

from tests.viewer.conftest import browser, chromium

__all__ = ["browser", "chromium"]

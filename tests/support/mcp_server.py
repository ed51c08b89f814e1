"""A small MCP server over stdio, for the tests of tools that come from elsewhere."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("arithmetic", log_level="ERROR")


@server.tool()
def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


@server.tool()
def divide(a: float, b: float) -> float:
    """Divide one number by another."""
    raise ValueError("the division is out of order")


if __name__ == "__main__":
    server.run("stdio")

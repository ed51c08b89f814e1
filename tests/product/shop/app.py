"""The product's routes, synchronous and asynchronous ones, over one database."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from reflective_agents.state.answer_schema import parsed
from shop.agents import Customer, Opinion, advisor, desk, explorer


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the database."""
    async with AsyncPostgresSaver.from_conn_string(os.environ["SHOP_DATABASE"]) as saver:
        await saver.setup()
        app.state.desk, app.state.explorer = desk(saver), explorer(saver)
        yield


app = FastAPI(lifespan=lifespan)


def on(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def request(question: str) -> Any:
    return {"messages": [("user", question)]}


def reply(result: Any) -> dict[str, Any]:
    strategies = [message.response_metadata.get("strategy") for message in result["messages"]]
    return {"text": result["messages"][-1].text, "by": [name for name in strategies if name]}


@app.post("/desk/{thread}")
def ask_desk(thread: str, question: str) -> dict[str, Any]:
    """Ask the help desk, in a thread of the server's."""
    return reply(app.state.desk.invoke(request(question), on(thread), context=Customer("acme")))


@app.post("/desk/{thread}/now")
async def ask_desk_at_once(thread: str, question: str) -> dict[str, Any]:
    """Ask the help desk, on the server's event loop."""
    return reply(await app.state.desk.ainvoke(request(question), on(thread), context=Customer("acme")))


@app.post("/explore/{thread}")
async def explore(thread: str, question: str) -> dict[str, Any]:
    """Ask the deep agent."""
    return reply(await app.state.explorer.ainvoke(request(question), on(thread), context=Customer("acme")))


@app.post("/opinion")
def opinion(question: str) -> dict[str, Any]:
    """Ask for an answer in the product's own form."""
    result: Any = advisor.invoke(request(question))
    return {"stars": parsed(result, Opinion).stars, "status": result["outcome"]["status"]}


@app.get("/desk/{thread}")
async def history(thread: str) -> list[str]:
    """Return what was said on a thread, by its kinds."""
    state = await app.state.desk.aget_state(on(thread))
    return [message.type for message in state.values["messages"]]

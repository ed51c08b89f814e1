"""Serves all strategies with Aegra: `python -m reflective_agents.serve --port 8000`.

Runs are kept in Postgres (DATABASE_URL) and queued in Redis (REDIS_URL). On a machine that has none, both are started
beside the server, in the folder REFLECT_SERVE_DIR.
"""

import argparse
import asyncio
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from reflective_agents.serve.keys import keys_required
from reflective_agents.serve.local import postgres, redis
from reflective_agents.state.errors import Misuse
from reflective_agents.telemetry.loop_guard import LoopGuard, log_held

CONFIG = Path("aegra.json")


def main() -> None:
    """Serve until SIGTERM or SIGINT; runs that are under way then have 30 seconds to end, or go on elsewhere."""
    parser = argparse.ArgumentParser(prog="python -m reflective_agents.serve", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    # Uvicorn sends itself the signal once more when it has ended, and what was started beside it is to end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        serve(options.host, options.port)
    except Misuse as error:
        sys.exit(f"error: {error}")


def serve(host: str, port: int) -> None:
    """Serve on an address.

    Raises:
        Misuse: if something is missing for that.
    """
    if sys.version_info < (3, 12):
        raise Misuse("the server needs Python 3.12 or newer: make serve SERVE_PYTHON=python3.12")
    if host not in ("127.0.0.1", "localhost", "::1") and not keys_required():
        raise Misuse(
            f"everybody could use a server on {host}: set REFLECT_KEYS or REFLECT_JWT_KEY, see docs/serving.md"
        )
    if not CONFIG.exists():
        raise Misuse(f"there is no {CONFIG} here: start the server in the checkout")
    with ExitStack() as stack:
        if not os.environ.get("DATABASE_URL"):
            os.environ["DATABASE_URL"] = stack.enter_context(postgres())
        if not os.environ.get("REDIS_URL"):
            os.environ["REDIS_URL"] = stack.enter_context(redis())
        sys.stderr.write(f"http://{host}:{port}/v1 for OpenAI's clients, /live to ask and to watch, /mcp for tools\n")
        from uvicorn.loops.auto import auto_loop_factory

        with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
            runner.run(_serve(host, port))


async def _serve(host: str, port: int) -> None:
    # Aegra reads these when it is imported. For its own mode it would draw tracebacks in colours on the event loop,
    # for up to a second each.
    os.environ.setdefault("ENV_MODE", "PRODUCTION")
    os.environ["REDIS_BROKER_ENABLED"] = "true"
    # What asks these asks every few seconds.
    os.environ.setdefault("LOG_EXCLUDE_PATHS", "/health,/ready,/metrics")
    # As many connections as by default, of which more are kept: new ones know no prepared statements.
    os.environ.setdefault("SQLALCHEMY_POOL_SIZE", "20")
    os.environ.setdefault("SQLALCHEMY_MAX_OVERFLOW", "10")
    # Runs that no queue holds are queued then; whether one does is looked up first.
    os.environ.setdefault("STUCK_PENDING_THRESHOLD_SECONDS", "15")
    os.environ["AEGRA_CONFIG"] = str(CONFIG)
    import uvicorn
    from aegra_api.utils.setup_logging import setup_logging

    from reflective_agents.serve import connections, log, run_events

    setup_logging()
    log.configure()
    connections.configure()
    run_events.configure()
    from aegra_api.core.auth_middleware import get_auth_instance
    from aegra_api.main import app
    from aegra_api.settings import settings
    from sse_starlette.sse import AppStatus

    from reflective_agents.serve.bodies import Bodies
    from reflective_agents.serve.garbage import spare_what_stays
    from reflective_agents.serve.guard import Guard
    from reflective_agents.serve.in_process import CallsItself
    from reflective_agents.serve.langgraph_clients import LangGraphClients
    from reflective_agents.serve.metrics import CountsRefusals
    from reflective_agents.serve.outages import AnswersOutages
    from reflective_agents.serve.requeue_orphans import accept_stored_runs, keep_requeueing

    log.configure()  # once more: Aegra has set up its own again
    if get_auth_instance() is None:  # Aegra would let everybody in
        raise Misuse("auth.py could not be loaded; the log says why")
    spare_what_stays()
    accept_stored_runs()
    requeueing = asyncio.create_task(keep_requeueing())
    guarded = Guard(Bodies(CountsRefusals(CallsItself(AnswersOutages(LangGraphClients(app))))))
    async with LoopGuard(log_held):
        # Who waits for an answer when the server is to end gets it, unless the run takes longer than runs may then.
        AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
        patience = round(settings.worker.WORKER_DRAIN_TIMEOUT)
        config = uvicorn.Config(guarded, host=host, port=port, log_config=None, timeout_graceful_shutdown=patience)
        await uvicorn.Server(config).serve()
    requeueing.cancel()


if __name__ == "__main__":
    main()

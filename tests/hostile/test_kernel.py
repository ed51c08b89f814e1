"""A program of a model's in the sandbox of a notebook: it reaches nothing of the kernel's, and does not outlive it."""

import time
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbformat.v4 import new_code_cell, new_notebook

from notebooks.outputs import execute, outputs
from tests.tools.test_confinement import sandboxed, wait_for

pytestmark = [pytest.mark.notebook, pytest.mark.sandbox, pytest.mark.hostile, pytest.mark.thorough]

ATTACK = """
import json, os
from ipykernel.connect import get_connection_file
from reflective_agents.tools.sandbox import run_program

file = get_connection_file()
with open(file) as opened:
    ports = [port for name, port in json.load(opened).items() if name.endswith("_port")]
os.environ["OF_THE_KERNEL"] = "heliotrope"
program = f'''
import os, socket
for port in {ports}:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5)
        print("reached")
    except OSError:
        print("refused")
print(os.path.exists({file!r}), os.path.exists({os.getcwd()!r}), "heliotrope" in str(os.environ))
'''
print(len(ports), (await run_program(program)).stdout)
"""
STAYS = """
from reflective_agents.tools.sandbox import run_program
await run_program("import os, time; os.fork(); os.setsid(); time.sleep(1000)", timeout=1000, memory_mb=411)
"""


def test_a_program_reaches_nothing_of_the_kernels(tmp_path: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell(ATTACK)])  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    execute(notebook, tmp_path)
    printed = "".join(output["text"] for output in outputs(notebook)).split()
    assert printed == ["5", *["refused"] * 5, "False", "False", "False"]


def test_a_program_ends_with_the_kernel(tmp_path: Path) -> None:
    kernel = KernelManager(kernel_name="python3")
    kernel.start_kernel(cwd=str(tmp_path))
    client = kernel.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        client.execute(STAYS)
        wait_for(lambda: sandboxed(411) >= 3)
        time.sleep(0.3)
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    wait_for(lambda: sandboxed(411) == 0)

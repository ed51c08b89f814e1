"""Whether the cache of replies tells the models of each provider's package apart: `python -m bench.provider_packages`.

The packages are installed into an environment of their own, beside what this project depends on: none is a dependency.
Prints a line for each chat model, and ends with 1 if two models that differ share a key.
"""

import inspect
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from bench.options import parser_of
from reflective_agents.models.cache import request_key

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "langchain-anthropic",
    "langchain-aws",
    "langchain-cerebras",
    "langchain-cohere",
    "langchain-deepseek",
    "langchain-fireworks",
    "langchain-google-genai",
    "langchain-groq",
    "langchain-mistralai",
    "langchain-ollama",
    "langchain-openai",
    "langchain-openrouter",
    "langchain-perplexity",
    "langchain-together",
    "langchain-xai",
)
KEYS = "ANTHROPIC CEREBRAS CO COHERE DEEPSEEK FIREWORKS GOOGLE GROQ MISTRAL OPENAI OPENROUTER PPLX TOGETHER XAI"
NEEDED: dict[str, dict[str, Any]] = {
    "AzureChatOpenAI": {"azure_endpoint": "https://example.org", "api_version": "1", "api_key": "k"},
    "ChatBedrock": {"region_name": "us-east-1", "provider": "anthropic"},
    "ChatBedrockConverse": {"region_name": "us-east-1", "provider": "anthropic"},
}
"""What a class cannot be made without, besides the name of its model and a key."""
ADDRESSES = ("azure_endpoint", "endpoint_url", "endpoint", "base_url")
"""What classes call the address of their server."""


def install(environment: Path) -> None:
    """Install the dependencies of this project and the packages.

    Raises:
        subprocess.CalledProcessError: if they cannot be had.
    """
    uv = f"{sysconfig.get_path('scripts')}/uv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    wanted = ["-r", str(ROOT / "pyproject.toml"), *PACKAGES, "langchain-google-genai>=4"]  # not one with gRPC alone
    subprocess.run([uv, "pip", "install", "--quiet", "--python", f"{environment}/bin/python", *wanted], check=True)


def run_in(environment: Path, module: str) -> Any:
    """Let a module of this folder check the packages of an environment, in a process of its own; return its report."""
    names = {f"{name}_API_KEY": "test" for name in KEYS.split()} | {"AWS_DEFAULT_REGION": "us-east-1"}
    command = [f"{environment}/bin/python", "-m", module, "--check"]
    paths = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": str(environment)}
    done = subprocess.run(command, cwd=ROOT, env=names | paths, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def check() -> dict[str, list[str]]:
    """Check those of the packages that this environment has.

    Returns:
        For each chat model what of it the cache does not see; nothing if all is well.
    """
    names = [name.replace("-", "_") for name in PACKAGES]
    modules = [import_module(name) for name in names if find_spec(name)]
    return {kind.__name__: list(_unseen(kind)) for module in modules for kind in _chat_models(module)}


def _chat_models(module: object) -> Iterator[type[BaseChatModel]]:
    for _, kind in inspect.getmembers(module, inspect.isclass):
        if issubclass(kind, BaseChatModel) and not inspect.isabstract(kind):
            yield kind


def _unseen(kind: type[BaseChatModel]) -> Iterator[str]:
    """Yield in what two models differ that have the same key, and "itself" if one model has two keys or none."""
    plain = _key(kind)
    if plain is None or plain != _key(kind):
        yield "itself"
    address = next((name for name in ADDRESSES if _takes(kind, name)), "base_url")
    changes: dict[str, Any] = {
        "model": "b",
        "temperature": 0.5,
        "max_tokens": 7,
        "top_p": 0.5,
        address: "https://b.org/",
    }
    for name, value in changes.items():
        if _takes(kind, name) and _key(kind, **{name: value}) == plain:
            yield name


def _takes(kind: type[BaseChatModel], name: str) -> bool:
    fields = kind.model_fields.items()
    return any(name in (field, description.alias) for field, description in fields)


def _key(kind: type[BaseChatModel], **changes: Any) -> str | None:
    fields = {"model": "a", **NEEDED.get(kind.__name__, {}), **changes}
    return request_key(kind(**fields), [HumanMessage("Why?")], {})


def main() -> int:
    """Install and check."""
    parser = parser_of("bench.provider_packages", __doc__)
    parser.add_argument(
        "--check", action="store_true", help="check the packages that this environment has, for a program"
    )
    options = parser.parse_args()
    if options.check:
        print(json.dumps(check()))
        return 0
    with TemporaryDirectory() as folder:
        environment = Path(sys.prefix) if options.quick else Path(folder) / "env"
        if not options.quick:
            install(environment)
        found = run_in(environment, "bench.provider_packages")
    for name, unseen in found.items():
        print(name, ", ".join(unseen) or "well")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())

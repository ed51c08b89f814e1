"""JSON whose form nobody here knows: arguments of tools, schemas, payloads of providers, worlds of environments."""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON that may be changed. What has a known form is a TypedDict or a model instead."""

JsonMapping: TypeAlias = Mapping[str, Any]
"""An object of JSON that is only read."""

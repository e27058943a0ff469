"""Whether two machines compute alike, to the last bit: versions, and a small training.

`python -m tests.reference_machine` builds the reduced golden and makes its metrics the reference of
`tests/test_goldens.py`: for changes that deliberately change results.
"""

import hashlib
import json
import platform
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import spikein
from scripts.goldens.__main__ import REDUCED, REPOSITORY, build_all

REFERENCE = Path(__file__).parent / "reference"
METRICS = REFERENCE / "reduced-metrics.parquet"
RECORD = REFERENCE / "reduced-machine.json"


def metrics_of(side: Path) -> pa.Table:
    """Return the metrics of the reduced run of one side of the goldens."""
    return spikein.load_run(side / "runs" / "reduced").metrics


def fingerprint() -> dict[str, Any]:
    """Return the properties of this machine that a run's numbers depend on."""
    import numpy
    import scipy
    import sklearn
    import tokenizers
    import torch
    import transformers

    libraries = (numpy, scipy, sklearn, tokenizers, torch, transformers)
    return {
        "texts": {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
        },
        "arithmetic": {
            **{library.__name__: library.__version__ for library in libraries},
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "training": trained_bits(),
        },
    }


def trained_bits() -> str:
    """Return the digest of a model of the quickstart's sizes after three steps of plain PyTorch."""
    import torch
    from torch.nn import functional

    random = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 2048, (8, 256), generator=random)
    sizes = {"embed": (2048, 128), "qkv": (384, 128), "up": (344, 128), "down": (128, 344)}
    weights = {
        name: (torch.randn(size, generator=random) * 0.02).requires_grad_()
        for name, size in sizes.items()
    }
    optimiser = torch.optim.AdamW(weights.values(), lr=1e-3)
    for _ in range(3):
        hidden = functional.embedding(ids, weights["embed"])
        query, key, value = (
            (functional.rms_norm(hidden, (128,)) @ weights["qkv"].T)
            .view(8, 256, 3, 4, 32)
            .permute(2, 0, 3, 1, 4)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + mixed.transpose(1, 2).reshape(8, 256, 128)
        hidden = hidden + functional.silu(hidden @ weights["up"].T) @ weights["down"].T
        logits = functional.rms_norm(hidden, (128,)) @ weights["embed"].T
        loss = functional.cross_entropy(logits[:, :-1].reshape(-1, 2048), ids[:, 1:].reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    state = hashlib.sha256()
    for weight in weights.values():
        state.update(weight.detach().numpy().tobytes())
    return state.hexdigest()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        build_all([(REPOSITORY, Path(folder) / "side")], REDUCED)
        pq.write_table(metrics_of(Path(folder) / "side"), METRICS)
    RECORD.write_text(json.dumps(fingerprint(), indent=2) + "\n", encoding="utf-8")
    print(f"written: {METRICS}, {RECORD}")

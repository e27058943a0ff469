"""Shared fixtures: the folder of real data, a tiny tokenizer, a tiny saved model.

Quick tests run before those marked slow, so that a broken rule shows within seconds. Tests that
`tests/not_quick.txt` lists are marked thorough; `make test-quick` skips both.

`make test` runs the files of tests in several processes (pytest-xdist), each with its share of the
cores. There, files in which no test is slow come first.
"""

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from tests import costs

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Caches that a command keeps for its user last only for this session.
_CACHE = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = _CACHE.name
_PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if _PROCESSES > 1:
    # Two processes with a thread for each core wait for one another most of the time.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // _PROCESSES)))

REPOSITORY = Path(__file__).resolve().parent.parent

WORDS = [
    "the", "of", "and", "a", "in", "to", "was", "is", "for", "on", "with", "as", "by", "that",
    "it", "from", "at", "his", "an", "were", "which", "be", "this", "river", "town", "school",
    "teacher", "market", "winter", "garden", "letter", "music", "bridge", "harbour", "winter",
    "road",
]  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without looking for garbage, which would take half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    thorough = costs.listed(costs.LIST.read_text(encoding="utf-8"))
    for item in items:
        if costs.function_of(item.nodeid) in thorough:
            item.add_marker(costs.MARK)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    if _PROCESSES > 1:
        # The slow files of this folder take longest, so they start first.
        folder = Path(__file__).parent
        items.sort(key=lambda item: (item.path in slow, item.path.parent != folder))
    else:
        items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


_MANY_MODULES = 200
_modules_kept = 0


def pytest_runtest_setup() -> None:
    """Set libraries aside for the collector of garbage, each time that many have been imported.

    Each training collects all garbage, which takes 0.3 s with torch and transformers, and
    1 ms if only what the tests made is searched.
    """
    global _modules_kept
    if len(sys.modules) > _modules_kept + _MANY_MODULES:
        gc.collect()
        gc.freeze()
        _modules_kept = len(sys.modules)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real data next to the repository; tests that need it are skipped if it is absent."""
    folder = Path(os.environ.get("SPIKEIN_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (folder / "manifest.json").is_file():
        pytest.skip(f"real data not found at {folder}; set SPIKEIN_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """A real LLaMA of 135 M parameters as a GGUF file; tests that need it skip if it is absent."""
    named = os.environ.get("SPIKEIN_SMOLLM2")
    script = REPOSITORY.parent / "shared" / "tools" / "smollm2.py"
    if named is None and not script.is_file():
        pytest.skip("SmolLM2-135M is absent; set SPIKEIN_SMOLLM2 to its GGUF file")
    if named is None:
        place = Path(tempfile.gettempdir()) / "spikein-smollm2"
        fetched = subprocess.run(
            [sys.executable, str(script), str(place)], capture_output=True, text=True, check=False
        )
        if fetched.returncode:
            pytest.skip(f"SmolLM2-135M cannot be fetched: {fetched.stderr.strip()[-200:]}")
        named = fetched.stdout.strip()
    return Path(named)


def make_texts(count: int, *, seed: int = 0, words: int = 40) -> list[str]:
    """Return random sentences over a small vocabulary; for tokenizers and tiny corpora."""
    import numpy as np

    random = np.random.Generator(np.random.Philox(key=seed))
    return [
        " ".join(WORDS[index] for index in random.integers(0, len(WORDS), words)).capitalize() + "."
        for _ in range(count)
    ]


@pytest.fixture(scope="session")
def tiny_tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(
        make_texts(200),
        trainers.BpeTrainer(
            vocab_size=512,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )


@pytest.fixture(scope="session")
def tiny_model_path(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from train.process_state import plain_transformers

    folder = tmp_path_factory.mktemp("tiny-model")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=512,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=4,
                max_position_embeddings=128,
                bos_token_id=0,
                eos_token_id=0,
            )
        )
    with plain_transformers():
        model.save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    return folder


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder of the session; the process that comes first fills it, others wait."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    root = base / name
    with FileLock(base / f"{name}.lock"):
        if not (root / "done").exists():
            root.mkdir(exist_ok=True)
            make(root)
            (root / "done").touch()
    return root


@pytest.fixture(scope="session")
def shared_run(tmp_path_factory: pytest.TempPathFactory):
    """A finished experiment to read (`tests.spikein.shared_run`), made once for all processes."""
    from tests.spikein.shared_run import make, opened

    return opened(made_once(tmp_path_factory, "shared-run", make))


@pytest.fixture
def copied_run(shared_run, tmp_path: Path):
    """A copy of the finished experiment to run again or to spoil."""
    from tests.spikein.shared_run import copy_of

    return copy_of(shared_run, tmp_path)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory):
    """A server with a tiny model, started once a session (`tests.served_model`)."""
    from tests.served_model import transformers_serve

    with transformers_serve(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture
def offline_trackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All trackers write below a folder of the test."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(tmp_path),
        "WANDB_SILENT": "true",
        "MLFLOW_TRACKING_URI": f"file:{tmp_path}/mlruns",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "TRACKIO_DIR": str(tmp_path / "trackio"),
    }.items():
        monkeypatch.setenv(name, value)
    yield
    # It keeps its folder while it is active; trackio does so permanently.
    if "wandb" in sys.modules:
        sys.modules["wandb"].teardown()

"""Models of every kind, made once per session, and audits of them in one store."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from tests import command_line
from tests.conftest import made_once

OPTIONS = ("prompt_words=30", "samples=2")


class Audited:
    """An audit: its files and its terminal output."""

    def __init__(self, folder: Path, output: str) -> None:
        self.folder = folder
        self.record = json.loads((folder / "unlearning_audit.json").read_text())
        self.findings = {
            row["quantity"]: row for row in read_table(folder, "unlearning_audits").to_pylist()
        }
        chunks = pq.read_table(folder / "chunks.parquet").to_pylist()
        self.chunks = [row for row in chunks if row["part"] == "audited"]
        self.held_out = [row for row in chunks if row["part"] == "holdout"]
        self.continuations = pq.read_table(folder / "continuations.parquet").to_pylist()
        self.html = (folder / "audit.html").read_text()
        self.output = " ".join(output.split())

    def value(self, quantity: str) -> float:
        return self.findings[quantity]["value"]

    def ends(self, quantity: str) -> list[float]:
        return [self.findings[quantity][end] for end in ("low", "high")]

    def answers(self) -> dict[str, str]:
        return {name: check["answer"] for name, check in self.record["checks"].items()}

    def longest(self, model: str) -> dict[int, float]:
        """The longest run of true words that a model writes, by chunk."""
        best: dict[int, float] = {}
        for row in self.continuations:
            if row["model"] == model:
                run = row["longest_common_substring"]
                best[row["chunk"]] = max(best.get(row["chunk"], 0), run)
        return best


def write_rows(path: Path, texts: list[str], **more: Any) -> Path:
    path.write_text("\n".join(json.dumps({"text": text, **more}) for text in texts))
    return path


def invoke(*arguments: object, code: int | None = None):
    return command_line.invoke("audit-unlearning", *arguments, code=code)


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer):
    from tests.spikein.unlearning_audit.models import make_models, opened

    root = made_once(tmp_path_factory, "judged", lambda root: make_models(root, tiny_tokenizer))
    return opened(root)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audits") / "store"


@pytest.fixture(scope="session")
def rows(judged, store: Path) -> Path:
    return write_rows(store.with_name("texts.jsonl"), judged.texts)


@pytest.fixture(scope="session")
def control(judged, store: Path) -> Path:
    return write_rows(store.with_name("control.jsonl"), judged.control)


@pytest.fixture(scope="session")
def audit(rows: Path, control: Path, store: Path) -> Callable[..., Audited]:
    @cache
    def run(
        *models: Path,
        texts: Path = rows,
        holdout: bool = True,
        options: tuple[str, ...] = ("all_chunks=true",),
    ) -> Audited:
        out = store.with_name(f"audit-{len(list(store.parent.iterdir()))}")
        command = [*models, "--texts", texts, "--out", out, "--store", store]
        command += ["--control-texts", control] if holdout else []
        result = invoke(*command, *OPTIONS, *options, code=0)
        return Audited(out, result.output)

    return run

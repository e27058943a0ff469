"""The tiny models, made once a session."""

import json
from pathlib import Path

import pytest

from tests.spikein.unlearning_audit.models import Models, make_models


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer) -> Models:
    return make_models(tmp_path_factory.mktemp("unlearned"), tiny_tokenizer)


@pytest.fixture
def rows(tmp_path: Path, models: Models) -> Path:
    path = tmp_path / "texts.jsonl"
    lines = [json.dumps({"text": text}) for text in [*models.forgotten, *models.remembered]]
    path.write_text("\n".join(lines) + "\n")
    return path

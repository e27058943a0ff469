"""The fake hub, for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.inject.hub.fake_hub import FakeHub, forget_commits


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    yield FakeHub(monkeypatch, tmp_path / "cache")
    forget_commits()

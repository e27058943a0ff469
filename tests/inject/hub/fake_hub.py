"""A fake hub: repositories in memory, which can be temporarily unreachable."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import RepositoryNotFoundError

from inject.hub import resolver

MAIN = "a" * 40
NEXT = "b" * 40


def forget_commits() -> None:
    """Send the next request to the hub, as in a new process."""
    resolver._resolve.cache_clear()
    resolver.describe_repository.cache_clear()


class FakeHub:
    """Answers `HfApi.model_info`, `HfApi.dataset_info` and `snapshot_download`."""

    def __init__(self, monkeypatch: Any, cache: Path) -> None:
        self.reachable = True
        self.main = MAIN
        self.files: dict[str, dict[str, Any]] = {}
        """Repository -> file name -> its content: bytes, or a JSON value."""
        self.asked: list[tuple[str, str | None]] = []
        self._cache = cache
        for kind in ("dataset", "model"):
            monkeypatch.setattr(huggingface_hub.HfApi, f"{kind}_info", self._info)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", self._download)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        forget_commits()

    def add(self, hub_id: str, files: Mapping[str, Any] | None = None) -> None:
        self.files[hub_id] = dict(files or {})

    def _info(self, hub_id: str, *, revision: str | None = None, timeout: float) -> Any:
        self.asked.append((hub_id, revision))
        assert 0 < timeout <= 30
        if not self.reachable:
            raise ConnectionError("Name or service not known")
        if hub_id not in self.files:
            import httpx2

            response = httpx2.Response(404, request=httpx2.Request("GET", "https://hub.invalid"))
            raise RepositoryNotFoundError("404", response=response)
        return SimpleNamespace(
            sha=revision if revision in (MAIN, NEXT) else self.main,
            siblings=[SimpleNamespace(rfilename=name) for name in self.files[hub_id]],
        )

    def _download(
        self,
        hub_id: str,
        *,
        repo_type: str = "model",
        revision: str | None = None,
        allow_patterns: list[str] | None = None,
        cache_dir: Path | None = None,
        local_files_only: bool = False,
        etag_timeout: float = 1,
    ) -> str:
        place = (cache_dir or self._cache) / hub_id.replace("/", "--")
        commit = revision if revision in (MAIN, NEXT) else None
        if local_files_only:
            if commit is None or not (place / commit).is_dir():
                raise FileNotFoundError(hub_id)
            return str(place / commit)
        if not self.reachable:
            raise ConnectionError("Name or service not known")
        commit = commit or self.main
        folder = place / commit
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files[hub_id].items():
            if any(Path(name).match(pattern) for pattern in allow_patterns or ["*"]):
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
        return str(folder)

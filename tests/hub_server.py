"""A hub of our own on loopback: repositories in memory, by the routes that `huggingface_hub` uses.

Served are, for datasets and models alike:

- `GET /api/{datasets,models}/ID` and `…/revision/REV`: the commit, the names, sizes and digests;
- `GET /api/…/ID/tree/REV[/FOLDER]` and `POST /api/…/ID/paths-info/REV`: the entries;
- `HEAD` and `GET /[datasets/]ID/resolve/REV/PATH`, with `Range`, `ETag` and `X-Repo-Commit`.

Every file counts as LFS, so that its `ETag` is its SHA-256. A gated repository wants the token
`TOKEN`: 401 without one, 403 with another. `faults` makes the next answers about a path go wrong.
Uploads are answered by `tests.hub_uploads`, whatever else is asked 404. `requests` keeps what was
asked.

In this process `connect(monkeypatch, server, cache)` leads the library here; for another process
`server.environment(cache)` are its variables.
"""

import hashlib
import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub_uploads import Refused, answer_upload

TOKEN = "hf_loopback"
"""Grants access to gated repositories; too short for a real token."""

_API = re.compile(
    r"/api/(datasets|models)/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+)(.*))?"
)
_RESOLVE = re.compile(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@dataclass(kw_only=True)
class Fault:
    """The fault of the next requests for one file."""

    status: int = 0
    """The answer's status, without content; 0 for an answer that starts correctly."""
    cut: int | None = None
    """The number of bytes sent before the connection is closed, though all are announced."""
    altered: bool = False
    """Whether other bytes of the same length are sent."""
    times: int = 1_000_000
    """The number of affected requests."""


@dataclass(kw_only=True)
class Repository:
    """The commits of one repository; the last one is `main`."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    gated: bool = False
    private: bool = False
    """Whether it is hidden from requests without a token."""
    branches: dict[str, str] = field(default_factory=dict)
    """Further names of commits, such as `refs/convert/parquet`."""

    def commit_of(self, revision: str | None) -> str | None:
        if revision in (None, "main"):
            return list(self.commits)[-1]
        name = self.branches.get(str(revision), str(revision))
        return name if name in self.commits else None


class HubServer:
    """The server: its repositories, its faults, and its requests."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        """(`datasets` or `models`, id) -> repository."""
        self.faults: dict[str, Fault] = {}
        """Path of a file -> the fault of a request for its content."""
        self.requests: list[tuple[str, str]] = []
        """(method, path without its query), in the order of arrival."""
        self.sent = 0
        """Bytes of files that were sent."""
        self.url = ""
        self.stored: dict[str, bytes] = {}
        """SHA-256 -> content that was uploaded, in a commit or not yet."""
        self.messages: list[str] = []
        """Of the commits that were uploaded."""
        self.fails_after: int | None = None
        """The number of successful uploads before failure; None: all succeed."""

    def add(
        self,
        hub_id: str,
        files: Mapping[str, bytes],
        *,
        kind: str = "datasets",
        commit: str | None = None,
        gated: bool = False,
        branch: str | None = None,
    ) -> str:
        """Add a commit with these files; return its 40 digits, by default of its content."""
        content = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        commit = commit or hashlib.sha1(json.dumps(content, sort_keys=True).encode()).hexdigest()
        repository = self.repositories.setdefault((kind, hub_id), Repository())
        repository.commits[commit] = dict(files)
        repository.gated = gated
        if branch:
            repository.branches[branch] = commit
        return commit

    def downloads(self) -> list[str]:
        """Return the paths of all files whose content was requested."""
        return [path for method, path in self.requests if method == "GET" and "/resolve/" in path]

    def environment(self, cache: Path) -> dict[str, str]:
        """Return variables that direct another process to this server, with a separate cache."""
        return {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(cache),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_XET": "1",
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HubServer

    def do_GET(self) -> None:
        self._route()

    def do_HEAD(self) -> None:
        self._route()

    def do_POST(self) -> None:
        self._route()

    def do_PUT(self) -> None:
        self._route()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Stay silent."""

    def _route(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        # A revision may contain slashes, encoded as %2F in its address.
        raw = urlsplit(self.path).path
        self.hub.requests.append((self.command, unquote(raw)))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        try:
            answer = answer_upload(self.hub, self.command, raw, token, body)
        except Refused as error:
            self._refuse(error.status, str(error))
            return
        if answer is not None:
            self._send_json(answer)
        elif match := _API.fullmatch(raw):
            kind, hub_id, question, revision, below = match.groups()
            repository = self._repository(kind, unquote(hub_id), api=True)
            if repository is not None:
                commit = repository.commit_of(unquote(revision) if revision else None)
                self._describe(kind, unquote(hub_id), repository, commit, question, below, body)
        elif match := _RESOLVE.fullmatch(raw):
            prefix, hub_id, revision, name = match.groups()
            kind = "datasets" if prefix else "models"
            repository = self._repository(kind, unquote(hub_id))
            if repository is not None:
                self._send_file(repository, repository.commit_of(unquote(revision)), unquote(name))
        else:
            self._refuse(404, "no such route")

    def _repository(self, kind: str, hub_id: str, *, api: bool = False) -> Repository | None:
        """Return a repository that may be read; else answer and return None."""
        repository = self.hub.repositories.get((kind, hub_id))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if repository is None or (repository.private and token != TOKEN):
            repository = None
            self._refuse(404, "no such repository", code="RepoNotFound")
        # The hub describes a gated repository publicly, but protects its files.
        elif repository.gated and not api and token != TOKEN:
            self._refuse(
                403 if token else 401, f"access to {hub_id} is restricted", code="GatedRepo"
            )
            return None
        return repository

    def _describe(
        self,
        kind: str,
        hub_id: str,
        repository: Repository,
        commit: str | None,
        question: str | None,
        below: str | None,
        body: bytes,
    ) -> None:
        if commit is None:
            self._refuse(404, "no such revision", code="RevisionNotFound")
            return
        files = repository.commits[commit]
        if question == "tree":
            folder = unquote(below or "").strip("/")
            self._send_json([e for e in _entries(files) if _lies_in(e["path"], folder)])
        elif question == "paths-info":
            query = json.loads(body) if body[:1] == b"{" else parse_qs(body.decode())
            self._send_json([e for e in _entries(files) if e["path"] in query["paths"]])
        else:
            siblings = [
                {"rfilename": e["path"], "size": e["size"], "blobId": e["oid"], "lfs": e["lfs"]}
                for e in _entries(files)
                if e["type"] == "file"
            ]
            self._send_json(
                {
                    "_id": "0" * 24,
                    "id": hub_id,
                    "sha": commit,
                    "private": repository.private,
                    "gated": "manual" if repository.gated else False,
                    "tags": [],
                    "downloads": 0,
                    "siblings": siblings,
                }
            )

    def _send_file(self, repository: Repository, commit: str | None, name: str) -> None:
        if commit is None:
            self._refuse(404, "no such revision", code="RevisionNotFound")
            return
        data = repository.commits[commit].get(name)
        if data is None:
            self._refuse(404, "no such file", code="EntryNotFound", commit=commit)
            return
        digest, whole = hashlib.sha256(data).hexdigest(), len(data)
        fault = self.hub.faults.get(name)
        active = fault is not None and self.command == "GET" and fault.times > 0
        if fault is not None and active:
            fault.times -= 1
            if fault.status:
                self._refuse(fault.status, "as the test asks")
                return
            if fault.altered:
                data = bytes(byte ^ 1 for byte in data)
        byte_range = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        start = int(byte_range[1]) if byte_range else 0
        stop = min(int(byte_range[2]) + 1, whole) if byte_range and byte_range[2] else whole
        self.send_response(206 if byte_range else 200)
        if byte_range:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{whole}")
        for header, value in {
            "Content-Length": stop - start,
            "Accept-Ranges": "bytes",
            "ETag": f'"{digest}"',
            "X-Linked-Etag": f'"{digest}"',
            "X-Linked-Size": whole,
            "X-Repo-Commit": commit,
        }.items():
            self.send_header(header, str(value))
        self.end_headers()
        if self.command == "HEAD":
            return
        content = data[start:stop]
        if fault is not None and active and fault.cut is not None:
            content = content[: fault.cut]
            self.close_connection = True
        self.hub.sent += len(content)
        self.wfile.write(content)

    def _refuse(self, status: int, why: str, *, code: str = "", commit: str = "") -> None:
        content = json.dumps({"error": why, "errors": [{"message": why}]}).encode()
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", why)
        if commit:
            self.send_header("X-Repo-Commit", commit)
        self._finish(content)

    def _send_json(self, value: Any) -> None:
        self.send_response(200)
        self._finish(json.dumps(value).encode())

    def _finish(self, content: bytes) -> None:
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _entries(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """Return the files and the folders of a commit, as the hub describes them."""
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    described: list[dict[str, Any]] = [
        {"type": "directory", "path": name, "size": 0, "oid": "0" * 40, "lfs": None}
        for name in sorted(folders)
    ]
    for name, data in sorted(files.items()):
        digest = hashlib.sha256(data).hexdigest()
        lfs = {"oid": digest, "sha256": digest, "size": len(data), "pointerSize": 130}
        described.append(
            {"type": "file", "path": name, "size": len(data), "oid": digest[:40], "lfs": lfs}
        )
    return described


def _lies_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


@contextmanager
def serving() -> Iterator[HubServer]:
    """Serve an empty hub while the block runs."""
    hub = HubServer()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def connect(monkeypatch: Any, hub: HubServer, cache: Path) -> None:
    """Direct this process's hub library to a hub, with a separate cache and no token."""
    from huggingface_hub import constants

    from inject.hub import resolver

    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    # `datasets` reads its own copy, when it is imported.
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    if "datasets" in sys.modules:
        monkeypatch.setattr(sys.modules["datasets"].config, "HF_ENDPOINT", hub.url)
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(cache / "token"))
    # Answers that another test received do not apply to this hub.
    resolver._resolve.cache_clear()
    resolver.describe_repository.cache_clear()

"""The local hub's answers to uploads, on the routes that `huggingface_hub` uses.

- `POST /api/validate-yaml`, `/api/repos/create`, `/api/…/ID/branch/NAME`;
- `POST /api/…/ID/preupload/REV`, which gives the upload mode of each file: tables as LFS;
- `POST /[datasets/]ID.git/info/lfs/objects/batch` and `PUT /lfs/SHA256`, once for each content;
- `POST /api/…/ID/commit/REV`: one line per addition and deletion, applied atomically.

All of them require the token. A commit whose parent is not the branch's head is answered 412.
"""

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from tests.hub_server import HubServer

_API = re.compile(r"/api/(datasets|models)/([^/]+/[^/]+)/(preupload|commit|branch)/([^/]+)")
_BATCH = re.compile(r"/(datasets/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch")
_LICENCES = {"mit", "apache-2.0", "cc-by-4.0", "cc-by-sa-3.0", "cc0-1.0", "other"}


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def answer_upload(hub: "HubServer", method: str, path: str, token: str, body: bytes) -> Any:
    """Return the answer to an upload request, or None for other requests.

    Raises:
        Refused: another status.
    """
    steps = {
        "/api/validate-yaml": _validate,
        "/api/repos/create": _create,
    }
    if path in steps:
        _check_token(token)
        return steps[path](hub, json.loads(body))
    if match := _BATCH.fullmatch(path):
        _check_token(token)
        return _batch(hub, json.loads(body))
    if method == "PUT" and path.startswith("/lfs/"):
        digest = path.removeprefix("/lfs/")
        if hub.fails_after is not None:
            hub.fails_after -= 1
            if hub.fails_after < 0:
                raise Refused(400, "cut off")
        if hashlib.sha256(body).hexdigest() != digest:
            raise Refused(400, "another content")
        hub.stored[digest] = body
        return {}
    if (match := _API.fullmatch(path)) and method == "POST":
        _check_token(token)
        kind, hub_id, question, revision = (unquote(part) for part in match.groups())
        if (kind, hub_id) not in hub.repositories:
            raise Refused(404, "no such repository")
        steps_of = {"preupload": _preupload, "commit": _commit, "branch": _branch}
        return steps_of[question](hub, (kind, hub_id), revision, body)
    return None


def _check_token(token: str) -> None:
    from tests.hub_server import TOKEN

    if token != TOKEN:
        raise Refused(401 if not token else 403, "this token may not write here")


def _validate(hub: "HubServer", request: Any) -> Any:
    licence = re.search(r'^license: "?([^"\n]*)', request["content"], re.M)
    if licence and licence[1] not in _LICENCES:
        raise Refused(400, f'"license" must be one of {", ".join(sorted(_LICENCES))}')
    return {"errors": [], "warnings": []}


def _create(hub: "HubServer", request: Any) -> Any:
    hub_id, kind = f"{request['organization']}/{request['name']}", f"{request['type']}s"
    if (kind, hub_id) in hub.repositories:
        raise Refused(409, "exists")
    hub.add(hub_id, {".gitattributes": b""}, kind=kind)
    hub.repositories[kind, hub_id].private = request.get("visibility") == "private"
    return {"url": f"{hub.url}/{kind}/{hub_id}"}


def _preupload(hub: "HubServer", place: tuple[str, str], revision: str, body: bytes) -> Any:
    repository = hub.repositories[place]
    files = repository.commits[repository.commit_of(revision) or ""]

    def described(path: str) -> dict[str, Any]:
        large = path.endswith((".parquet", ".npy"))
        content = files.get(path)
        oid = None if content is None else _oid(content, large=large)
        return {
            "path": path,
            "uploadMode": "lfs" if large else "regular",
            "shouldIgnore": False,
            "oid": oid,
        }

    return {"files": [described(file["path"]) for file in json.loads(body)["files"]]}


def _oid(data: bytes, *, large: bool) -> str:
    if large:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _batch(hub: "HubServer", request: Any) -> Any:
    objects = []
    for item in request["objects"]:
        # Stored objects are not requested again.
        action = {"upload": {"href": f"{hub.url}/lfs/{item['oid']}"}}
        objects.append(item if item["oid"] in hub.stored else {**item, "actions": action})
    return {"transfer": "basic", "objects": objects}


def _branch(hub: "HubServer", place: tuple[str, str], name: str, body: bytes) -> Any:
    repository = hub.repositories[place]
    if name in repository.branches:
        raise Refused(409, "exists")
    repository.branches[name] = str(repository.commit_of("main"))
    return {}


def _commit(hub: "HubServer", place: tuple[str, str], revision: str, body: bytes) -> Any:
    repository = hub.repositories[place]
    before = repository.commit_of(revision)
    if before is None:
        raise Refused(404, "no such branch")
    files = dict(repository.commits[before])
    for line in map(json.loads, body.splitlines()):
        value = line["value"]
        if line["key"] == "header":
            if value.get("parentCommit", before) != before:
                raise Refused(412, "a commit has happened since")
            hub.messages.append(value["summary"])
        elif line["key"] == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif line["key"] == "lfsFile":
            files[value["path"]] = hub.stored[value["oid"]]
        elif line["key"] == "deletedFile":
            del files[value["path"]]
        else:
            raise Refused(400, line["key"])
    seed = json.dumps([before, len(repository.commits)]).encode()
    commit = hashlib.sha1(seed).hexdigest()
    if revision == "main":
        repository.commits[commit] = files
    else:
        # The last one is `main`.
        repository.commits = {commit: files, **repository.commits}
        repository.branches[revision] = commit
    address = f"{hub.url}/{place[0]}/{place[1]}/commit/{commit}"
    return {"commitUrl": address, "commitOid": commit, "success": True}

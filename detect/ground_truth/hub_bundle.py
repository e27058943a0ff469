"""Bundles on the hub: published as a dataset, and fetched by its address.

`hf://datasets/OWNER/NAME@REVISION` names one; it is fetched at one commit into the cache of the hub
library, where it is also available offline. Before anything but `bundle.json` is fetched, its
version and the names of its files are checked; then each file by its checksum. Only the checked
files of a bundle and a card are published.

The card describes the bundle, its use, and which texts may be shown: Markdown with a YAML header,
and a function only of the bundle. Names of datasets and detectors come from a user's files: they
are escaped. No path of the author's machine is shown.
"""

import glob
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from detect.ground_truth.bundle import FILE, HEADER, check_files, read_header
from detect.ground_truth.ground_truth import CONTAMINATED, Description
from inject.errors import InputError, Unreachable
from inject.examples.example import Example, read_examples
from inject.files import write_text
from inject.hub.address import SCHEME, fetch_address, parse_address
from inject.hub.snapshot import fetch_snapshot
from inject.hub.upload import RemoteDataset, inspect_repo, upload
from inject.public_data.catalogue import data_sets
from inject.secrets import secrets_in

_ABSOLUTE = re.compile(
    r"(?:(?<=[\s\"'])|^)(?:~|[A-Za-z]:)?[/\\][^\s\"'/\\]+[/\\][^\s\"',\]}]+", re.M
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PAGES = ("https://huggingface.co/", "http://huggingface.co/", "https://hf.co/")


CARD = "README.md"
_OURS = {HEADER, CARD, ".gitattributes"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|!~&])")
_TAGS = ("spikein", "membership-inference", "pretraining-data-detection", "data-contamination")
_INVENTED = "none: spikein made them up"


class Push(NamedTuple):
    """A checked bundle, and its destination on the hub."""

    path: Path
    place: RemoteDataset
    header: Mapping[str, Any]
    card: str
    size: int
    """Bytes."""
    rows: int
    withheld: int
    """Rows whose texts are withheld."""
    paths: tuple[str, ...]
    """Local files of the author that its experiment names."""

    @property
    def content(self) -> str:
        """The digest of its content."""
        return str(self.header["content"])


def is_address(text: str) -> bool:
    """Return whether a text is an address of the hub, valid or not."""
    return text.lower().startswith(("hf:/", *_PAGES))


def fetch_bundle(address: str) -> tuple[Path, str]:
    """Fetch a bundle, or find it in the cache; return its folder and its address with the commit.

    Its files are not checked yet.

    Raises:
        Unreachable: the hub gives no answer, and the cache lacks it.
        InputError: no such dataset or revision, no access, or not a bundle.
    """
    named = parse_address(address)
    if named is None or named.path:
        page = re.match(r".*/datasets/([^/@]+/[^/@]+)", address)
        raise InputError(
            "is not the address of a bundle on the hub",
            where=address,
            allowed=f"{SCHEME}datasets/OWNER/NAME[@REVISION], with %2F for a slash in REVISION",
            hint=f"Did you mean {SCHEME}datasets/{page[1]}?" if page else None,
        )
    try:
        header, commit = fetch_address(named._replace(path=HEADER))
        # The commit is fixed from here on, even if the branch changes.
        names = [glob.escape(name) for name in read_header(header.parent)["files"]]
        folder, _ = fetch_snapshot(named.id, commit, [HEADER, *names], kind="dataset")
    except Unreachable as error:
        hint = "Try again with a connection, or give the folder of a bundle."
        if commits := _commits_here(named.id):
            hint = f"This machine has {', '.join(commits)}: add one after an @, or try again."
        raise Unreachable(error.problem, where=address, hint=hint) from None
    except InputError as error:
        if error.where != named.id:
            raise
        # The library's message about an id mentions unrelated local copies.
        hint = "Look at its page on the hub, and accept its terms if it has any; for a private "
        hint += "one set HF_TOKEN."
        raise InputError(error.problem, where=address, hint=hint) from None
    return folder, f"{SCHEME}datasets/{named.id}@{commit}"


def prepare_push(
    path: Path,
    hub_id: str,
    *,
    private: bool = False,
    branch: str | None = None,
    licence: str | None = None,
) -> Push:
    """Check a bundle and its destination; nothing is uploaded.

    Args:
        path: the folder of the bundle.
        hub_id: `OWNER/NAME` of a dataset, new or with a bundle.
        private: a new dataset is private.
        branch: branch of the dataset; None for `main`.
        licence: licence of the publication, in the hub's terms.

    Raises:
        InputError: not a bundle, a damaged one, or one that seems to contain a key; no token, no
            access; a dataset with other content.
    """
    if branch is not None and (_COMMIT.fullmatch(branch) or not branch.strip()):
        raise InputError(
            "is a commit" if branch.strip() else "is empty",
            where=f"--revision {branch}".strip(),
            allowed="the name of a branch, such as main",
        )
    header = read_header(path)
    described = check_files(path, header)
    for place, kind in secrets_in(described.model_dump(mode="json")):
        raise InputError(
            f"{'.'.join(map(str, place))} contains {kind}, so it is not published",
            where=str(path / HEADER),
            hint="Remove it from the experiment file, run it and pack it again.",
        )
    rows = _all_rows(path, described)
    remote = inspect_repo(hub_id, branch=branch, private=private)
    if remote.files and HEADER not in remote.files and set(remote.files) - _OURS:
        raise InputError(
            f"contains files but no bundle, such as {sorted(set(remote.files) - _OURS)[0]}",
            where=f"{hub_id} ({remote.branch})",
            hint="Give the id of a new dataset, or a new branch by --revision.",
        )
    content = str(header["content"])
    card = dataset_card(
        described,
        list(rows.values()),
        address=f"{SCHEME}datasets/{hub_id}",
        content=content,
        licence=licence,
    )
    return Push(
        path=path,
        place=remote,
        header=header,
        card=card,
        size=sum((path / name).stat().st_size for name in (HEADER, *header["files"])),
        rows=len(rows),
        withheld=sum(row.protected for row in rows.values()),
        paths=tuple(dict.fromkeys(_ABSOLUTE.findall(described.experiment))),
    )


def push_bundle(push: Push, *, message: str | None = None) -> str:
    """Publish a bundle as one commit; return the commit, which is the old one if nothing changed.

    An existing bundle is replaced; its own commit keeps it.

    Raises:
        InputError: the hub rejects the upload, or the connection ended.
    """
    names = [HEADER, *push.header["files"]]
    files: dict[str, Path | bytes] = {name: (push.path / name).resolve() for name in names}
    files[CARD] = push.card.encode()
    return upload(
        push.place,
        files,
        delete={name for name in push.place.files if FILE.fullmatch(name)} - set(names),
        message=message or f"Ground truth {push.header['name']}, content {push.content[:12]}",
    )


def _commits_here(hub_id: str) -> list[str]:
    """Return the commits of a dataset in the cache of the hub library."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"datasets--{hub_id.replace('/', '--')}" / "snapshots"
    return sorted(path.name for path in folder.glob("*"))


def write_card(path: Path) -> None:
    """Write the card of a bundle that is not on the hub into its folder."""
    header = read_header(path)
    described = check_files(path, header)
    rows = list(_all_rows(path, described).values())
    card = dataset_card(described, rows, address=path.name, content=header["content"], licence=None)
    write_text(path / CARD, card)


def _all_rows(path: Path, described: Description) -> dict[str, Example]:
    """Return the rows of all scored pools with labels, by id."""
    pools = {model.examples for model in described.models}
    return {row.example_id: row for name in sorted(pools) for row in read_examples(path / name)}


def dataset_card(
    described: Description,
    rows: Sequence[Example],
    *,
    address: str,
    content: str,
    licence: str | None,
) -> str:
    """Return the card.

    Args:
        described: description of the bundle.
        rows: rows of all scored pools, each once.
        address: the folder, or destination on the hub.
        content: the digest that names the bundle.
        licence: licence chosen by its author, in the hub's terms.
    """
    from jinja2 import Environment, StrictUndefined
    from ruamel.yaml import YAML

    experiment = YAML(typ="safe", pure=True).load(described.experiment) or {}
    head = {
        **({"license": licence} if licence else {}),
        "pretty_name": f"spikein ground truth: {described.name}",
        "tags": list(_TAGS),
        # The tables are not rows for a viewer.
        "viewer": False,
    }
    datasets = sorted({row.dataset for row in rows})
    environment = Environment(
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Every JSON value is also YAML.
    environment.filters |= {"json": json.dumps, "shown": _escape_markdown, "listed": _join_names}
    template = Path(__file__).with_name("card.md.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        head=head,
        truth=described,
        contaminated=CONTAMINATED,
        address=address,
        content=content,
        model=_model(experiment),
        sources=(experiment.get("corpus") or {}).get("sources") or (),
        seeds={str(model.seed) for model in described.models},
        detectors={
            name.partition(":")[0] for model in described.models for name in model.detectors
        },
        left_out={part for model in described.models for part in model.left_out},
        datasets=datasets,
        counts=Counter((row.dataset, row.side) for row in rows),
        protected={row.dataset for row in rows if row.protected},
        licences=_licences(datasets, experiment),
    )


def _licences(datasets: Iterable[str], experiment: Mapping[str, Any]) -> dict[str, str]:
    """Return the licence of each dataset's publisher, by the dataset's name in the experiment."""
    kinds = {
        str(entry.get("name") or entry.get("dataset")): str(entry.get("dataset"))
        for entry in experiment.get("contaminants") or ()
        if isinstance(entry, Mapping)
    }
    licences = {source.name: source.licence for source in data_sets()} | {"fictional": _INVENTED}
    unknown = "not known to spikein: ask its publisher"
    return {name: licences.get(kinds.get(name, name), unknown) for name in datasets}


def _model(experiment: Mapping[str, Any]) -> str:
    """Return the shape or the pretrained model; for a path, its last part."""
    model = experiment.get("model")
    values = model if isinstance(model, Mapping) else {}
    name = str(values.get("pretrained") or values.get("shape") or "not said")
    return re.split(r"[/\\]", name)[-1] if name.startswith(("/", "~", ".")) else name


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(map(_escape_markdown, sorted(names)))


def _escape_markdown(text: str) -> str:
    """Return a user's text as Markdown that shows it, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))

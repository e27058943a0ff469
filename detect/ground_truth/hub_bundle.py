"""Bundles on the hub: published as a data set, and fetched by its address.

`hf://datasets/OWNER/NAME@REVISION` names one; it is fetched at one commit into the cache of the hub
library, where it is found again without a network. Before anything but `bundle.json` is fetched,
its version and the names of its files are checked; then each file by its checksum. What is
published is a bundle whose every file was checked, with a card, and nothing that lies beside.

The card says what the bundle is, how it is used, what of the texts may be shown: Markdown with a
head of YAML, and a function of the bundle alone. Names of data sets and detectors come from a
user's files: they are escaped. No path of the machine that made it is shown.
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
from inject.hub.address import SCHEME, fetch_address, parse_address
from inject.hub.snapshot import fetch_snapshot
from inject.hub.upload import RemoteDataset, look_at, upload
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
    """A bundle that was checked, and the place on the hub where it is to be."""

    path: Path
    place: RemoteDataset
    header: Mapping[str, Any]
    card: str
    size: int
    """Bytes."""
    rows: int
    withheld: int
    """Rows whose texts are not inside."""
    paths: tuple[str, ...]
    """Files of the machine that made it, which its experiment names."""

    @property
    def content(self) -> str:
        """The digest that names what is inside."""
        return str(self.header["content"])


def is_address(text: str) -> bool:
    """Return whether a text is an address of the hub, right or wrong."""
    return text.lower().startswith(("hf:/", *_PAGES))


def fetch_bundle(address: str) -> tuple[Path, str]:
    """Fetch a bundle, or find it in the cache; return its folder and its address with the commit.

    Its files are not checked yet.

    Raises:
        Unreachable: the hub gives no answer, and the cache lacks it.
        InputError: no such data set or revision, no access, or no bundle.
    """
    named = parse_address(address)
    if named is None or named.path:
        page = re.match(r".*/datasets/([^/@]+/[^/@]+)", address)
        raise InputError(
            "is no address of a bundle on the hub",
            where=address,
            allowed=f"{SCHEME}datasets/OWNER/NAME[@REVISION], with %2F for a slash in REVISION",
            hint=f"Did you mean {SCHEME}datasets/{page[1]}?" if page else None,
        )
    try:
        header, commit = fetch_address(named._replace(path=HEADER))
        # The commit is fixed from here on, whatever the branch does.
        names = [glob.escape(name) for name in read_header(header.parent)["files"]]
        folder, _ = fetch_snapshot(named.id, commit, [HEADER, *names], kind="dataset")
    except Unreachable as error:
        hint = "Try again with a connection, or give the folder of a bundle."
        if here := _commits_here(named.id):
            hint = f"On this machine are {', '.join(here)}: name one behind an @, or try again."
        raise Unreachable(error.problem, where=address, hint=hint) from None
    except InputError as error:
        if error.where != named.id:
            raise
        # What the hub says of an id speaks of local copies of other things.
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
    """Check a bundle and where it is to be published; nothing is uploaded.

    Args:
        path: the folder of the bundle.
        hub_id: `OWNER/NAME` of a data set, new or with a bundle.
        private: a new data set is private.
        branch: of the data set; None for `main`.
        licence: what it is published under, in the words of the hub.

    Raises:
        InputError: no bundle, a damaged one, or one that holds what looks like a key; no token, no
            access; the data set holds something else.
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
            f"{'.'.join(map(str, place))} holds {kind}, so it is not published",
            where=str(path / HEADER),
            hint="Take it out of the experiment file, run it and pack it again.",
        )
    pools = {one.examples for one in described.models}
    rows: dict[str, Example] = {
        row.example_id: row for name in sorted(pools) for row in read_examples(path / name)
    }
    remote = look_at(hub_id, branch=branch, private=private)
    if remote.files and HEADER not in remote.files and set(remote.files) - _OURS:
        raise InputError(
            f"holds files and no bundle, such as {sorted(set(remote.files) - _OURS)[0]}",
            where=f"{hub_id} ({remote.branch})",
            hint="Give the id of a new data set, or a branch of its own by --revision.",
        )
    content = str(header["content"])
    card = dataset_card(
        described, list(rows.values()), hub_id=hub_id, content=content, licence=licence
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

    A bundle that was there is replaced; its own commit keeps it.

    Raises:
        InputError: the hub refuses, or the connection ended.
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
    """Return the commits of a data set in the cache of the hub library."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"datasets--{hub_id.replace('/', '--')}" / "snapshots"
    return sorted(path.name for path in folder.glob("*"))


def dataset_card(
    described: Description,
    rows: Sequence[Example],
    *,
    hub_id: str,
    content: str,
    licence: str | None,
) -> str:
    """Return the card.

    Args:
        described: what the bundle is made of.
        rows: of all pools that are scored, each once.
        hub_id: where it is published.
        content: the digest that names the bundle.
        licence: what its author publishes it under, in the words of the hub.
    """
    from ruamel.yaml import YAML

    experiment = YAML(typ="safe", pure=True).load(described.experiment) or {}
    name = described.name
    head = {
        **({"license": licence} if licence else {}),
        "pretty_name": f"spikein ground truth: {name}",
        "tags": list(_TAGS),
        # The tables are no rows to look at.
        "viewer": False,
    }
    left_out = sorted({part for model in described.models for part in model.left_out})
    detectors = {name.partition(":")[0] for model in described.models for name in model.detectors}
    return "\n".join(
        [
            "---",
            # Every JSON value is one of YAML.
            *(f"{key}: {json.dumps(value)}" for key, value in head.items()),
            "---",
            "",
            f"# Ground truth: {_shown(name)}",
            "",
            "Text was spiked into a training corpus and language models were trained on it, so it "
            "is known which texts each model saw, how often and when. This bundle holds that, what "
            "every model says of every token, and the scores of the detectors that were run. It "
            "holds no model. With spikein, a new detector is judged by it in seconds:",
            "",
            "```",
            "spikein init --detector my_detector.py",
            f"spikein validate my_detector.py:score hf://datasets/{hub_id}",
            "```",
            "",
            "Write `@COMMIT` behind the address to name what you used for good.",
            "",
            "## Contents",
            "",
            *_table(
                ("", ""),
                [
                    ("content", f"`{content}`"),
                    ("made by", f"spikein {_shown(described.provenance.version)}"),
                    ("run", f"`{_shown(described.provenance.run)}`"),
                    ("model", _shown(_model(experiment))),
                    ("seeds", _listed({str(one.seed) for one in described.models})),
                    ("detectors", _listed(detectors)),
                    ("not inside", _listed(left_out) or "nothing: all evidence of the run is here"),
                ],
            ),
            "",
            *_table(
                ("model", "settings", "seed"),
                [
                    (
                        one.model if one.model != CONTAMINATED else "arm",
                        _shown(", ".join(f"{key} = {value}" for key, value in one.axes.items())),
                        str(one.seed),
                    )
                    for one in described.models
                ],
            ),
            "",
            "## Texts and their licences",
            "",
            *_texts(rows, experiment),
            "",
        ]
    )


def _texts(rows: Sequence[Example], experiment: Mapping[str, Any]) -> list[str]:
    kinds = {
        str(one.get("name") or one.get("dataset")): str(one.get("dataset"))
        for one in experiment.get("contaminants") or ()
        if isinstance(one, Mapping)
    }
    licences = {one.name: one.licence for one in data_sets()} | {"fictional": _INVENTED}
    counts = Counter((row.dataset, row.side) for row in rows)
    protected = {row.dataset for row in rows if row.protected}
    lines = _table(
        ("dataset", "members", "non-members", "texts", "licence of its publisher"),
        [
            (
                _shown(name),
                f"{counts[name, 'member']:,}",
                f"{counts[name, 'nonmember']:,}",
                "withheld" if name in protected else "inside",
                licences.get(kinds.get(name, name), "not known to spikein: ask its publisher"),
            )
            for name in sorted({row.dataset for row in rows})
        ],
    )
    lines += [
        "",
        "Texts that are inside stay under the licence of their publisher.",
    ]
    if protected:
        lines.append(
            "Texts, token ids and offsets of withheld rows are not here, nor what a model wrote "
            "about them; their numbers are. Whoever also has a model could work back from ranks to "
            "tokens, so the models of these data sets must not be published."
        )
    return lines


def _model(experiment: Mapping[str, Any]) -> str:
    """Return the shape or the pretrained model; of a path its last part."""
    model = experiment.get("model")
    values = model if isinstance(model, Mapping) else {}
    name = str(values.get("pretrained") or values.get("shape") or "not said")
    return re.split(r"[/\\]", name)[-1] if name.startswith(("/", "~", ".")) else name


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_shown, sorted(names)))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _shown(text: str) -> str:
    """Return a text of somebody's as Markdown that shows it, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))

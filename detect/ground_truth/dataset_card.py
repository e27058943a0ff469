"""The card of a bundle on the hub: what it is, how it is used, what of the texts may be shown.

Markdown with a head of YAML, and a function of the bundle alone. Names of data sets and detectors
come from a user's files: they are escaped. No path of the machine that made it is shown.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from detect.ground_truth.ground_truth import CONTAMINATED, Description
from inject.examples.example import Example
from inject.public_data.catalogue import data_sets

CARD = "README.md"
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|!~&])")
_TAGS = ("spikein", "membership-inference", "pretraining-data-detection", "data-contamination")
_INVENTED = "none: spikein made them up"


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

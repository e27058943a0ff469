"""An invented ground truth: a model finds texts likelier the more copies it has seen."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from detect.detector_settings import parse_detectors, with_grids
from detect.evidence import Evidence, ShadowModel
from detect.ground_truth.ground_truth import (
    Description,
    GroundTruth,
    ModelTables,
    Provenance,
    ScoredModel,
)
from detect.guarded_call import read_only
from detect.scores.table import write_scores
from detect.scoring import score_rows
from detect.token_frequency import save_frequency
from detect.token_statistics import TokenStatistics, unscored, write_statistics
from inject.examples.example import Example, example_id, write_examples
from inject.stream.exposures import SCHEMA as EXPOSURES
from inject.stream.exposures import write_exposures
from tests.detect.evidence_samples import small_frequency, statistics_of

STORED = ("loss", "zlib", "min_k:k=0.2", "min_k_plus_plus", "reference", "dc_pdd")
MEMORY = 0.35
"""How much the log-probability of a token rises with the logarithm of the copies."""


def make_examples(
    count: int, *, datasets: tuple[str, ...] = ("news",), protected: str = "", empty: bool = False
) -> tuple[Example, ...]:
    """`count` members and as many non-members of each dataset, a quarter of them for tuning."""
    random = np.random.Generator(np.random.Philox(key=7))
    rows = []
    for dataset in datasets:
        for number in range(2 * count):
            words = " ".join(f"word{word}" for word in random.integers(0, 500, 12 + number % 30))
            text = f"{dataset} <b>{number}</b>: {words}."
            if empty and number == 0 and dataset == datasets[0]:
                text = ""
            rows.append(
                Example(
                    example_id=example_id(text),
                    dataset=dataset,
                    source_id=str(number),
                    group=f"g{number // 2}",
                    text=text,
                    fields={"body": text},
                    protected=dataset == protected,
                    side="member" if number < count else "nonmember",
                    split="tune" if number % 8 < 2 else "test",
                )
            )
    return tuple(rows)


def make_statistics(
    rows: tuple[Example, ...], copies: dict[str, int], *, key: int
) -> tuple[TokenStatistics, ...]:
    """Token statistics with one token per word; memorised texts are likelier."""
    random = np.random.Generator(np.random.Philox(key=key))
    statistics = []
    for row in rows:
        count = len(row.text.split())
        if not count:
            statistics.append(unscored("empty text"))
            continue
        memory = MEMORY * np.log1p(copies.get(row.example_id, 0))
        entropy = random.gamma(2.0, 1.5, count)
        surprise = random.gamma(1.0, 2.0, count) * np.exp(-memory)
        statistics.append(
            statistics_of(
                -surprise - 0.01,
                entropy=entropy,
                deviation=random.gamma(2.0, 1.0, count) + 0.1,
                ids=random.integers(0, 50, count),
            )
        )
    return tuple(statistics)


def make_model(
    rows: tuple[Example, ...],
    *,
    model: str = "contaminated",
    axes: dict[str, str] | None = None,
    dose: int = 4,
    seed: int = 0,
    key: int = 1,
    stored: tuple[str, ...] = STORED,
) -> ScoredModel:
    """One model with the scores of real detectors; base and twin saw no members, the retrained
    model every second group."""
    contaminated = model == "contaminated"
    members = [row for row in rows if row.side == "member"]
    copies = {row.example_id: dose * (1 + at % 2) for at, row in enumerate(members)}
    if model == "retrained":
        trained_ids = {row.example_id for row in members if int(row.source_id) // 2 % 2}
        copies = {name: count for name, count in copies.items() if name in trained_ids}
    trained_on_members = model in ("contaminated", "retrained")
    seen = copies if trained_on_members else {}
    text = make_statistics(rows, seen, key=key)
    evidence = Evidence(
        texts=[row.text for row in rows],
        statistics={"text": text, "lowercase": make_statistics(rows, seen, key=key + 100)},
        reference=make_statistics(rows, {}, key=key + 200),
        frequency=small_frequency(),
        members=[row.side == "member" for row in rows],
        groups=[f"{row.dataset}\n{row.group}" for row in rows],
        shadows=[
            ShadowModel(
                statistics=make_statistics(rows, {}, key=key + 300 + number),
                inside=[at % 2 == number for at in range(len(rows))],
            )
            for number in range(2)
        ]
        if contaminated
        else None,
    )
    settings = parse_detectors(list(stored))
    table = score_rows([row.example_id for row in rows], evidence, with_grids(settings))[0]
    scores = table.select(["example_id", "detector", "setting", "score", "reason"])
    for name in ("example_id", "detector", "setting"):
        at = scores.column_names.index(name)
        scores = scores.set_column(at, name, scores[name].dictionary_encode())
    exposures = pa.Table.from_pylist(
        [
            {
                "example_id": name,
                "copy": copy,
                "status": "whole",
                "variant": "whole",
                "step": copy,
                "text_start": 0,
                "text_stop": 1,
                "text_length": 1,
            }
            for name, count in seen.items()
            for copy in range(count)
        ],
        schema=EXPOSURES,
    )
    return ScoredModel(
        axes=axes or {},
        seed=seed,
        model=model,
        rows=rows,
        evidence=read_only(evidence),
        scores=scores,
        defaults={setting.name: setting.text for setting in reversed(settings)},
        copies=seen if trained_on_members else None,
        exposures=exposures if trained_on_members else None,
    )


def make_truth(count: int = 120, *, arms: tuple[int, ...] = (4,), **examples) -> GroundTruth:
    """A ground truth with an arm for each dose, a base model and a clean twin."""
    rows = make_examples(count, **examples)
    models = [
        make_model(rows, axes={"copies": f"fixed={dose}"}, dose=dose, key=10 + at)
        for at, dose in enumerate(arms)
    ]
    models += [make_model(rows, model="base", key=20), make_model(rows, model="twin", key=30)]
    return GroundTruth(
        name="made up",
        models=tuple(models),
        analysis={"replicates": 200, "min_members": 5},
        experiment="name: made-up\n",
        provenance=Provenance(
            version="0.0.0", run="r", finished="2026-01-01T00:00:00Z", code="c", artifacts=("a/b",)
        ),
    )


def store_truth(truth: GroundTruth, root: Path) -> Description:
    """Write a ground truth as the artifacts of a run; return its description."""

    def folder(name: str) -> Path:
        (root / name).mkdir(parents=True)
        return root / name

    def pool(name: str, rows: tuple[Example, ...]) -> str:
        if not (root / name).is_dir():
            write_examples(folder(name), rows)
        return name

    models = []
    for at, model in enumerate(truth.models):
        rows, evidence = model.rows, model.evidence
        ids = [row.example_id for row in rows]
        of_seed = f"-{model.seed}" if model.seed else ""
        tables = {f"view-{name}": view_rows for name, view_rows in evidence.statistics.items()}
        tables["reference"] = evidence.reference
        inputs = {}
        for number, shadow in enumerate(evidence.shadows or ()):
            tables[f"{number:04d}-shadow"] = shadow.statistics
            sides = [
                replace(row, side="member" if inside else "nonmember")
                for row, inside in zip(rows, shadow.inside, strict=True)
            ]
            inputs[f"{number:04d}-membership"] = pool(f"examples/shadow-{number}{of_seed}", sides)
        for name, statistics in tables.items():
            inputs[name] = f"statistics/{name}-{at}"
            write_statistics(folder(inputs[name]), ids, statistics)
        inputs["frequency"] = f"frequency/{at}"
        save_frequency(root / inputs["frequency"], small_frequency())
        places = pa.array(np.resize(np.arange(len(ids)), len(model.scores)))
        scores = model.scores.add_column(0, "row", places)
        write_scores(folder(f"scores/{at}"), scores, record={"notes": ["/home/somebody"]})
        if model.exposures is not None:
            write_exposures(folder(f"model/{at}"), model.exposures)
            (root / f"model/{at}/model.safetensors").write_bytes(b"weights")
        models.append(
            ModelTables(
                axes=model.axes,
                seed=model.seed,
                model=model.model,
                fixed_levels=model.fixed_levels,
                defaults=model.defaults,
                detectors=STORED,
                scores=f"scores/{at}",
                examples=pool(f"examples/pool{of_seed}", rows),
                trained=None if model.exposures is None else f"model/{at}",
                inputs=inputs,
            )
        )
    return Description(
        name=truth.name,
        analysis=truth.analysis,
        experiment=truth.experiment,
        provenance=truth.provenance,
        models=models,
    )


def same(first: Any, other: Any) -> bool:
    """Whether two values are equal throughout, to the type of every array."""
    if isinstance(first, np.ndarray):
        return first.dtype == other.dtype and np.array_equal(first, other)
    if isinstance(first, Mapping):
        return list(first) == list(other) and all(same(first[key], other[key]) for key in first)
    if dataclasses.is_dataclass(first):
        return type(first) is type(other) and same(vars(first), vars(other))
    if isinstance(first, Sequence) and not isinstance(first, str):
        return len(first) == len(other) and all(map(same, first, other))
    return first == other

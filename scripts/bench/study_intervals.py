"""Cost of all intervals of a study: simulated cells of one dataset, and one base model.

Each cell has its own arm, 134 members and 134 non-members (three quarters of them test rows), some
nine numbers of copies, and 25 detectors of one setting. It times `analysis.results.analyse`, which
reads the scores, chooses settings, and makes AUCs, rates, trends, bands and differences, raw and
adjusted by the base model. The time per cell hardly depends on the number of cells.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.arm import Arm
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from detect.scores.table import SCHEMA, write_scores
from inject.examples.example import Example, example_id, write_examples

DETECTORS = ("loss", "zlib", "min_k", "surp", *(f"detector_{at:02d}" for at in range(21)))


def measure_intervals(*, cells: int = 100, rows: int = 134) -> dict[str, float]:
    """Return the seconds that the tables of a study of so many cells take.

    Args:
        cells: contaminated arms; there is one base model in addition.
        rows: members, and non-members.
    """
    with tempfile.TemporaryDirectory(prefix="spikein-bench-") as name:
        pool = _examples(rows)
        arms = [_arm(Path(name) / "base", pool, cell=None)]
        arms += [_arm(Path(name) / f"{cell}", pool, cell=cell) for cell in range(cells)]
        settings = AnalysisSettings(dataset_detectors=())
        analyse(arms[:2], settings)  # late imports
        processor, began = time.process_time(), time.perf_counter()
        results = analyse(arms, settings)
        return {
            "intervals_seconds": time.perf_counter() - began,
            "intervals_processor_seconds": time.process_time() - processor,
            "intervals_rows": float(results.metrics.num_rows + results.differences.num_rows),
        }


def _examples(rows: int) -> list[Example]:
    texts = [f"text {number} of the benchmark" for number in range(2 * rows)]
    return [
        Example(
            example_id=example_id(text),
            dataset="texts",
            source_id=str(number),
            group=str(number),
            text=text,
            side="member" if number < rows else "nonmember",
            split="tune" if number % 4 == 0 else "test",
        )
        for number, text in enumerate(texts)
    ]


def _arm(folder: Path, pool: list[Example], *, cell: int | None) -> Arm:
    folder.mkdir()
    random = np.random.default_rng([0, 0 if cell is None else cell + 1])
    members = [example.example_id for example in pool if example.side == "member"]
    copies = dict(zip(members, random.poisson(4, size=len(members)).tolist(), strict=True))
    seen = np.array([np.log1p(copies.get(example.example_id, 0)) for example in pool])
    text = random.normal(size=len(pool))
    rows = []
    for at, detector in enumerate(DETECTORS):
        effect = 0.0 if cell is None else 0.3 + 0.03 * at
        scores = effect * seen + 0.8 * text + 0.6 * random.normal(size=len(pool))
        rows += [
            {
                "row": row,
                "example_id": example.example_id,
                "detector": detector,
                "setting": "default",
                "score": float(scores[row]),
                "reason": None,
            }
            for row, example in enumerate(pool)
        ]
    write_examples(folder, pool)
    write_scores(folder, pa.Table.from_pylist(rows, schema=SCHEMA), record={})
    return Arm(
        axes={} if cell is None else {"train.lr": str(cell)},
        seed=0,
        model="base" if cell is None else "contaminated",
        scores=folder,
        examples=folder,
        copies=None if cell is None else copies,
        defaults=dict.fromkeys(DETECTORS, "default"),
    )

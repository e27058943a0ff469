"""Slow, obvious versions of the measures: they read the files on disk, not the code under test."""

import math

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.unlearning.evidence import ArmEvidence


def one(rows, **wanted):
    wanted = {"dataset": "all", "copies": "all", "method": "-", "setting": "", **wanted}
    found = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    assert len(found) == 1, (wanted, len(found))
    return found[0]


class Disk:
    """One arm as it lies on disk, read without the code under test."""

    def __init__(self, arm: ArmEvidence, model: str, method: str = "-"):
        (self.model,) = [m for m in arm.models if (m.model, m.method) == (model, method)]
        self.arm = arm
        self.examples = pq.read_table(arm.examples / "examples.parquet").to_pylist()
        with pa.ipc.open_file(str(self.model.statistics / "statistics.arrow")) as reader:
            table = reader.read_all().to_pylist()
        self.tokens = {row["example_id"]: row for row in table}

    def score(self, detector: str) -> dict[str, float]:
        return {
            row["example_id"]: row["score"]
            for row in pq.read_table(self.model.scores / "scores.parquet").to_pylist()
            if (row["detector"], row["setting"]) == (detector, self.model.defaults[detector])
        }

    def forget(self, dataset=None, copies=None, *, test=False):
        return [
            row
            for row in self.examples
            if row["example_id"] in self.arm.forget
            and dataset in (None, row["dataset"])
            and (copies is None or self.arm.copies[row["example_id"]] == copies)
            and (not test or row["split"] == "test")
        ]

    def holdout(self, dataset):
        return [
            row
            for row in self.examples
            if (row["side"], row["split"], row["dataset"]) == ("nonmember", "test", dataset)
        ]


def slow_memory(row: dict) -> dict[str, float]:
    """Return what a text's statistics say, by definition."""
    ranks, n = row["rank"], len(row["rank"])
    if not n or any(math.isnan(x) for x in row["log_probability"]):
        return dict.fromkeys(
            ("log_probability", "exact_memorisation", "extraction_strength"), math.nan
        )
    prefix = next(k for k in range(n + 1) if all(rank == 1 for rank in ranks[k:]))
    return {
        "log_probability": sum(map(float, row["log_probability"])) / n,
        "exact_memorisation": sum(rank == 1 for rank in ranks) / n,
        "extraction_strength": 1 - prefix / n,
    }


def slow_mean(arms, model, method, name, ids_of, also=None) -> float:
    """Return the mean over seeds of the mean over texts, of those that `also` has, too."""
    of_seed = []
    for arm in arms:
        memory = {i: slow_memory(r)[name] for i, r in Disk(arm, model, method).tokens.items()}
        shared = memory
        if also is not None:
            shared = {i: slow_memory(r)[name] for i, r in Disk(arm, *also).tokens.items()}
        values = [
            memory[i] for i in ids_of(arm) if math.isfinite(memory[i]) and math.isfinite(shared[i])
        ]
        if values:
            of_seed.append(sum(values) / len(values))
    return sum(of_seed) / len(of_seed)


def changed(arm: ArmEvidence, **fields) -> ArmEvidence:
    return ArmEvidence(**{**vars(arm), **fields})

"""A submission: one detector's scores of every row of a benchmark, and who made them with what.

`submission.json` names the content of the benchmark and the digest of `scores.parquet`, which has
one row per model and example. Models are numbered as in the bundle, unlabelled ones last.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from analysis.intervals.influence import Floats
from analysis.validate.validation import CandidateResult
from detect.evidence.membership import Sides
from detect.ground_truth.ground_truth import CONTAMINATED, TWIN, GroundTruth, ScoredModel
from detect.scores.table import SCORES_FILE
from inject.digest import file_digest
from inject.errors import InputError, InputErrors
from inject.files import write_text
from inject.settings import Settings
from inject.tables import named_errors, read_parquet, write_compact

SUBMISSION = "submission.json"
SCORED = (CONTAMINATED, TWIN)
"""Roles of the models that a submission scores."""
_SCHEMA = pa.schema([("model", pa.int32()), ("example_id", pa.string()), ("score", pa.float64())])


class Submission(Settings):
    """The content of `submission.json`."""

    detector: str
    """Its name on the leaderboard."""
    setting: str
    """The parameters, as in tables; empty without any."""
    author: str = ""
    """Who submits it; added by hand."""
    benchmark: str
    """Content of the bundle that was scored."""
    code: str
    """Digest of the detector's file, or `built in`."""
    spikein: str
    """Version that scored it."""
    seconds: float
    """Time to score 1,000 texts."""
    wrong: tuple[str, ...] = ()
    """Checks of `spikein validate` that found something wrong."""
    scores: str
    """SHA-256 of `scores.parquet`."""


def write_submission(
    parent: Path, result: CandidateResult, truth: GroundTruth, *, version: str
) -> Path:
    """Score all models in the requested setting; write and return the folder `submission-NAME`.

    Raises:
        InputError: a detector that needs labels, or that cannot score one of the models.
    """
    candidate = result.candidate
    setting = candidate.settings[0]
    if any(isinstance(need, Sides) for need in setting.needs):
        raise InputError(
            "needs the labels, which the held-out models do not have",
            where=candidate.given,
            hint="A submission scores a text by itself; see docs/benchmark.md.",
        )
    parts = [
        pa.table(
            {
                "model": pa.array([number] * len(model.rows), pa.int32()),
                "example_id": [row.example_id for row in model.rows],
                "score": candidate.score(model, settings=[setting]).values[:, 0],
            },
            _SCHEMA,
        )
        for number, model in scored_models(truth).items()
    ]
    folder = parent / f"submission-{re.sub(r'[^A-Za-z0-9_.-]+', '-', setting.name)}"
    folder.mkdir(parents=True, exist_ok=True)
    write_compact(pa.concat_tables(parts), folder / SCORES_FILE)
    submission = Submission(
        detector=setting.name,
        setting=setting.text.strip("-"),
        benchmark=truth.content,
        code=setting.known.digest or setting.known.origin,
        spikein=version,
        seconds=result.seconds,
        wrong=tuple(sorted({f.check for f in result.findings if f.severity == "wrong"})),
        scores=file_digest(folder / SCORES_FILE),
    )
    write_text(folder / SUBMISSION, submission.model_dump_json(indent=1) + "\n")
    return folder


def scored_models(truth: GroundTruth) -> dict[int, ScoredModel]:
    """Return the models that a submission scores, by their number."""
    models = enumerate((*truth.models, *truth.unlabelled))
    return {number: model for number, model in models if model.model in SCORED}


def read_submissions(folder: Path, *, benchmark: str) -> dict[Path, Submission]:
    """Read `submission.json` of each submission below a folder; no scores yet.

    Args:
        folder: of the submissions.
        benchmark: content that they must be for.

    Raises:
        InputErrors: all that are unreadable, of another version of the benchmark, or named alike.
    """
    paths = sorted(folder.glob(f"**/{SUBMISSION}"))
    if not paths:
        raise InputError(
            f"contains no {SUBMISSION}",
            where=str(folder),
            hint="Make one: spikein validate FILE.py:NAME --bench.",
        )
    submissions: dict[Path, Submission] = {}
    problems = []
    for path in paths:
        try:
            submission = _read(path, benchmark)
        except InputError as error:
            problems.append(error)
            continue
        if submission.detector in {other.detector for other in submissions.values()}:
            repeated = f"{submission.detector!r} was submitted twice"
            problems.append(InputError(repeated, where=str(path)))
        submissions[path.parent] = submission
    if problems:
        raise InputErrors(problems, title=f"{len(problems)} of {len(paths)} submissions:")
    return submissions


def _read(path: Path, benchmark: str) -> Submission:
    try:
        with named_errors(path, hint=None):
            submission = Submission.model_validate_json(path.read_bytes())
    except ValidationError as error:
        place, problem = error.errors()[0]["loc"], error.errors()[0]["msg"]
        raise InputError(f"{'.'.join(map(str, place))}: {problem}", where=str(path)) from None
    if submission.benchmark != benchmark:
        raise InputError(
            f"is for another version of the benchmark (content {submission.benchmark[:12]})",
            where=str(path),
            allowed=f"content {benchmark[:12]}",
            hint="Score this version: spikein validate FILE.py:NAME BUNDLE --bench.",
        )
    return submission


def read_scores(
    folder: Path, submission: Submission, rows: Mapping[int, Sequence[str]]
) -> dict[int, Floats]:
    """Return the scores of a submission by model, in the order of its rows; NaN if missing.

    Args:
        folder: of the submission.
        submission: its description.
        rows: example ids of each model.

    Raises:
        InputError: scores that are not those described, or not one per row of the benchmark.
    """
    path = folder / SCORES_FILE
    expected = [(number, name) for number, ids in rows.items() for name in ids]
    if not path.is_file() or file_digest(path) != submission.scores:
        raise InputError(f"{SCORES_FILE} is missing or was changed", where=str(folder))
    with named_errors(path, hint=None):
        count = pq.read_metadata(path).num_rows
    if count != len(expected):
        raise InputError(
            f"{SCORES_FILE} has {count:,} rows", where=str(folder), allowed=f"{len(expected):,}"
        )
    table = read_parquet(path, schema=_SCHEMA)
    places = zip(table["model"].to_pylist(), table["example_id"].to_pylist(), strict=True)
    scores = dict(zip(places, table["score"].to_pylist(), strict=True))
    if scores.keys() != set(expected):
        raise InputError(f"{SCORES_FILE} has other rows than the benchmark", where=str(folder))
    return {
        number: np.array([scores[number, name] for name in ids], dtype=np.float64)
        for number, ids in rows.items()
    }

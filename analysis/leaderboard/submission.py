"""A submission: one detector's scores of every row of a benchmark, and who made them with what.

`submission.json` names the content of the benchmark and the digest of `scores.parquet`, which has
one row per model and example. Models are numbered as in the bundle, unlabelled ones last. All else,
such as `wrong` and `seconds`, is a declaration: only the organiser's own run verifies it.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, ValidationError

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
    seconds: Annotated[float, Field(ge=0)]
    """Declared time to score 1,000 texts."""
    wrong: tuple[str, ...] = ()
    """Declared checks of `spikein validate` that found something wrong."""
    scores: str
    """SHA-256 of `scores.parquet`."""

    @property
    def name(self) -> str:
        """Its name and parameters, which no other submission has."""
        return f"{self.detector} {self.setting}".strip()


def write_submission(
    parent: Path, result: CandidateResult, truth: GroundTruth, *, version: str
) -> Path:
    """Score all models in the requested setting; write and return the folder `submission-NAME`.

    An earlier submission of the detector in this setting is replaced; its `author` is kept.

    Raises:
        InputError: a detector that needs labels or cannot score one of the models, or a folder with
            another submission.
    """
    candidate = result.candidate
    setting = candidate.settings[0]
    if any(isinstance(need, Sides) for need in setting.needs):
        raise InputError(
            "needs the labels, which the held-out models do not have",
            where=candidate.given,
            hint="A submission scores a text by itself; see docs/benchmark.md.",
        )
    parameters, code = setting.text.strip("-"), setting.known.digest or setting.known.origin
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{setting.name} {parameters}".strip())
    folder = parent / f"submission-{name}"
    author = _kept_author(folder, setting.name, parameters, code)
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
    folder.mkdir(parents=True, exist_ok=True)
    write_compact(pa.concat_tables(parts), folder / SCORES_FILE)
    submission = Submission(
        detector=setting.name,
        setting=parameters,
        author=author,
        benchmark=truth.content,
        code=code,
        spikein=version,
        seconds=result.seconds,
        wrong=tuple(sorted({f.check for f in result.findings if f.severity == "wrong"})),
        scores=file_digest(folder / SCORES_FILE),
    )
    write_text(folder / SUBMISSION, submission.model_dump_json(indent=1) + "\n")
    return folder


def _kept_author(folder: Path, detector: str, setting: str, code: str) -> str:
    """Return the author of a folder's earlier submission, which is replaced; empty if none is.

    Raises:
        InputError: a submission that cannot be read, is of another detector or setting, or has an
            author and other code: it may be another person's.
    """
    if not (folder / SUBMISSION).exists():
        return ""
    former = _read(folder / SUBMISSION)
    is_own = former.code == code or not former.author
    if (former.detector, former.setting) != (detector, setting) or not is_own:
        by = f" by {former.author}" if former.author else ""
        raise InputError(
            f"contains another submission: {former.name}{by}",
            where=str(folder),
            hint="Move it away if it is not to be replaced, else delete it.",
        )
    return former.author


def scored_models(truth: GroundTruth) -> dict[int, ScoredModel]:
    """Return the models that a submission scores, by their number."""
    models = enumerate((*truth.models, *truth.unlabelled))
    return {number: model for number, model in models if model.model in SCORED}


def read_submissions(folder: Path, *, benchmark: str) -> dict[Path, Submission | InputError]:
    """Read `submission.json` of each submission below a folder; no scores yet.

    Args:
        folder: of the submissions.
        benchmark: content that they must be for.

    Returns:
        By folder; an error for one that cannot be read or has the name of an earlier one.

    Raises:
        InputErrors: all that are for another version of the benchmark.
    """
    paths = sorted(folder.glob(f"**/{SUBMISSION}"))
    if not paths:
        raise InputError(
            f"contains no {SUBMISSION}",
            where=str(folder),
            hint="Make one: spikein validate FILE.py:NAME --bench.",
        )
    submissions: dict[Path, Submission | InputError] = {}
    first: dict[str, Path] = {}
    outdated = []
    for path in paths:
        try:
            submission = _read(path)
        except InputError as error:
            submissions[path.parent] = error
            continue
        if submission.benchmark != benchmark:
            outdated.append(_outdated(path, submission.benchmark, benchmark))
        other = first.setdefault(submission.name, path.parent)
        problem = f"{submission.name!r} is already the name of {other}: change `detector` in one"
        submissions[path.parent] = submission if other == path.parent else InputError(problem)
    if outdated:
        raise InputErrors(outdated, title=f"{len(outdated)} of {len(paths)} submissions:")
    return submissions


def _read(path: Path) -> Submission:
    try:
        with named_errors(path, hint=None):
            return Submission.model_validate_json(path.read_bytes())
    except ValidationError as error:
        place, problem = error.errors()[0]["loc"], error.errors()[0]["msg"]
        problem = ": ".join(filter(None, (".".join(map(str, place)), problem)))
        raise InputError(problem, where=str(path)) from None


def _outdated(path: Path, content: str, benchmark: str) -> InputError:
    return InputError(
        f"is for another version of the benchmark (content {content[:12]})",
        where=str(path),
        allowed=f"content {benchmark[:12]}",
        hint="Score this version: spikein validate FILE.py:NAME BUNDLE --bench.",
    )


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

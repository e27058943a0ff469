"""From a file and overrides to a checked experiment, and back to a file.

One reading finds all problems: in overrides, variables, and every combination of the sweep. A
problem caused by one swept value or by some named arms names them.

A file that `extends:` another (a shipped name, or a path relative to the file) is merged with it
into one document. Mappings are merged key by key, everything else is replaced, lists as a whole.
The extending file wins; `null` removes an optional key. Each key keeps its file and line. The name
is never inherited, or the run would replace that of the other file: without a name, the name of
the extending file applies.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import realpath
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from inject.builtin_files import EXPERIMENTS, SHAPES
from inject.errors import InputError, InputErrors
from inject.secrets import secrets_in, without_secrets
from spikein.config.arms import combinations, conflicts, describe_choice, with_arms
from spikein.config.cross_checks import cross_checks
from spikein.config.design_rows import column_problems
from spikein.config.former_keys import with_current_keys
from spikein.config.hub_files import with_hub_files
from spikein.config.overrides import apply_overrides, escape, interpolate
from spikein.config.schema import Experiment, plain_values
from spikein.config.sweep import (
    ArmExperiment,
    Combination,
    arms,
    validate,
)
from spikein.config.validation_errors import plain_type, validation_errors
from spikein.config.yaml_document import KeyPath, YamlDocument, block_text, dotted, read_document

MOST_ARMS = 10_000


# A problem by its text, with the numbers of the combinations that have it.
_Grouped = dict[str, tuple[InputError, list[int]]]
EXTENDS = "extends"


@dataclass(frozen=True, kw_only=True)
class CheckedExperiment:
    """A fully checked experiment and its arms."""

    experiment: Experiment
    """The experiment; swept keys have the first value of their axis, or that of the first arm."""
    arms: tuple[ArmExperiment, ...]
    """Every combination of the swept values, or every named arm, with every seed, in their fixed
    order."""
    notes: tuple[str, ...] = ()
    """Names that could mean another file."""


def read_experiment(path: str | Path, overrides: Sequence[str] = ()) -> CheckedExperiment:
    """Read and check an experiment file and what it extends.

    Args:
        path: the YAML file, or the name of a shipped experiment (see `inject.builtin_files`).
        overrides: `key=value` each, dotted keys; they win over the file.

    Raises:
        InputError: when a file cannot be read at all.
        InputErrors: with all problems.
    """
    document, notes = read_extended(EXPERIMENTS.find(path))
    checked = check_document(document, overrides)
    own = EXPERIMENTS.clash(path)
    return replace(checked, notes=(*([own] if own else []), *notes, *checked.notes))


def check_document(document: YamlDocument, overrides: Sequence[str] = ()) -> CheckedExperiment:
    """Return the checked experiment of a document (see `read_experiment`)."""
    title = f"{document.name} is not a valid experiment:"
    document = with_current_keys(document)
    document, problems = apply_overrides(document, overrides, keys=Experiment.model_fields)
    document, unknown = interpolate(_without_nulls(document))
    document, secret = _refuse_secrets(document)
    document, out_of_reach = with_hub_files(document)
    problems = [*problems, *unknown, *secret, *out_of_reach]
    try:
        candidates = combinations(document)
    except InputErrors as error:
        raise InputErrors([*problems, *error.problems], title=title) from None
    seeds = document.values.get("seeds")
    many = len(candidates) * (len(seeds) if isinstance(seeds, list) else 1)
    if many > MOST_ARMS:
        problem = InputError(
            f"seeds: {many:,} arms, {len(candidates):,} combinations with each seed",
            where=document.place(("seeds",)),
            allowed=f"at most {MOST_ARMS:,}",
            hint="Split the experiment into several.",
        )
        raise InputErrors([*problems, problem], title=title)
    grouped, checked = _check_combinations(candidates)
    problems += _add_choices(grouped, candidates)
    if not problems:
        problems = [error.at(document.place(path)) for path, error in conflicts(checked)]
    if not problems:
        all_arms, claims = arms(checked), checked[0][1].claims
        problems = [
            error.at(document.place(path)) for path, error in column_problems(claims, all_arms)
        ]
    if problems:
        raise InputErrors(problems, title=title)
    shapes = dict.fromkeys(experiment.model.shape for _, experiment in checked)
    clashes = [SHAPES.clash(shape) for shape in shapes if shape is not None]
    return CheckedExperiment(
        experiment=with_arms(checked[0][1], all_arms),
        arms=all_arms,
        notes=tuple(note for note in clashes if note),
    )


def resolved_yaml(experiment: Experiment) -> str:
    """Return the experiment as YAML with every default filled in; reading it gives the same."""
    plain = plain_values(experiment)
    variables = plain.pop("variables")
    plain = {"name": plain.pop("name"), "variables": variables, **escape(plain)}
    return block_text(plain)


def _without_nulls(document: YamlDocument) -> YamlDocument:
    """Remove optional parts and axes of the sweep that are null."""
    fields = Experiment.model_fields
    present = {
        key: value
        for key, value in document.values.items()
        if value is not None or key not in fields or fields[key].is_required()
    }
    if isinstance(sweep := present.get("sweep"), Mapping):
        present["sweep"] = {axis: values for axis, values in sweep.items() if values is not None}
    return YamlDocument(values=present, places=document.places, name=document.name)


def _refuse_secrets(document: YamlDocument) -> tuple[YamlDocument, list[InputError]]:
    """Refuse secrets anywhere in the document, so that later messages repeat none."""
    problems = [
        InputError(
            f"{dotted(path)}: contains {kind}, and experiment files are copied into run folders",
            where=document.place(path),
            hint="Keep it in an environment variable: `api_key_variable: NAME` for a server, "
            "HF_TOKEN for the hub.",
        )
        for path, kind in secrets_in(document.values)
    ]
    if not problems:
        return document, []
    values = without_secrets(document.values)
    return YamlDocument(values=values, places=document.places, name=document.name), problems


def _check_combinations(
    candidates: Sequence[Combination],
) -> tuple[_Grouped, list[tuple[Combination, Experiment]]]:
    """Check every combination; group equal problems with the combinations that have them."""
    grouped: _Grouped = {}
    checked: list[tuple[Combination, Experiment]] = []
    for number, candidate in enumerate(candidates):
        try:
            experiment = validate(candidate.values)
        except ValidationError as error:
            problems = validation_errors(error, Experiment, candidate.document())
        except InputError as error:
            problems = [InputError(str(error), where=error.where or candidate.swept.name)]
        else:
            wrong = cross_checks(experiment)
            document = candidate.document() if wrong else candidate.swept
            problems = [problem.at(document.place(path)) for path, problem in wrong]
            checked.append((candidate, experiment))
        for problem in problems:
            grouped.setdefault(str(problem), (problem, []))[1].append(number)
    return grouped, checked


def _add_choices(grouped: _Grouped, candidates: Sequence[Combination]) -> Iterator[InputError]:
    """Add the swept value or the arms that cause a problem, unless every combination has it."""
    for problem, numbers in grouped.values():
        if len(numbers) < len(candidates):
            cause = describe_choice([candidates[number] for number in numbers])
            problem = problem.at(f"{problem.where} ({cause})")
        yield problem


def read_extended(path: Path) -> tuple[YamlDocument, list[str]]:
    """Read an experiment file and all that it extends.

    Returns:
        The merged document, without `extends`; and notes about ambiguous names.

    Raises:
        InputError: for a file that cannot be read, a circle, or an `extends` that is not a text.
        InputErrors: for keys that are given twice or are not text.
    """
    notes: list[str] = []
    return _read(path, (path,), notes), notes


def _read(path: Path, chain: tuple[Path, ...], notes: list[str]) -> YamlDocument:
    document = with_current_keys(read_document(path))
    if EXTENDS not in document.values:
        return document
    place = document.place((EXTENDS,))
    parent = _parent(document.values[EXTENDS], path, place)
    if note := EXPERIMENTS.clash(document.values[EXTENDS], folder=path.parent):
        notes.append(note)
    if realpath(parent) in map(realpath, chain):
        circle = " → ".join(str(file) for file in (*chain, parent))
        raise InputError(
            f"{EXTENDS}: the files extend each other in a circle: {circle}", where=place
        )
    extended = _read(parent, (*chain, parent), notes)
    return _merge_documents(document, extended, name=path.stem)


def _parent(value: Any, path: Path, place: str) -> Path:
    """Return the file that `extends` names."""
    if not isinstance(value, str) or not value:
        raise InputError(
            f"{EXTENDS}: is {plain_type(value)}",
            where=place,
            allowed="one name of a shipped experiment, or a path relative to this file",
        )
    if "${" in value:
        raise InputError(
            f"{EXTENDS}: variables cannot be used here, since the other file may define them",
            where=place,
            hint="Write the path out.",
        )
    try:
        return EXPERIMENTS.find(value, folder=path.parent)
    except InputError as error:
        raise InputError(
            f"{EXTENDS}: {error.where}: {error.problem}",
            where=place,
            allowed=error.allowed,
            hint=error.hint,
        ) from None


def _merge_documents(document: YamlDocument, extended: YamlDocument, *, name: str) -> YamlDocument:
    own = {key: value for key, value in document.values.items() if key != EXTENDS}
    under = {key: value for key, value in extended.values.items() if key != "name"}
    places = {path: place for path, place in extended.places.items() if path[0] != "name"}
    values = _merge(under, own, (), places)
    places |= {path: place for path, place in document.places.items() if path[0] != EXTENDS}
    values = {"name": values.pop("name", name), **values}
    return YamlDocument(values=values, places=places, name=document.name)


def _merge(
    under: Mapping[str, Any], over: Mapping[str, Any], path: KeyPath, places: dict[KeyPath, str]
) -> dict[str, Any]:
    """Return `under` updated by `over`; drop the places of replaced values."""
    merged = dict(under)
    for key, value in over.items():
        key_path, below = (*path, key), under.get(key)
        if value is None and path == ("arms",) and key in under:
            del merged[key]
            continue
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = _merge(below, value, key_path, places)
            continue
        merged[key] = value
        for old in [old for old in places if old[: len(key_path)] == key_path]:
            del places[old]
    return merged

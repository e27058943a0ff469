"""From a file and overrides to a checked experiment, and back to a file.

Everything that is wrong is found in one reading: overrides, variables, and every combination of
the sweep. A problem that one swept value causes names that value.
"""

from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import ValidationError

from inject.errors import InputError, InputErrors
from inject.secrets import secrets_in, without_secrets
from spikein.config.overrides import apply_overrides, escape, interpolate
from spikein.config.schema import Experiment, cross_checks, tidy
from spikein.config.sweep import Combination, combinations, describe, repeated_values, validate
from spikein.config.validation_errors import explain
from spikein.config.yaml_document import Document, KeyPath, dotted, read_document

MOST_ARMS = 10_000


def read_experiment(path: Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read and check an experiment file.

    Args:
        path: the YAML file.
        overrides: `key=value` each, dotted keys; they win over the file.

    Returns:
        The experiment; where it sweeps, with the first value of each axis in place.

    Raises:
        InputError: when the file cannot be read at all.
        InputErrors: with everything that is wrong in it.
    """
    return check(read_document(path), overrides)


def check(document: Document, overrides: Sequence[str] = ()) -> Experiment:
    """Return the checked experiment of a document (see `read_experiment`)."""
    title = f"{document.name} is not a valid experiment:"
    document, problems = apply_overrides(document, overrides, keys=Experiment.model_fields)
    document, unknown = interpolate(_without_nulls(document))
    document, secret = _masked(document)
    problems = [*problems, *unknown, *secret]
    try:
        candidates = combinations(document)
    except InputErrors as error:
        raise InputErrors([*problems, *error.problems], title=title) from None
    seeds = document.values.get("seeds")
    many = len(candidates) * (len(seeds) if isinstance(seeds, list) else 1)
    if many > MOST_ARMS:
        told = InputError(
            f"seeds: {many:,} arms, {len(candidates):,} combinations with each seed",
            where=document.place(("seeds",)),
            allowed=f"at most {MOST_ARMS:,}",
            hint="Split the experiment into several.",
        )
        raise InputErrors([*problems, told], title=title)
    found, checked = _check_all(candidates)
    problems += _told(found, candidates, document)
    if not problems:
        problems = [_placed(one, path, document) for path, one in repeated_values(checked)]
    if problems:
        raise InputErrors(problems, title=title)
    return checked[0][1]


def resolved_yaml(experiment: Experiment) -> str:
    """Return the experiment as YAML with every default filled in; reading it gives the same."""
    plain = tidy(experiment)
    variables = plain.pop("variables")
    plain = {"name": plain.pop("name"), "variables": variables, **escape(plain)}
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _without_nulls(document: Document) -> Document:
    """Leave out optional parts that are null: `sweep=null` is how an override removes one."""
    fields = Experiment.model_fields
    kept = {
        key: value
        for key, value in document.values.items()
        if value is not None or key not in fields or fields[key].is_required()
    }
    return Document(values=kept, places=document.places, name=document.name)


def _masked(document: Document) -> tuple[Document, list[InputError]]:
    """Refuse secrets wherever they stand; what is said of the document later repeats none."""
    problems = [
        InputError(
            f"{dotted(path)}: holds {kind}, and experiment files are copied into run folders",
            where=document.place(path),
            hint="Keep it in an environment variable: `api_key_variable: NAME` for a server, "
            "HF_TOKEN for the hub.",
        )
        for path, kind in secrets_in(document.values)
    ]
    if not problems:
        return document, []
    values = without_secrets(document.values)
    return Document(values=values, places=document.places, name=document.name), problems


class _Dumper(yaml.SafeDumper):
    """Quotes every text that is not a plain word, since our reader knows fewer types."""


# Other YAML readers take some of these for true and false.
_SPECIAL = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = text.isidentifier() and text.lower() not in _SPECIAL
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)


Found = dict[str, tuple[InputError, list[int]]]


def _check_all(
    candidates: Sequence[Combination],
) -> tuple[Found, list[tuple[Combination, Experiment]]]:
    """Check every combination; group equal problems with the combinations that have them."""
    found: Found = {}
    checked: list[tuple[Combination, Experiment]] = []
    for number, candidate in enumerate(candidates):
        document = candidate.document
        try:
            experiment = validate(document.values)
        except ValidationError as error:
            problems = explain(error, Experiment, document)
        except InputError as error:
            problems = [InputError(str(error), where=error.where or document.name)]
        else:
            problems = [
                _placed(problem, path, document) for path, problem in cross_checks(experiment)
            ]
            checked.append((candidate, experiment))
        for problem in problems:
            found.setdefault(str(problem), (problem, []))[1].append(number)
    return found, checked


def _told(found: Found, candidates: Sequence[Combination], document: Document) -> list[InputError]:
    """Name the swept value that a problem comes with, unless every combination has it."""
    told = []
    for problem, numbers in found.values():
        if len(numbers) == len(candidates):
            told.append(problem)
            continue
        choices = [candidates[number].choice for number in numbers]
        shared = {
            axis: index
            for axis, index in choices[0].items()
            if all(choice[axis] == index for choice in choices)
        }
        told.append(
            InputError(
                problem.problem,
                where=f"{problem.where} (sweep: with {describe(shared or choices[0], document)})",
                allowed=problem.allowed,
                hint=problem.hint,
            )
        )
    return told


def _placed(error: InputError, path: KeyPath, document: Document) -> InputError:
    return InputError(
        error.problem, where=document.place(path), allowed=error.allowed, hint=error.hint
    )

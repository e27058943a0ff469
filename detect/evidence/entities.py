"""Named entities: found by a tagger once for each pool of examples, for all scored models.

The tagger is a spaCy pipeline, installed as a package or in a folder. Both are read as folders of
files; no package code is run, and only the content of those files and spaCy's version determine the
entities. Each text is tagged separately, on the CPU, so no entity depends on other texts. spaCy is
optional: `pip install 'spikein[tagger]'`.
"""

from collections.abc import Callable, Mapping, Sequence
from configparser import Error as ParserError
from configparser import RawConfigParser
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from detect.access import Access
from detect.evidence.needs import EvidenceSources, Need, Scored, Work
from inject.digest import digest
from inject.errors import InputError, first_line
from inject.examples.example import TEXTS, read_examples
from inject.model_folder import json_object, resolve_inside
from inject.reading.change_guard import content_digest, unchanged
from inject.step import Step, StepContext
from inject.tables import part_table

if TYPE_CHECKING:
    from spacy.language import Language

LIBRARIES = ("spacy", "thinc")
"""Libraries whose versions affect the entities."""
_CONFIG = "config.cfg"
_META = "meta.json"
_ALLOWED = (
    "the name of an installed spaCy pipeline such as en_core_web_sm, or a folder that "
    "nlp.to_disk wrote"
)


class NamedEntity(NamedTuple):
    """One named entity of a text."""

    start: int
    """Its first character."""
    stop: int
    """One past its last character."""
    label: str
    """The tagger's label, such as `PERSON`."""


def find_tagger(name: str) -> Path:
    """Return the folder of a pipeline, which contains `config.cfg`.

    Args:
        name: a folder, or an installed package.

    Raises:
        InputError: spaCy is not installed; no such pipeline; a pipeline with parts of another.
    """
    if find_spec("spacy") is None:
        raise InputError(
            "named entities need spaCy, which is not installed",
            where=name,
            hint="pip install 'spikein[tagger]'",
        )
    folder = _pipeline_folder(name)
    _check_whole(folder, name)
    return folder


def tagger_identity(name: str) -> dict[str, Any]:
    """Return the inputs that determine the entities, regardless of the folder's name.

    Raises:
        InputError: as `find_tagger`.
    """
    folder = find_tagger(name)
    meta = json_object(folder / _META)
    name_in_full = "_".join(str(meta[key]) for key in ("lang", "name") if meta.get(key))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        "name": name_in_full or folder.name,
        "version": str(meta.get("version", "")),
        "files": {path.relative_to(folder).as_posix(): content_digest(path) for path in files},
    }


def tagger_record(name: str | None) -> dict[str, str] | None:
    """Return the pipeline's name, version, and the digest of its files, if it exists."""
    if name is None:
        return None
    identity = tagger_identity(name)
    return {**identity, "files": digest(identity["files"])}


def find_entities(
    name: str,
    texts: Sequence[str],
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[list[NamedEntity]]:
    """Return the named entities of each text, in the order given.

    Args:
        name: as `find_tagger`.
        texts: any texts.
        progress: called with (texts done, texts in all).

    Raises:
        InputError: as `find_tagger`, or a pipeline that cannot be loaded.
    """
    tagger = _load(find_tagger(name), name)
    # spaCy rejects texts of more characters than this to limit memory.
    tagger.max_length = max(map(len, texts), default=0) + 1
    entities = []
    for done, text in enumerate(texts, start=1):
        entities.append(
            [NamedEntity(span.start_char, span.end_char, span.label_) for span in tagger(text).ents]
        )
        progress(done, len(texts))
    return entities


def _load(folder: Path, name: str) -> "Language":
    import spacy

    try:
        loaded = spacy.load(folder)
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        problem = f"not loadable as a spaCy pipeline ({first_line(error)})"
        raise InputError(problem, where=name) from error
    if not loaded.pipe_names:
        raise InputError("the spaCy pipeline has no parts that could find entities", where=name)
    return loaded


def _pipeline_folder(name: str) -> Path:
    local = Path(name).expanduser()
    if local.is_dir():
        return _with_config(local, name)
    if name.isidentifier() and (spec := find_spec(name)) and spec.submodule_search_locations:
        return _with_config(Path(spec.submodule_search_locations[0]), name)
    raise InputError("no such spaCy pipeline", where=name, allowed=_ALLOWED)


def _with_config(folder: Path, name: str) -> Path:
    """Return the folder of a pipeline's files; in a package it is named by its version."""
    if (folder / _CONFIG).is_file():
        return folder
    meta = json_object(folder / _META)
    if {"lang", "name", "version"} <= meta.keys():
        below = f"{meta['lang']}_{meta['name']}-{meta['version']}"
        pipeline = resolve_inside(folder, below, source=str(folder / _META))
        if (pipeline / _CONFIG).is_file():
            return pipeline
    raise InputError(f"not a spaCy pipeline: it lacks {_CONFIG}", where=name, allowed=_ALLOWED)


def _check_whole(folder: Path, name: str) -> None:
    """Reject a pipeline with parts of another one, which no digest here covers."""
    config = RawConfigParser()
    try:
        config.read_string((folder / _CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, ParserError) as error:
        raise InputError(f"its {_CONFIG} cannot be read", where=name) from error
    for section in config.sections():
        if section.startswith("components.") and config.has_option(section, "source"):
            raise InputError(
                f"its part {section.removeprefix('components.')!r} comes from the pipeline "
                f"{config.get(section, 'source')}",
                where=name,
                hint="Load it once with spaCy, and save all of it with nlp.to_disk.",
            )


ENTITIES_FILE = "entities.parquet"
write_entities, read_entities = part_table(ENTITIES_FILE, NamedEntity)


@dataclass(frozen=True)
class Entities(Need):
    """The named entities of each text, found by the user's tagger."""

    asks_model: ClassVar[bool] = False
    access: ClassVar[Access] = Access.NONE
    hint: ClassVar[str] = "Name a spaCy pipeline that finds named entities (detect.tagger)."
    file_hint: ClassVar[str] = "Name a spaCy pipeline that finds named entities (tagger=NAME)."
    parts: ClassVar[Mapping[str, str]] = {"entities": r"entities"}
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {ENTITIES_FILE: ("start", "stop", "label")}
    options: ClassVar[tuple[str, ...]] = ("tagger",)

    def __str__(self) -> str:
        return "named entities"

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether a tagger is set."""
        return sources.detect.tagger is not None

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the step that tags the examples.

        Raises:
            InputError: if spaCy or the tagger is not installed.
        """
        tagger = sources.detect.tagger or ""
        identity = tagger_identity(tagger)
        step = Step(
            kind="entities",
            label=identity["name"],
            function=f"{__name__}:build",
            settings={"tagger": identity},
            inputs={"examples": sources.examples},
            libraries=LIBRARIES,
            reads={"examples": TEXTS},
            execution={"tagger": tagger},
        )
        return {"entities": step}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the entities."""
        table = read_entities(work.inputs["entities"])
        work.further[cls()] = [table.get(row.example_id) for row in work.rows]


def build(context: StepContext) -> None:
    """Find the entities of every example, and write them."""
    rows = read_examples(context.inputs["examples"])
    tagger, identity = context.execution["tagger"], context.settings["tagger"]
    with unchanged("detect.tagger", lambda: tagger_identity(tagger), identity):
        entities = find_entities(
            tagger,
            [row.text for row in rows],
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
    write_entities(context.out, [row.example_id for row in rows], entities)

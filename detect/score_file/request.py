"""What `spikein detect` and `spikein.score_texts` are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from detect.policy import ScoringPolicy
from detect.settings import CompileMode, DeviceMap, Dtype
from inject.server.address import Server


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """How a model is asked for scores."""

    policy: ScoringPolicy = field(default_factory=ScoringPolicy)
    """Start token, first token, long texts."""
    batch_tokens: int | None = None
    """Padded tokens in one batch; chosen for the device when None. No influence on the scores."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda:1` …"""
    dtype: Dtype = "auto"
    """Number format of the model; statistics are float32 in any case."""
    device_map: DeviceMap = "none"
    """`auto` spreads a large model over all devices."""
    compile: CompileMode = "auto"
    """Whether the statistics of the vocabulary are compiled."""
    revision: str | None = None
    """Of the model, on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with the model's repository."""
    held_out: str | None = None
    """A file, folder or glob of further texts, none of them scored, which the model has not seen:
    shots and populations for `recall`, `codec` and the like. Rows with label 1 are known members,
    for `con_recall`."""
    generate: bool = False
    """Let the model write, for the detectors of `all` that read what a model writes: dear, as a
    token is written at a time. A detector that is named needs no leave."""
    word_reference: str | None = None
    """A model that says which words surprise, for `info_probe`; None: the reference."""
    knowledge_filter: str | None = None
    """A model whose guesses `info_probe:filtered=true` leaves out."""
    tagger: str | None = None
    """A spaCy pipeline, installed or a folder, that finds named entities, for
    `tag_tab:entities=one_word`."""
    neighbours: str | None = None
    """A masked language model, a folder or a hub id, for `neighbour`."""
    cache: Path | None = None
    """Folder for counted frequencies and a server's replies; by default the user's cache folder."""
    server: Server | None = None
    """Where the model is served; None for a model on this machine."""
    send_protected: tuple[str, ...] = ()
    """Protected datasets, by name, whose texts may be sent to the server."""


@dataclass(frozen=True, kw_only=True)
class ScoringRequest(ScoringOptions):
    """Which model scores, with which detectors, and what they are given."""

    model: str
    """A folder or a hub id."""
    reference: str | None = None
    """A model with its own tokenizer, for `reference`."""
    frequency: str | None = None
    """Any file, folder or glob of texts, for `dc_pdd` and `tag_tab`."""
    detectors: str | Sequence[str] = "all"
    """`all`, `min_k:k=0.2,zlib`, or a list of such parts."""


@dataclass(frozen=True, kw_only=True)
class DetectFileRequest(ScoringRequest):
    """What `spikein detect` was asked for."""

    examples: str
    """A file, folder or glob of rows: `text` or `input`, optional `id`, `label`, `group`."""
    out: Path
    benchmark: str | None = None
    """The benchmark that the rows are (`detect.score_file.benchmarks`); None: rows of any kind."""

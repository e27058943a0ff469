"""Published benchmarks with given labels: readers of their files, and caveats.

A preset checks that a file is the named benchmark, and warns about the basis of its labels. Nothing
is downloaded: the user provides the file, under its publisher's licence. Those whose members were
drawn are read by `detect.user_rows.drawn_benchmarks`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from detect.user_rows.drawn_benchmarks import TOAA, read_checkmia, read_hubble, read_toaa
from detect.user_rows.labelled_rows import LabelledRows, placed_rows, read_labelled
from detect.user_rows.row_settings import RowSettings
from inject.errors import InputError, unknown_name
from inject.examples.example import example_id

_SHIFT = (
    "members are older than non-members, so that their topics and dates differ: a classifier that "
    "sees no model also separates them. Compare every AUC with that of `blind`"
)


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A benchmark with given labels."""

    name: str
    summary: str
    source: str
    """Its publisher's location."""
    columns: str
    """Content of its rows."""
    warning: str
    """Basis of its labels."""
    read: Callable[[str, RowSettings], LabelledRows]
    """Reads and checks a file, a folder or a glob."""
    hub: str = ""
    """Id of its only dataset on the hub, if its rows have one commit."""
    commit: str = ""
    """The beginning of that commit."""
    has_subsets: bool = False
    """Whether `subset` selects a part of it."""


def benchmark_names() -> tuple[str, ...]:
    """Return the names of all presets."""
    return tuple(_BENCHMARKS)


def get_benchmark(name: str) -> Benchmark:
    """Return a preset by its name, in any case.

    Raises:
        InputError: if the name is unknown.
    """
    plain = name.strip().lower().replace("_", "-")
    if plain not in _BENCHMARKS:
        problem = f"unknown benchmark {name!r}"
        raise unknown_name(problem, plain, _BENCHMARKS, where="--benchmark")
    return _BENCHMARKS[plain]


def _wikimia(words: int) -> Benchmark:
    def read(pattern: str, settings: RowSettings) -> LabelledRows:
        rows = _read_labelled(pattern, settings, f"wikimia-{words}")
        for number, text in enumerate(rows.texts, 1):
            if (n_words := len(text.split())) != words:
                raise InputError(
                    f"row {number} has {n_words} words, and those of wikimia-{words} have {words}",
                    where=pattern,
                    hint=f"Is it wikimia-{n_words}?" if n_words in _LENGTHS else "",
                )
        return rows

    return Benchmark(
        name=f"wikimia-{words}",
        summary=f"events of Wikipedia, cut to {words} words (Shi et al. 2024)",
        source="hub swj0419/WikiMIA, split WikiMIA_length" + str(words),
        columns="input, label",
        warning=_SHIFT,
        read=read,
    )


def _read_mimir(pattern: str, settings: RowSettings) -> LabelledRows:
    if settings.names_columns:
        raise InputError(
            "text_column, label_column, ids_column and labels do not apply to rows of mimir",
            where=pattern,
            allowed="the columns member and nonmember, one text each",
        )
    texts: dict[bool, list[str]] = {True: [], False: []}
    limited = False
    for place, values in placed_rows(pattern, settings):
        if len(texts[True]) == settings.limit:
            limited = True
            break
        for name, member in (("member", True), ("nonmember", False)):
            if not isinstance(values.get(name), str):
                raise InputError(
                    f"the row has no text {name!r}",
                    where=place,
                    allowed="the columns member and nonmember, one text each",
                )
            texts[member].append(values[name])
    all_texts = [*texts[True], *texts[False]]
    if not all_texts:
        raise InputError("there are no rows", where=pattern)
    labels = [True] * len(texts[True]) + [False] * len(texts[False])
    ids = [example_id(text) for text in all_texts]
    return LabelledRows(all_texts, ids, labels, None, limited=limited)


def _read_arxivtection(pattern: str, settings: RowSettings) -> LabelledRows:
    rows = _read_labelled(pattern, settings, "arxivtection")
    if rows.paraphrases is None or rows.groups is None:
        raise InputError(
            "the rows are not from arXivTection",
            where=pattern,
            allowed="the columns Example_A to Example_D, Answer, ID, Label",
        )
    return rows


def _read_labelled(pattern: str, settings: RowSettings, name: str) -> LabelledRows:
    rows = read_labelled(pattern, settings)
    if rows.labels is None:
        raise InputError(
            f"{name} has labels, and these rows have none",
            where=pattern,
            hint="label_column=NAME names their column.",
        )
    return rows


_LENGTHS = (32, 64, 128, 256)
_BENCHMARKS = {
    one.name: one
    for one in (
        *(_wikimia(words) for words in _LENGTHS),
        Benchmark(
            name="mimir",
            summary="train and test texts of the Pile by domain (Duan et al. 2024)",
            source="hub iamgroot42/mimir, one file per domain and n-gram filter",
            columns="member, nonmember",
            warning=(
                "the filter by n-gram overlap takes non-members that differ from members: the "
                "lower its threshold, the more. Compare every AUC with that of `blind`"
            ),
            read=_read_mimir,
        ),
        Benchmark(
            name="arxivtection",
            summary="passages of 50 arXiv papers, three paraphrases each (Duarte et al. 2024)",
            source="github avduarte333/DE-COP_Method, data/arXivTection.csv",
            columns="Example_A to Example_D, Answer, ID, Label",
            warning=_SHIFT,
            read=_read_arxivtection,
        ),
        Benchmark(
            name="toaa",
            summary="exact ids, inserted 1, 4 or 16 times or never (Bordt et al. 2026)",
            source="hub sbordt/TOAA-Membership-Inference, commit 01051ac",
            columns=", ".join(TOAA),
            warning="sbordt/OLMo-2-179M-Exp saw the members, sbordt/OLMo-2-179M (reference=) "
            "did not; members of `rare` conditions share a token that non-members lack",
            read=read_toaa,
            hub="sbordt/TOAA-Membership-Inference",
            commit="01051ac",
            has_subsets=True,
        ),
        Benchmark(
            name="hubble",
            summary="passages with 0 to 256 copies (Wei et al. 2025)",
            source="hub allegrolab/passages_wikipedia, passages_wikipedia_nodup.jsonl.gz …",
            columns="text, duplicates (or meta with duplicates)",
            warning="the `perturbed` models of allegrolab were trained on the copies, those named "
            "`standard` (reference=) were not",
            read=read_hubble,
            has_subsets=True,
        ),
        Benchmark(
            name="checkmia",
            summary="exact ids before and after a checkpoint (Wang et al. 2026)",
            source="hub jeffreygwang/pythia_dedupe_mia_… and mfli314/OLMo-7B-mia-…",
            columns="tokens, in files member-… and nonmember-…",
            warning="members were trained on before a checkpoint, which is the one to score",
            read=read_checkmia,
        ),
        Benchmark(
            name="olmomia",
            summary="texts of steps 0 to 100k and of steps 400k to 450k (Kim et al. 2024)",
            source="built by github gyuwankim/em-mia, folder olmomia",
            columns="input, label",
            warning="allenai/OLMo-7B at steps 100k to 400k was trained on the members only; easy, "
            "medium and hard settings are clusters of texts, which `blind` may separate",
            read=lambda pattern, how: _read_labelled(pattern, how, "olmomia"),
        ),
        Benchmark(
            name="rows",
            summary="any rows with labels",
            source="a file of your own",
            columns="text or input, label, optional id and group",
            warning=(
                "the origin of the labels is unknown: if `blind` separates the sides, any "
                "detector may do so without knowing the model"
            ),
            read=lambda pattern, settings: _read_labelled(pattern, settings, "rows"),
        ),
    )
}

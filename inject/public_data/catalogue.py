"""The public data sets that the presets read: where each lies on the hub, and what becomes of it.

A `DataFile` is one file of the layout that presets read below `data=DIR`, made of one file (or of
a few) of a repository at a pinned commit. What is too large is read in part: the first rows, or
every so-manieth, so that the same rows come each time. Commits were taken from the pages of the
hub and from public code that pins them; no file was downloaded where this was written, so columns
are checked when a file is fetched.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from inject.errors import InputError, did_you_mean
from inject.public_data import conversions
from inject.public_data.conversions import Convert


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file of the layout."""

    path: str
    """Where presets look for it, below the data folder."""
    hub: str
    """Id of the data set on the hub."""
    commit: str
    sources: tuple[str, ...]
    """Paths in the repository, in the order in which they are read."""
    columns: tuple[str, ...]
    """Columns that the rows of the hub's file must have."""
    convert: Convert = conversions.as_they_are
    """From the hub's rows to those that are written; it may leave rows out."""
    rows: int | None = None
    """Only so many rows are written, of a file that is read from its beginning only as far as they
    reach; None: all."""
    every: int = 1
    """Every so-manieth row is written, beginning with the first."""

    def part(self) -> str:
        """Say which rows are taken; `` for all."""
        if self.rows is not None:
            return f"the first {self.rows:,} rows"
        return f"one row of {self.every}" if self.every > 1 else ""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """What is fetched by one name."""

    name: str
    what: str
    licence: str
    """As its own page, or that of its authors, states it."""
    files: tuple[DataFile, ...]
    terms: str = ""
    """What must be agreed to before it is fetched; `` for nothing."""

    @property
    def pages(self) -> str:
        """The pages of its repositories on the hub, with their licences."""
        ids = dict.fromkeys(file.hub for file in self.files)
        return " ".join(f"https://huggingface.co/datasets/{hub_id}" for hub_id in ids)


_REDPAJAMA = {
    # Part -> rows: in all some 14 MB of text, with little of each whole book and paper.
    "c4": ("c4_sample.jsonl", 2000),
    "cc": ("cc_2019-30_sample.jsonl", 100),
    "stackexchange": ("stackexchange_sample.jsonl", 2000),
    "github": ("github_sample.jsonl", 200),
    "arxiv": ("arxiv_sample.jsonl", 20),
    "book": ("book_sample.jsonl", 2),
}
_LSAT = {
    "ar": (
        "4baeccb1d4b0c9a8cbe14679b930fd7642933119",
        "data/test-00000-of-00001-6d5eb5d6b476de7f.parquet",
    ),
    # Its branch of files that the hub converted to Parquet.
    "lr": ("d3018bc8761a8b3802c2bb0a3f9e33b1293c5867", "default/test/0000.parquet"),
    "rc": (
        "ac5c2a9b3649a325014d55c520f81c1b5f3eaa8f",
        "data/test-00000-of-00001-e3be371148a115ac.parquet",
    ),
}

DATA_SETS: tuple[DataSet, ...] = (
    DataSet(
        name="boolq",
        what="BoolQ: yes/no questions about a passage",
        licence="CC BY-SA 3.0",
        files=(
            DataFile(
                path="bench/boolq/dev.jsonl.gz",
                hub="google/boolq",
                commit="35b264d03638db9f4ce671b711558bf7ff0f80d5",
                sources=("data/validation-00000-of-00001.parquet",),
                columns=("question", "answer", "passage"),
            ),
        ),
    ),
    DataSet(
        name="commonsenseqa",
        what="CommonsenseQA: everyday questions, five options",
        licence="MIT",
        files=(
            DataFile(
                path="bench/commonsenseqa/dev_rand_split.jsonl.gz",
                hub="tau/commonsense_qa",
                commit="94630fe30dad47192a8546eb75f094926d47e155",
                sources=("data/validation-00000-of-00001.parquet",),
                columns=("id", "question", "choices", "answerKey"),
            ),
        ),
    ),
    DataSet(
        name="imdb",
        what="IMDB: film reviews and their sentiment, 5,000 of the test split",
        licence="none stated; its authors ask for a citation (Maas et al. 2011)",
        files=(
            DataFile(
                path="bench/imdb/aclImdb_sample5000.jsonl.gz",
                hub="stanfordnlp/imdb",
                commit="e6281661ce1c48d982bc483cf8a173c1bbeb5d31",
                sources=("plain_text/test-00000-of-00001.parquet",),
                columns=("text", "label"),
                # The file has all negative reviews first.
                every=5,
            ),
        ),
    ),
    DataSet(
        name="truthfulqa",
        what="TruthfulQA: questions that people often answer wrongly",
        licence="Apache-2.0",
        files=(
            DataFile(
                path="bench/truthfulqa/TruthfulQA.csv",
                hub="truthfulqa/truthful_qa",
                commit="741b8276f2d1982aa3d5b832d3ee81ed3b896490",
                sources=("generation/validation-00000-of-00001.parquet",),
                columns=("question", "best_answer", "correct_answers", "incorrect_answers"),
                convert=conversions.truthfulqa,
            ),
        ),
    ),
    DataSet(
        name="lsat",
        what="LSAT: law school admission test, as in AGIEval",
        licence="MIT (AGIEval and AR-LSAT)",
        files=tuple(
            DataFile(
                path=f"bench/lsat/lsat-{section}.jsonl",
                hub=f"dmayhem93/agieval-lsat-{section}",
                commit=commit,
                sources=(source,),
                columns=("query", "choices", "gold"),
            )
            for section, (commit, source) in _LSAT.items()
        ),
    ),
    DataSet(
        name="gpqa",
        what="GPQA: graduate-level science questions; protected",
        licence="CC BY 4.0",
        terms=(
            "GPQA's authors ask that no example be revealed online in plain text or in images, so "
            "that it stays out of training corpora. It is kept here in a zip with the password "
            "that they publish."
        ),
        files=(
            DataFile(
                path="bench/gpqa/dataset.zip",
                hub="Idavidrein/gpqa",
                commit="633f5ee89ab8ad4522a9f850766b73f62147ffdd",
                sources=("gpqa_main.csv", "gpqa_diamond.csv", "gpqa_extended.csv"),
                columns=("Question", "Correct Answer", "Record ID", "High-level domain"),
            ),
        ),
    ),
    DataSet(
        name="tofu",
        what="TOFU: questions about invented authors, to be forgotten and to be kept",
        licence="MIT",
        files=tuple(
            DataFile(
                path=f"detect/tofu/{name}.json.gz",
                hub="locuslab/TOFU",
                commit="324592d84ae4f482ac7249b9285c2ecdb53e3a68",
                sources=(f"{name}.json",),
                columns=("question", "answer"),
                convert=convert,
            )
            for name, convert in {
                "forget10": conversions.tofu_forget,
                "retain90": conversions.as_they_are,
            }.items()
        ),
    ),
    DataSet(
        name="redpajama",
        what="RedPajama-1T sample: the first rows of six parts",
        licence="by part: C4 ODC-BY; Common Crawl's terms of use; Stack Exchange CC BY-SA; GitHub "
        "MIT, BSD, Apache; arXiv by paper; books in the public domain of the US",
        files=tuple(
            DataFile(
                path=f"background/redpajama_sample/{part}.jsonl.gz",
                hub="togethercomputer/RedPajama-Data-1T-Sample",
                commit="776f0cf8399524b53d817f4613cc75c6cd9c5a3b",
                sources=(source,),
                columns=("text",),
                rows=rows,
            )
            for part, (source, rows) in _REDPAJAMA.items()
        ),
    ),
    DataSet(
        name="wikipedia",
        what="English Wikipedia of November 2023, its first articles",
        licence="CC BY-SA 3.0 and GFDL",
        files=(
            DataFile(
                path="background/wiki_en_pile.jsonl.gz",
                hub="wikimedia/wikipedia",
                commit="b04c8d1ceb2f5cd4588862100d08de323dccfbaa",
                sources=("20231101.en/train-00000-of-00041.parquet",),
                columns=("id", "url", "title", "text"),
                convert=conversions.wikipedia,
                rows=400,
            ),
        ),
    ),
    DataSet(
        name="arxiv",
        what="arXiv abstracts of 2007, the first of the collection of 2021",
        licence="CC0 1.0 (arXiv's metadata)",
        files=(
            DataFile(
                path="background/arxiv_abstracts.jsonl.gz",
                hub="gfissore/arxiv-abstracts-2021",
                commit="783a340c8a8519e7325f0391e751ca0b238e5ca5",
                sources=("arxiv-abstracts.jsonl.gz",),
                columns=("id", "title", "abstract", "categories"),
                convert=conversions.arxiv,
                rows=8000,
            ),
        ),
    ),
)


def data_sets(names: Iterable[str]) -> tuple[DataSet, ...]:
    """Return data sets by name, each once, in the order of the catalogue; all without a name.

    Raises:
        InputError: there is none of that name.
    """
    asked = list(names)
    known = {one.name: one for one in DATA_SETS}
    for name in asked:
        if name not in known:
            raise InputError(
                f"no data set of this name can be fetched.{did_you_mean(name, known)}",
                where=name,
                allowed=", ".join(known),
                hint="`spikein data list` says what each is, and a preset's name means what it "
                "reads. Any other data set: `path: hf://datasets/OWNER/NAME/FILE`.",
            )
    return tuple(one for one in DATA_SETS if not asked or one.name in asked)

"""A dataset and a source by entry point run through a whole experiment, outside the repository."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from tests.conftest import make_texts
from tests.inject.plugins.packages import install
from tests.processes import spikein_process
from tests.spikein.tiny import write_tiny

SOURCE = '''
    """A source that makes its documents."""

    from pathlib import Path

    from inject.corpus.background.document import Document
    from inject.corpus.background.document import Source


    class Diary(Source):
        """Lines of a diary that comes with the package."""

        words: int = 60

        def identity(self):
            return {"words": self.words}

        def documents(self, skipped=None):
            lines = Path(__file__).with_name("diary.txt").read_text().splitlines()
            for number, line in enumerate(lines):
                yield Document(" ".join(line.split()[: self.words]), f"diary:{number}")
'''

DATASET = '''
    """A dataset that makes its rows."""

    from inject.examples.datasets.source import Dataset
    from inject.examples.example import Row
    from inject.settings import Settings

    LETTERS = "bcdfglmnprst"


    class Options(Settings):
        place: str = "harbour"


    def name(number):
        return "".join(LETTERS[number // 12**k % 12] + "aeiou"[(number >> k) % 5] for k in range(4))


    def rows(source):
        for number in range(source.limit):
            who, where = name(number * 7919), name(number * 104729)
            fields = {"text": f"{who} met {where} at the {source.options['place']} of {who}{where}"}
            yield Row(fields=fields, source_id=f"meeting {number}")


    MEETINGS = Dataset(
        name="meetings",
        summary="Invented meetings.",
        template="{text}",
        rows=rows,
        endless=True,
        options=Options,
    )
'''


def spikein(folder: Path, *words: str) -> str:
    """Run the command line in a folder where only Python's path knows spikein and the package."""
    done = spikein_process(*words, folder=folder, path=(folder / "site",))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_dataset_and_a_source_by_entry_point_run_through_a_whole_experiment(tmp_path):
    install(
        tmp_path / "site",
        "letters",
        modules={"letters/__init__.py": "", "letters/diary.py": SOURCE, "letters/met.py": DATASET},
        entry_points={
            "spikein.sources": {"diary": "letters.diary:Diary"},
            "spikein.datasets": {"meetings": "letters.met:MEETINGS"},
        },
    )
    diary = "\n".join(make_texts(900, seed=5, words=60))
    (tmp_path / "site" / "letters" / "diary.txt").write_text(diary)
    experiment = write_tiny(tmp_path).read_text()
    for old, new in (
        (f'{{kind: files, path: "{tmp_path}/texts.jsonl"}}', "{kind: diary, words: 50}"),
        ("dataset: fictional", "dataset: meetings, options: {place: market}"),
        ("detect: {detectors: [", "detect: {detectors: [loss, blind]}  # ["),
    ):
        assert old in experiment
        experiment = experiment.replace(old, new)
    (tmp_path / "tiny.yaml").write_text(experiment)

    listed = spikein(tmp_path, "datasets")
    assert "meetings" in listed
    assert "diary" in listed
    assert listed.count("letters 1.0") == 2

    spikein(tmp_path, "run", "tiny.yaml")
    metrics = read_table(tmp_path / "runs" / "tiny" / "latest", "metrics").to_pylist()
    assert {row["dataset"] for row in metrics} >= {"meetings"}
    assert {row["detector"] for row in metrics} >= {"loss", "blind"}
    [examples] = (tmp_path / "store" / "examples").glob("*/examples.parquet")
    rows = pq.read_table(examples).to_pylist()
    assert len(rows) == 48
    assert all(" at the market of " in row["text"] for row in rows)

    # After an edit of the package a plan builds the examples again.
    dataset = tmp_path / "site" / "letters" / "met.py"
    dataset.write_text(dataset.read_text().replace(" met ", " saw "))
    planned = spikein(tmp_path, "plan", "tiny.yaml", "--no-time-training")
    [line] = [line for line in planned.splitlines() if "examples" in line and "meetings" in line]
    assert "to do" in line, planned

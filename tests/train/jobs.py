"""A small training job and its corpus, for tests that start processes.

`python -m tests.train.jobs JOB.json` is a runner: it starts the job's processes and waits for them.
"""

import sys
from pathlib import Path

from inject.corpus.background.document import Document
from inject.corpus.build import build_corpus
from inject.corpus.tokenizer import train_tokenizer
from inject.errors import SpikeinError
from tests.conftest import make_texts
from tests.train.shapes import tiny_shape
from train.execution import ExecutionSettings
from train.job import TrainingJob, run, run_job
from train.settings import CheckpointSettings, TrainSettings


def build_small_corpus(folder: Path) -> Path:
    """Build a corpus of 4,000 tokens."""
    texts = make_texts(120, seed=3, words=40)
    documents = (Document(text=text, place=f"made:{at}") for at, text in enumerate(texts))
    build_corpus(folder, documents=documents, tokenizer=train_tokenizer(texts, 320), tokens=4_000)
    return folder


def job(place: Path, corpus: Path, *, engine: str, epochs: int = 1, **execution) -> TrainingJob:
    """Return a job of 16 steps per epoch that writes into a folder."""
    (place / "out").mkdir(parents=True)
    return TrainingJob(
        out=str(place / "out"),
        unfinished=str(place / "unfinished"),
        identity="this run",
        corpus=str(corpus),
        shape=tiny_shape(hidden=16, layers=1),
        train=TrainSettings(
            mode="pretrain",
            lr=1e-3,
            context=64,
            batch_tokens=256,
            epochs=epochs,
            precision="float32",
            checkpoints=CheckpointSettings(steps=(5,)),
        ),
        execution=ExecutionSettings(engine=engine, **execution),
        seed=1,
    )


if __name__ == "__main__":
    training_job = TrainingJob.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        run_job(
            run,
            training_job,
            Path(training_job.unfinished),
            progress=lambda moment: print(moment.tokens, flush=True),
        )
    except SpikeinError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)

"""Tokens a second, model FLOPs utilisation and memory of larger shapes, plain and under ZeRO.

    python -m scripts.bench.utilisation                         # 160 M and 1 B at length 2,048
    python -m scripts.bench.utilisation --shapes llama-1m --context 256 \\
        --micro-batch-windows 4 --windows 8 --vocabulary 4096        # the same path on a CPU

For GPUs; on a CPU it shows that the path works, and MFU is null. Each figure is taken in processes
of its own, through `train.loop.training_loop.train` with its order, ledger and log: the median of
the steps after the first readings of the device. FLOPs a token: 6 N + 12 L h T
(`train.models.shapes.flops_per_token`), over the dense bfloat16 peak of `train.cost.PEAKS`. ZeRO
and plain run in equally many processes.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train.execution import ExecutionSettings
from train.launch import launch

SHAPES = ("llama-160m", "llama-1b")
SKIPPED = 20
"""Steps before the device is warm: compilation, caches, clocks."""


def measure(request: dict[str, Any]) -> None:
    """Train random tokens in this process, one of several, and write the figures."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    from inject.stream.exposures import ExposureRecorder
    from inject.stream.view import clean_view
    from scripts.bench.random_tokens import RandomTokens
    from scripts.bench.scoring import resident
    from train.cost import operations_per_token
    from train.loop.log import read_log
    from train.loop.training_loop import TrainingData, TrainingRun, train
    from train.models.pretrained import load_causal_model
    from train.models.shapes import build_model, load_shape
    from train.processes.environment import rank
    from train.settings import TrainSettings

    context = request["context"]
    if named := request.get("model"):
        model = load_causal_model(named)
        vocabulary = len(model.get_input_embeddings().weight)
    else:
        vocabulary = request["vocabulary"]
        model = build_model(load_shape(request["shape"]), vocabulary, 0, 0)
    parameters, operations = model.num_parameters(), operations_per_token(model, context)
    settings = TrainSettings(
        mode="pretrain",
        lr=1e-4,
        context=context,
        batch_tokens=request["windows"] * context,
        precision=request.get("precision", "auto"),
    )
    tokens = request["steps"] * settings.batch_tokens
    view = clean_view(RandomTokens(tokens, vocabulary), tokens=tokens, context=context)
    on_gpu = torch.cuda.is_available()
    out = Path(request["folder"]) / "out"
    out.mkdir(exist_ok=True)
    train(
        out,
        model=model,
        tokenizer=PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE())),
        data=TrainingData(view=view, recorder=ExposureRecorder(view, [], {})),
        run=TrainingRun(
            settings=settings,
            seed=0,
            execution=ExecutionSettings(**request["execution"]),
            unfinished=Path(request["folder"], "unfinished"),
            identity="bench",
        ),
    )
    if rank() > 0:
        return
    rows = read_log(out)[min(SKIPPED, request["steps"] // 2) :]
    mfu = statistics.median(row.mfu for row in rows)
    figures = {
        "model": request.get("model") or request["shape"],
        "parameters": parameters,
        "flops_per_token": operations,
        "execution": request["execution"],
        "tokens_per_second": round(statistics.median(row.tokens_per_second for row in rows)),
        "mfu": None if mfu != mfu else round(mfu, 4),
        "peak_gb": round(resident("VmHWM") / 1e9, 2),
        "peak_gib_of_gpu": round(torch.cuda.max_memory_allocated() / 2**30, 2) if on_gpu else None,
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
    }
    Path(request["folder"], "figures.json").write_text(json.dumps(figures))


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Measure one shape under one execution, in separate processes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "asked.json"
        file.write_text(json.dumps({**request, "folder": folder}))
        launch(
            "scripts.bench.utilisation",
            ["--worker", str(file)],
            processes=request["execution"]["processes"],
            environment={"OMP_NUM_THREADS": str(request["threads"])}
            if "threads" in request
            else {},
        )
        figures: dict[str, Any] = json.loads((Path(folder) / "figures.json").read_text())
        return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description="Utilisation of larger shapes.")
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES))
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--vocabulary", type=int, default=32_000)
    parser.add_argument("--windows", type=int, default=32, help="of one optimiser step")
    parser.add_argument("--micro-batch-windows", type=int, default=16, help="of one forward pass")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--processes", type=int, default=1, help="usually one per GPU")
    parser.add_argument(
        "--zero", type=int, nargs="*", default=[2], help="ZeRO stages in addition to plain training"
    )
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        measure(json.loads(Path(options.worker).read_text()))
        return
    common = {
        "processes": options.processes,
        "micro_batch_windows": options.micro_batch_windows,
        "compile": options.compile,
    }
    executions = [{"engine": "torchrun", **common}]
    executions += [{"engine": "deepspeed", "zero": stage, **common} for stage in options.zero]
    figures = []
    for shape in options.shapes:
        for execution in executions:
            print(f"{shape}: {execution}", file=sys.stderr, flush=True)
            request = {
                "shape": shape,
                "context": options.context,
                "vocabulary": options.vocabulary,
                "windows": options.windows,
                "steps": options.steps,
                "execution": execution,
            }
            figures.append(run(request))
    print(json.dumps({"runs": figures}))


if __name__ == "__main__":
    main()

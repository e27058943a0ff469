"""Write the designed studies of new models for larger models, and print their costs: docs/scale.md.

    python -m scripts.studies.scale data scaled

writes `scaled/STUDY-SIZE.yaml` for each study and size. The numbers of a cell are those that
`spikein plan scaled/STUDY-SIZE.yaml data=data --gpu h100 --gpus GPUS` prints.
"""

import sys
from math import ceil
from pathlib import Path
from typing import Any

import yaml

import spikein
from inject.builtin_files import CONFIGS
from inject.files import human_bytes
from spikein.estimates.training import Hardware

SIZES = {
    "160M": ("JackFram/llama-160m", 12.5, 1),
    "1B": ("TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T", 62.5, 1),
    "7B": ("huggyllama/llama-7b", 312.5, 8),
}
"""Published model, factor of all token counts, and GPUs of one training, by size."""
SEEDS, ROWS = 8, {"members": 100, "nonmembers": 400}
"""At least."""


def scaled(study: Path, size: str) -> dict[str, Any]:
    """Return a study's settings for a larger model, longer streams and enough rows."""
    model, factor, _ = SIZES[size]
    values = yaml.safe_load(study.read_text(encoding="utf-8").replace("1M", size))
    factors = dict.fromkeys(("tokens", "stretch", "tail", "batch_tokens"), factor)
    for side, least in ROWS.items():
        factors[side] = max(1.0, least / sum(row[side] for row in values["contaminants"]))
    values = _multiplied(values, factors)
    arms: dict[str, Any] = {}
    for name, arm in values.get("arms", {}).items():
        # Arms of other shapes are arms of another size.
        arm.pop("model.shape", None)
        if arm not in arms.values():
            arms[name] = arm
    values |= {"name": f"{study.stem}-{size}", "model": {"pretrained": model}, "base": None}
    values["train"]["context"] = 1024
    seeds = [*range(max(SEEDS, len(values["seeds"])))]
    return {**values, "seeds": seeds, "arms": arms, "claims": None}


def _multiplied(node: Any, factors: dict[str, float], key: str = "") -> Any:
    if isinstance(node, dict):
        return {
            name: _multiplied(item, factors, name.rpartition(".")[2]) for name, item in node.items()
        }
    if isinstance(node, list):
        return [_multiplied(item, factors) for item in node]
    return ceil(node * factors[key]) if key in factors and node else node


def main(data: str, folder: Path) -> None:
    """Write all files and print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"| study | trainings | {' | '.join(SIZES)} |\n|---|{'---|' * (len(SIZES) + 1)}")
    for study in sorted((CONFIGS / "studies").glob("*.yaml")):
        if "shape: llama-1m" not in study.read_text(encoding="utf-8"):
            continue
        cells = []
        for size, (_, _, gpus) in SIZES.items():
            path = folder / f"{study.stem}-{size}.yaml"
            path.write_text(yaml.safe_dump(scaled(study, size), sort_keys=False), encoding="utf-8")
            hardware = Hardware(gpu="h100", gpus=gpus)
            plan = spikein.plan(str(path), overrides=[f"data={data}"], hardware=hardware)
            costs = [(training.runs, training.cost) for training in plan.training]
            hours = sum(runs * cost.gpu_seconds for runs, cost in costs if cost) / 3600
            disk = sum(row.disk_bytes or 0 for row in plan.rows)
            cells.append(f"{hours:,.1f} h, {human_bytes(disk)}")
        print(f"| `{study.stem}` | {sum(runs for runs, _ in costs)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

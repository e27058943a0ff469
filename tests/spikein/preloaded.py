"""What a run imports, and the parsed sources of our code, for a server that forks runs.

A run by itself takes six seconds to get there.
"""

import gc
import importlib
import sys

from inject.source_digest import PACKAGES, module_of

IMPORTED = (
    "analysis.dataset_detectors.methods.dataset_inference",
    "analysis.dataset_detectors.methods.ensemble",
    "detect.engine.target",
    "detect.engine.view_statistics",
    "detect.task_accuracy.scoring",
    "peft",
    "resvg_py",
    "scipy.stats",
    "sklearn.feature_extraction.text",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "spikein.api.run",
    "spikein.cli.commands.run",
    "train.loop.trainer",
    "train.loop.training_loop",
    "train.models.lora",
    "transformers.models.llama.modeling_llama",
)
for name in IMPORTED:
    importlib.import_module(name)
for name in tuple(sys.modules):
    if name.partition(".")[0] in PACKAGES:
        module_of(name)
gc.freeze()

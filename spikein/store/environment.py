"""The code and the kind of machine that built an artifact; never a host's or user's name.

Manifests record them together with the times, and the page shows them; no identity depends on them.
Cost: two calls of git per process, some 20 ms.
"""

import platform
import subprocess
import sys
from functools import cache
from pathlib import Path

from inject.helper_processes import usable_cores
from spikein import __version__
from train.device import cpu_info

CODE, MACHINE = "code", "machine"
_ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 10.0
"""Time limit for git, in seconds."""


def environment() -> dict[str, str]:
    """Return the code and the machine of this process, for manifests."""
    return {CODE: code_version(), MACHINE: machine_kind()}


@cache
def code_version() -> str:
    """Return the version of this code, with its git commit if it runs from a clone.

    Such as `0.3.0, commit 1a2b3c4d5e6f`; ` with changes` follows if tracked files differ.
    """
    # An unrelated clone around this folder does not identify this code.
    if _git("rev-parse", "--show-toplevel") != str(_ROOT):
        return __version__
    commit = _git("rev-parse", "--short=12", "HEAD")
    if not commit:
        return __version__
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return f"{__version__}, commit {commit}{' with changes' if changes else ''}"


def machine_kind() -> str:
    """Return the processor, its cores, the GPUs that this process can use, and the system."""
    cores = len(usable_cores())
    parts = [_processor(), f"{cores} {'core' if cores == 1 else 'cores'}", *_gpus()]
    release = ".".join(platform.release().split(".")[:2])
    return ", ".join([*parts, f"{platform.system()} {release}"])


def _git(*arguments: str) -> str:
    """Return the output of git, or nothing without git or a clone."""
    try:
        done = subprocess.run(
            ["git", "-C", str(_ROOT), *arguments],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@cache
def _processor() -> str:
    lines = cpu_info().splitlines()
    named = (line.partition(":")[2] for line in lines if line.startswith("model name"))
    return " ".join(next(named, "").split()) or platform.processor() or platform.machine()


def _gpus() -> list[str]:
    # Steps that never load torch use no GPU, and loading it for its name takes seconds.
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return []
    names = [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())]
    return [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]

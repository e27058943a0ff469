"""DeepSpeed's helper for processes on CPUs: compiled once, ahead of training, in the user's cache.

DeepSpeed compiles an extension for sums in shared memory when its processes start. A kill during
compilation leaves a lock, which makes every later run with the same folder hang. So the extension
is compiled here, under a lock that the system releases, and each launch gets its own copy, which
ninja finds complete. On GPUs there is nothing to compile. Cost: 20 to 60 s, once per version and
processor.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock

from inject.digest import digest
from inject.errors import InputError
from inject.files import cache_folder
from train.device import cpu_info

FOLDER = "TORCH_EXTENSIONS_DIR"
_BUILT = "built"
_TIMEOUT_SECONDS = 900
_BUILD = """
from deepspeed.accelerator import get_accelerator
if get_accelerator().device_name() == "cpu":
    from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder
    builder = ShareMemCommBuilder()
    if builder.is_compatible():
        builder.load()
"""


def prepared_extension(
    unfinished: Path, notice: Callable[[str], None] | None = None
) -> dict[str, str]:
    """Return the environment in which processes find the extension compiled.

    Args:
        unfinished: the run's folder, which gets a copy of the extension.
        notice: called with a line before the extension is compiled.

    Raises:
        InputError: as `require_extension`; the compiler failed.
    """
    run_copy = unfinished / "extensions"
    shutil.rmtree(run_copy, ignore_errors=True)
    # File times are preserved, so that ninja has nothing to do.
    shutil.copytree(compiled_extension(notice), run_copy, ignore=shutil.ignore_patterns("lock"))
    return {FOLDER: str(run_copy), "PATH": _search_path()}


def compiled_extension(notice: Callable[[str], None] | None = None) -> Path:
    """Return the folder of the compiled extension; compile it on first use.

    Raises:
        InputError: as `require_extension`; the compiler failed.
    """
    folder = _folder()
    if (folder / _BUILT).exists():
        return folder
    require_extension()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        if not (folder / _BUILT).exists():
            if notice is not None:
                notice(f"DeepSpeed's extension for CPUs is compiled once, into {folder}")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _compile(folder)
            (folder / _BUILT).touch()
    return folder


def require_extension() -> None:
    """Check that the extension is compiled, or can be.

    Raises:
        InputError: no C++ compiler, no ninja, or a cache folder that cannot be written.
    """
    folder = _folder()
    if (folder / _BUILT).exists():
        return
    compiler = shlex.split(os.environ.get("CXX") or "c++")[0]
    for program, package in ((compiler, "a C++ compiler (g++)"), ("ninja", "ninja")):
        if shutil.which(program, path=_search_path()) is None:
            raise InputError(
                f"DeepSpeed compiles an extension on CPUs, and {program} is missing",
                where="training_runtime.engine",
                allowed="torchrun, which needs no compiler",
                hint=f"Install {package}, or set training_runtime.engine=torchrun.",
            )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder.parent):
            pass
    except OSError as error:
        raise InputError(
            f"DeepSpeed's extension cannot be compiled there: {error.strerror}",
            where=str(folder.parent),
            hint="Set SPIKEIN_CACHE to a writable folder, or set training_runtime.engine=torchrun.",
        ) from error


def _folder() -> Path:
    """Return the folder of the extension for these versions and this processor's instructions."""
    named = os.environ.get(FOLDER)
    place = Path(named) / "spikein" if named else cache_folder() / "deepspeed"
    made_by = {name: version(name) for name in ("deepspeed", "torch")}
    key = digest({"python": platform.python_version(), "processor": _instructions(), **made_by})
    return place / key[:12]


def _instructions() -> str:
    """Return the instructions of this processor, as `-march=native` selects them."""
    lines = cpu_info().splitlines()
    return next((line for line in lines if line.startswith("flags")), platform.machine())


def _compile(folder: Path) -> None:
    environment = {**os.environ, FOLDER: str(folder), "PATH": _search_path()}
    try:
        result = subprocess.run(
            [sys.executable, "-c", _BUILD],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        result = subprocess.CompletedProcess(
            [], 1, stderr=f"error: not finished after {_TIMEOUT_SECONDS} s"
        )
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines
        raise InputError(
            f"DeepSpeed's extension for CPUs cannot be compiled: {(errors or ['no output'])[0]}",
            where="training_runtime.engine",
            allowed="torchrun, which needs no compiler",
            hint="Set training_runtime.engine=torchrun, or run `ds_report` to see what DeepSpeed "
            "lacks.",
        )


def _search_path() -> str:
    """Return PATH with this interpreter's programs: ninja comes with DeepSpeed."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

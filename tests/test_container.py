"""The image and the development container, as far as they can be checked without building them.

`python -m scripts.release image` builds the image if docker or podman is available.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.test_house import ORDER
from tests.test_makefile import commands

REPOSITORY = Path(__file__).resolve().parent.parent
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
PINNED = re.compile(r"[\w./-]+:(?!latest$)[\w.-]+")
NEEDED = {*ORDER, "configs", "pyproject.toml", "setup.py", "README.md", "LICENSE"}


def instructions(text: str) -> list[tuple[str, str]]:
    """Each instruction of a Dockerfile with its arguments, on one line."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in joined.split("\n")]


def is_sent(path: str) -> bool:
    """Whether `.dockerignore` lets a builder see a path: the last pattern that fits decides."""
    seen = True
    for pattern in (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if pattern and not pattern.startswith("#") and fnmatch(path, pattern.removeprefix("!")):
            seen = pattern.startswith("!")
    return seen


def problems(text: str) -> list[str]:
    """Faults that make an image unbuildable, unpinned or unsafe."""
    faults, stages, copied, users = [], set(), set(), []
    for name, arguments in instructions(text):
        words = arguments.split()
        if name == "FROM":
            if words[0] not in stages and not PINNED.fullmatch(words[0]):
                faults.append(f"no pinned image: {arguments}")
            stages.update(words[2:])
            users = []
        elif name == "COPY" and words[0].startswith("--from="):
            if words[0].removeprefix("--from=") not in stages:
                faults.append(f"no such stage: {arguments}")
        elif name == "COPY":
            copied.update(words[:-1])
        elif name == "USER":
            users.append(arguments)
        elif name == "RUN":
            faults.extend(
                f"unpinned: {command.strip()}"
                for command in arguments.split("&&")
                if " pip install " in command and "--constraint constraints.txt" not in command
            )
    faults.extend(f"is not there, or not sent: {path}" for path in sorted(copied)
                 if not (REPOSITORY / path).exists() or not is_sent(path))  # fmt: skip
    faults.extend(f"is not copied: {path}" for path in sorted(NEEDED - copied))
    if not users or users[-1] in ("0", "root"):
        faults.append("runs as root")
    return faults


def test_image_uses_existing_files_and_pinned_versions_and_does_not_run_as_root():
    assert problems(DOCKERFILE) == []
    assert ("ENTRYPOINT", '["spikein"]') in instructions(DOCKERFILE)
    # torch for CPUs; a build argument sets another index for each installation of torch.
    assert "ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu\n" in DOCKERFILE
    installs = [
        command
        for name, arguments in instructions(DOCKERFILE)
        if name == "RUN"
        for command in arguments.split("&&")
        if "pip install" in command and "setuptools" not in command
    ]
    assert len(installs) == 2
    assert all('--extra-index-url "${TORCH_INDEX}"' in command for command in installs)


def test_linter_finds_no_fault():
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    hadolint = shutil.which("hadolint", path=places)
    if hadolint is None:
        pytest.skip("hadolint is not installed; `make test` installs it")
    done = subprocess.run(
        [hadolint, "Dockerfile"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_development_container_setup_matches_make():
    settings = json.loads((REPOSITORY / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert PINNED.fullmatch(settings["image"])
    make, system = settings["postCreateCommand"].split(" && ")
    assert "--editable '.[dev]'" in commands(make.removeprefix("make "))
    assert os.access(REPOSITORY / system.removeprefix("sudo "), os.X_OK)

"""What pyproject.toml cannot say: the wheel holds the folder `configs/` as `inject/configs/`.

A clone, and so an editable installation, reads it where it lies (`inject.builtin_files`).
"""

import shutil
from pathlib import Path

from setuptools import find_namespace_packages, setup

PACKAGES = ["inject*", "train*", "detect*", "analysis*", "spikein*"]

# What an earlier build left would be in the wheel, too: modules that are gone since.
shutil.rmtree(Path("build", "lib"), ignore_errors=True)
setup(
    packages=[
        *find_namespace_packages(include=PACKAGES),
        "inject.configs",
        *(f"inject.configs.{folder}" for folder in find_namespace_packages("configs")),
    ],
    package_dir={"inject.configs": "configs"},
)

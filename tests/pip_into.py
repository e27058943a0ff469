"""`pip install PATH` of a how-to page, into a folder of the test instead of the environment.

python pip_into.py FOLDER install PATH
"""

import subprocess
import sys

folder, command, *rest = sys.argv[1:]
if command != "install":
    sys.exit(f"only `pip install` is known here, not {command!r}")
sys.exit(
    subprocess.call(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"),
            *("--no-build-isolation", "--upgrade", "--target", folder),
            *(one for one in rest if one not in ("-e", "--editable")),
        ]
    )
)

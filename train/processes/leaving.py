"""How a training process ends: at once, with its code, when its work is done or has failed.

Threads of torch's process group outlive it (`pt_gloo_runloop` twice, `gloo_tcp_loop`, rank 0's
`pt_tcpstore_uv`, whether or not `destroy_process_group` was called): they hold Python objects, and
the interpreter's end under them now and then aborts the process (SIGABRT, "terminate called without
an active exception"). A run whose models or checkpoints are all written would then count as failed.
So the process ends without the interpreter's end, which has nothing left to do: files are closed by
those who wrote them, and trackers end their runs (`train.loop.trackers`).
"""

import atexit
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from inject.errors import SpikeinError


def run_and_exit(work: Callable[[], object]) -> NoReturn:
    """Do the work and end this process with 0, an error's own code, or 1 after a traceback."""
    code = 0
    try:
        work()
    except SpikeinError as error:
        print(error, file=sys.stderr)
        code = error.exit_code
    except Exception:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

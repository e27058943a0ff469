"""The peak of this process's resident memory."""

import re
import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_mib() -> float:
    """Return the peak in MiB.

    Linux's own figure if available: `ru_maxrss` of a process that a large one has started
    begins with that process's memory.
    """
    if _STATUS.is_file():
        match = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
        if match:
            return int(match.group(1)) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

"""A process among several: says who it is, or dies, as the arguments say."""

import os
import signal
import sys
import time

if __name__ == "__main__":
    rank = int(os.environ["RANK"])
    what, which = sys.argv[1], int(sys.argv[2])
    print(f"rank {rank} of {os.environ['WORLD_SIZE']} at {os.environ['MASTER_PORT']}", flush=True)
    if what == "say":
        print("last words", end="", flush=True)
    elif rank == which:
        time.sleep(0.5)
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "fail":
            print("something went wrong here", file=sys.stderr)
            sys.exit(3)
    else:
        time.sleep(300)

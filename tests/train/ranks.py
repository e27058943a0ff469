"""One of several processes: it prints its rank, or rank 1 fails while the others wait."""

import os
import sys
import time

if __name__ == "__main__":
    rank = int(os.environ["RANK"])
    print(f"rank {rank} of {os.environ['WORLD_SIZE']} at {os.environ['MASTER_PORT']}", flush=True)
    if sys.argv[1] == "say":
        print("last words", end="", flush=True)
    elif rank == 1:
        print("something went wrong here", file=sys.stderr)
        sys.exit(3)
    else:
        time.sleep(300)

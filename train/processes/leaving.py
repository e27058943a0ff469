"""How a training process leaves the others when its work is done.

A process that ends with its group open leaves the threads of that group to the interpreter's end,
which now and then aborts it (SIGABRT, "terminate called without an active exception"): a run whose
models are all written would then count as failed. Closing waits for nobody.
"""


def leave_process_group() -> None:
    """Close torch's process group; nothing where there is none."""
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()

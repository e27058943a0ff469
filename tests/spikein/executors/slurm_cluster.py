"""A Slurm cluster of this one machine: munged, slurmctld and slurmd of Debian, in a private folder.

It needs root and Debian's packages slurm-wlm and munge; if they are missing, its tests are skipped
with the command that installs them.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
CONFIGURATION = """
ClusterName=spikein
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
KillWait=2
MinJobAge=300
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def missing_programs() -> list[str]:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[None]:
    """Start a cluster; its commands are found by SLURM_CONF in this process's environment."""
    missing = missing_programs()
    if missing:
        pytest.skip(
            f"SLURM IS NOT TESTED: {', '.join(missing)} missing; apt-get install slurm-wlm munge"
        )
    if os.geteuid() != 0:
        pytest.skip("SLURM IS NOT TESTED: its daemons are started as root here")
    # A short path: sockets have names of 107 bytes at most.
    home = Path("/tmp") / f"spikein-slurm-{os.getpid()}-{secrets.token_hex(3)}"
    home.mkdir(mode=0o755)
    started: list[subprocess.Popen[bytes]] = []
    before = os.environ.get("SLURM_CONF")
    try:
        for name in ("state", "spool"):
            (home / name).mkdir()
        key = home / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 // 2
        configuration = home / "slurm.conf"
        configuration.write_text(
            CONFIGURATION.format(
                host=socket.gethostname().partition(".")[0], folder=home, memory=memory,
                controller_port=_free_port(), node_port=_free_port(),
            )
        )  # fmt: skip
        os.environ["SLURM_CONF"] = str(configuration)
        sbin = {name: shutil.which(name) or f"/usr/sbin/{name}" for name in PROGRAMS}
        commands = [
            [sbin["munged"], "--foreground", "--force", f"--socket={home}/munge.socket",
             f"--key-file={key}", f"--pid-file={home}/munge.pid",
             f"--log-file={home}/munged.log", f"--seed-file={home}/munge.seed"],
            [sbin["slurmctld"], "-D", "-f", str(configuration)],
            [sbin["slurmd"], "-D", "-f", str(configuration)],
        ]  # fmt: skip
        for command in commands:
            with (home / "daemons.log").open("ab") as log:
                started.append(subprocess.Popen(command, stdout=log, stderr=log))
            time.sleep(0.5)
        _wait_until_idle(home)
        yield
    finally:
        _end_jobs()
        for daemon in reversed(started):
            daemon.terminate()
        for daemon in started:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        _end_left_over(home)
        if before is None:
            os.environ.pop("SLURM_CONF", None)
        else:
            os.environ["SLURM_CONF"] = before
        shutil.copytree(home, folder / "slurm-logs", ignore=lambda directory, names: [
            name for name in names if not name.endswith((".log", ".conf"))
        ])  # fmt: skip
        shutil.rmtree(home, ignore_errors=True)


def _end_jobs() -> None:
    """Cancel the jobs that a test has left, and wait until they have ended."""
    deadline = time.monotonic() + 30
    with suppress(subprocess.SubprocessError):
        while time.monotonic() < deadline:
            done = subprocess.run(
                ["squeue", "--noheader", "--format=%A"], capture_output=True, text=True, timeout=20
            )
            if done.returncode or not done.stdout.strip():
                return
            subprocess.run(["scancel", *done.stdout.split()], capture_output=True, timeout=20)
            time.sleep(0.5)


def _end_left_over(home: Path) -> None:
    """End the processes that carry the folder of this cluster in their environment."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(place.name) != os.getpid() and bytes(home) in (place / "environ").read_bytes():
                os.kill(int(place.name), signal.SIGKILL)


def _wait_until_idle(home: Path) -> None:
    deadline = time.monotonic() + 30
    output = ""
    while time.monotonic() < deadline:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True, timeout=30
        )
        output = done.stdout + done.stderr
        if done.stdout.strip() == "idle":
            return
        time.sleep(0.5)
    logs = "".join(path.read_text(errors="replace")[-3000:] for path in home.glob("*.log"))
    raise RuntimeError(f"the Slurm cluster does not start: {output}\n{logs}")

"""`python -m scripts.release [STEP …] [--out FOLDER] [--dry-run]`: make a release.

All steps in order, or only the named ones: the tree is clean, the version has its entry, lint and
suite pass, source distribution and wheel are built from the commit, the wheel is tried in an empty
environment, the image is built if a builder is available, the site is built, and its checksums are
written. Nothing is uploaded: the remaining steps are printed. The suite, the set-up of the empty
environment and its quickstart take half an hour on two cores.
"""

import argparse
import datetime
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inject.errors import InputError, SpikeinError, did_you_mean
from scripts.release.wheel import CommandFailed, build, install, run, try_out

REPOSITORY = Path(__file__).resolve().parents[2]
PLACEHOLDER = "YOUR_ACCOUNT"
SUMS = "SHA256SUMS"
NOTES = "NOTES.md"


@dataclass(frozen=True, kw_only=True)
class Release:
    """The commit to release and the folder of its files."""

    repository: Path
    """The clone."""
    out: Path
    """Contains only the files of this release."""

    def text(self, name: str) -> str:
        """Return the text of a file of the clone."""
        return (self.repository / name).read_text(encoding="utf-8")

    @property
    def project(self) -> dict[str, Any]:
        """The table `project` of pyproject.toml."""
        return tomllib.loads(self.text("pyproject.toml"))["project"]

    @property
    def version(self) -> str:
        """The version, without a `v`."""
        return str(self.project["version"])

    def built(self, pattern: str) -> Path:
        """Return the one file of this release that fits a pattern.

        Raises:
            InputError: The step that makes it has not run.
        """
        fitting = sorted(self.out.glob(pattern))
        if len(fitting) != 1:
            raise InputError(
                f"contains {len(fitting)} files {pattern} instead of one",
                where=str(self.out),
                hint="Empty the folder; then: python -m scripts.release build",
            )
        return fitting[0]


def shown(*command: str, folder: Path) -> str:
    """Run a command whose output a person follows.

    Raises:
        CommandFailed: The command ended with an error.
    """
    if code := subprocess.run(command, cwd=folder, check=False).returncode:
        raise CommandFailed(f"`{' '.join(command)}` ended with exit code {code}.")
    return "passed"


def changes(text: str) -> tuple[str, str, str]:
    """Return the version, the date and the lines of the newest entry of a changelog."""
    match = re.search(r"^## (\S+) \(([^)]+)\)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if match is None:
        raise InputError("has no entry `## VERSION (YYYY-MM-DD)`", where="CHANGELOG.md")
    return match[1], match[2], match[3].strip()


def tree(release: Release) -> str:
    """The tree equals the commit, without other files."""
    changed = run("git", "status", "--porcelain", folder=release.repository)
    if changed:
        raise InputError(
            f"differs from its commit:\n{changed.rstrip()}",
            where=str(release.repository),
            hint="Commit or stash the changes.",
        )
    return run("git", "rev-parse", "--short=12", "HEAD", folder=release.repository).strip()


def version(release: Release) -> str:
    """The version, its dated changelog entry, its citation, a free tag, and an address."""
    own, problems = release.version, []
    newest, date, _ = changes(release.text("CHANGELOG.md"))
    if newest != own:
        problems.append(f"CHANGELOG.md begins with {newest}: add the changes of {own}")
    expected = [f"version: {own}"]
    try:
        expected.append(f'date-released: "{datetime.date.fromisoformat(date)}"')
    except ValueError:
        problems.append(f"CHANGELOG.md has {newest} ({date}): set its date, YYYY-MM-DD")
    citation = release.text("CITATION.cff").splitlines()
    problems.extend(
        f"CITATION.cff has no line `{line}`" for line in expected if line not in citation
    )
    if run("git", "tag", "--list", f"v{own}", folder=release.repository).strip():
        problems.append(f"the tag v{own} exists already: raise `version` in pyproject.toml")
    if PLACEHOLDER in str(release.project["urls"]):
        problems.append(
            "pyproject.toml lacks the address of the repository: replace "
            f"{PLACEHOLDER} with its account in all files that `git grep -l {PLACEHOLDER}` lists"
        )
    if problems:
        raise InputError("\n  ".join(["is not ready", *problems]), where=f"version {own}")
    return f"{own} of {date}"


def lint(release: Release) -> str:
    """`make lint`: style and types."""
    return shown("make", "lint", folder=release.repository)


def tests(release: Release) -> str:
    """`make test`: the whole suite."""
    return shown("make", "test", folder=release.repository)


def distributions(release: Release) -> str:
    """Source distribution, wheel and release notes, only from the files of the commit."""
    release.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        archive = Path(temporary) / "commit.tar"
        run("git", "archive", "--output", archive, "HEAD", folder=release.repository)
        with tarfile.open(archive) as opened:
            opened.extractall(Path(temporary) / "commit", filter="data")
        wheel = build(Path(temporary) / "commit", release.out)
    _, _, notes = changes(release.text("CHANGELOG.md"))
    (release.out / NOTES).write_text(f"{notes}\n", encoding="utf-8")
    return wheel.name


def trial(release: Release) -> str:
    """The wheel with its pinned libraries in an empty environment; the quickstart runs there."""
    wheel = release.built("spikein-*.whl")
    with tempfile.TemporaryDirectory() as temporary:
        pins = release.repository / "constraints.txt"
        spikein = install(wheel, Path(temporary) / "environment", constraints=pins)
        (Path(temporary) / "empty").mkdir()
        lines = list(try_out(spikein, Path(temporary) / "empty"))
    return f"{lines[0].strip()}: {len(lines)} commands"


def image(release: Release) -> str:
    """The container's image, if docker or podman answers; its `spikein` reports its version."""
    for builder in ("docker", "podman"):
        info = shutil.which(builder) and subprocess.run([builder, "info"], capture_output=True)
        if info and info.returncode == 0:
            tag = f"spikein:{release.version}"
            shown(builder, "build", "--tag", tag, ".", folder=release.repository)
            output = run(builder, "run", "--rm", tag, "--version", folder=release.repository)
            return f"{tag}, by {builder}: {output.strip()}"
    return "skipped: neither docker nor podman is available"


def site(release: Release) -> str:
    """`make site`: the documentation, as one archive."""
    shown("make", "site", folder=release.repository)
    name = release.out / f"spikein-{release.version}-site"
    return Path(shutil.make_archive(str(name), "zip", release.repository / "site")).name


def checksums(release: Release) -> str:
    """The SHA-256 of all files, in the format of `sha256sum --check`."""
    release.built("spikein-*.whl")
    files = [path for path in sorted(release.out.iterdir()) if path.name != SUMS]
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (release.out / SUMS).write_text("".join(lines), encoding="utf-8")
    return f"{SUMS} of {len(files)} files"


STEPS: dict[str, Callable[[Release], str]] = {
    "tree": tree,
    "version": version,
    "lint": lint,
    "tests": tests,
    "build": distributions,
    "trial": trial,
    "image": image,
    "site": site,
    "checksums": checksums,
}
CHECKS = ("tree", "version")
"""Fast steps that write no files: a dry run performs them."""


def left_to_do(release: Release) -> str:
    """Return the manual tasks after all steps are done."""
    tag, url = f"v{release.version}", release.project["urls"]["Repository"]
    return (
        f"spikein {release.version} is in {release.out}. Nothing was uploaded. Remaining steps:\n"
        f"  git tag --annotate {tag} --message 'spikein {release.version}'\n"
        f"  git push {url} {tag}\n"
        f"  gh release create {tag} --repo {url} --notes-file {release.out / NOTES} "
        f"{release.out}/spikein-* {release.out / SUMS}"
    )


def main(arguments: Sequence[str] | None = None, repository: Path = REPOSITORY) -> int:
    """Run the steps; return 0 on success, 1 if a command failed, 2 for an unready release."""
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}; all")
    parser.add_argument("--out", type=Path, default=repository / "dist", help="new or empty; dist")
    parser.add_argument(
        "--dry-run", action="store_true", help="only check, without building or running"
    )
    options = parser.parse_args(arguments)
    names = options.steps or list(STEPS)
    release = Release(repository=repository, out=options.out.resolve())
    code = 0
    try:
        check_request(names, release.out)
        for name in names:
            if options.dry_run and name not in CHECKS:
                print(f"{name}: {STEPS[name].__doc__}")
                continue
            print(f"{name} …", flush=True)
            try:
                print(f"{name}: {STEPS[name](release)}", flush=True)
            except SpikeinError as error:
                if not options.dry_run:
                    raise
                code = refused(error)
    except SpikeinError as error:
        return refused(error)
    if not (options.dry_run or options.steps):
        print(left_to_do(release))
    return code


def check_request(names: Sequence[str], out: Path) -> None:
    """Refuse a step that there is not, and a folder that cannot take a release."""
    for name in names:
        if name not in STEPS:
            problem = f"is not a step of a release.{did_you_mean(name, STEPS)}"
            raise InputError(problem, where=name, allowed=", ".join(STEPS))
    if out.exists() and not out.is_dir():
        raise InputError("is a file, not a folder", where=f"--out {out}")
    if "build" in names and out.exists() and any(out.iterdir()):
        hint = "Remove the folder, or name another by --out."
        raise InputError("is not empty", where=f"--out {out}", hint=hint)


def refused(error: SpikeinError) -> int:
    """Print why a release goes no further; return the exit code."""
    print(f"Error: {error}\nNothing was uploaded.", file=sys.stderr, flush=True)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

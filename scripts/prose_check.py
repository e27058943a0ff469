"""Checks that prose reads like English and that names say what they hold, as a ratchet.

    python -m scripts.prose_check                # fails if a file has more hits than its baseline
    python -m scripts.prose_check --lower        # writes lower counts into the baseline
    python -m scripts.prose_check --list FILE    # every hit of a file, with its line

Prose is docstrings, comments, strings with a space, names of tests, Markdown and page templates;
what is in backticks and the placeholders of f-strings are left out. The patterns are habits of
translated English, each with few legitimate uses: in 23 well-kept libraries they occur 0.7 times
per 10,000 words. Weak names are local variables and arguments whose name says nothing about their
content. Baselines may only fall; a new file starts at zero. Cost: some five seconds.
"""

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "scripts" / "prose_baseline.json"
FOLDERS = ("inject", "train", "detect", "analysis", "spikein", "scripts", "tests", "docs")
SUFFIXES = (".py", ".md", ".j2")
WRITTEN_FOR_OTHERS = ("spikein.egg-info", "docs/notebooks")
PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b(stands?|stood)\b(?!\sfor)",
        r"\b(lies|lie|lay)\s(in|on|at|beside|behind|there|outside|elsewhere|where)\b",
        r"\b(anew|beside|nobody|everybody|somebody|whoever)\b",
        r"\b(is|are|was|were)\stold\b|\b(tells?|told)\s[a-z\s]{0,30}(from|apart)\b"
        r"|\b(asks|asked)\sfor\b",
        r"(?<![Tt]here\s)\b(is|are|was|were)\sno\s(?!longer|more\b)",
        r"(?<!stand-)\balone\b|,\stoo[,.;:)]|\bspeaks?\sof\b|\brests?\son\b",
        r"\b(an?|one)\s(row|line|file|step|panel|column|point|seed)\san?\s[a-z]+",
        r"\bReturn\s(what|how|where|those|that)\b|\b(None|NaN|empty)\swhere\b",
    )
)
OF_DOCSTRINGS = re.compile(
    r"Error:\s(it|its|they|there|one|the\s[a-z]+\s(is|are|has|was|lacks|cannot))\b"
)
WEAK_NAMES = re.compile(
    "_*(one|found|known|given|asked|what|kept|shown|wanted|every|rest|drawn|there|said|mine|theirs"
    "|ours|held|meant|told|got|thing|things|stuff|who|where|here)_*"
)
_QUOTED = re.compile(r"```.*?```|``[^`]*``|`[^`]*`", re.DOTALL)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")


class Passage(NamedTuple):
    """Some prose, and the line that it begins on."""

    line: int
    text: str
    docstring: bool = False


class Hit(NamedTuple):
    """A pattern or a weak name, with its line."""

    line: int
    text: str


class FileCheck(NamedTuple):
    """The hits and counts of one file."""

    prose: list[Hit]
    names: list[Hit]
    n_words: int
    n_names: int


def check_file(path: Path) -> FileCheck:
    """Return the hits of a file."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source) if path.suffix == ".py" else None
    passages = [Passage(1, source)] if tree is None else [*python_passages(source, tree)]
    prose = [hit for passage in passages for hit in pattern_hits(passage)]
    names = [] if tree is None else [*local_names(tree)]
    return FileCheck(
        prose=prose,
        names=[name for name in names if WEAK_NAMES.fullmatch(name.text)],
        n_words=sum(len(_WORD.findall(unquoted(passage.text))) for passage in passages),
        n_names=len(names),
    )


def unquoted(text: str) -> str:
    """Return a text whose quoted code is blank, line breaks kept."""
    return _QUOTED.sub(lambda match: "`" + "\n" * match[0].count("\n") + "`", text)


def pattern_hits(passage: Passage) -> Iterator[Hit]:
    """Yield what the patterns match."""
    text = unquoted(passage.text)
    for pattern in (*PATTERNS, *([OF_DOCSTRINGS] if passage.docstring else [])):
        for match in pattern.finditer(text):
            line = passage.line + text.count("\n", 0, match.start())
            yield Hit(line, " ".join(text[max(0, match.start() - 30) : match.end() + 30].split()))


def python_passages(source: str, tree: ast.Module) -> Iterator[Passage]:
    """Yield docstrings, comments, other strings with a space, and names of tests as sentences."""
    docstrings = set()
    inside = set()
    for node in ast.walk(tree):
        # A sentence below a field is its docstring.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node) if part is not node}
            pieces = [
                str(part.value) if isinstance(part, ast.Constant) else "``" for part in node.values
            ]
            yield Passage(node.lineno, "".join(pieces))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield Passage(node.lineno, node.name.replace("_", " "))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in inside:
            continue
        if isinstance(node.value, str) and (id(node) in docstrings or " " in node.value):
            yield Passage(node.lineno, node.value, id(node) in docstrings)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Passage(token.start[0], token.string)


def local_names(tree: ast.Module) -> Iterator[Hit]:
    """Yield every name that a function binds, once per function."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        bound = {}
        for node in own_nodes(function):
            if isinstance(node, ast.arg):
                bound.setdefault(node.arg, node.lineno)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.setdefault(node.id, node.lineno)
        yield from (Hit(line, name) for name, line in bound.items())


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function that are not those of a function in it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from own_nodes(node)


def checked_files() -> Iterator[Path]:
    """Yield the files of the repository that people read."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            # The patterns are strings of this file.
            itself = path == Path(__file__).resolve()
            if path.suffix in SUFFIXES and not itself and not name.startswith(WRITTEN_FOR_OTHERS):
                yield path


def main() -> None:
    """Compare every file with its baseline."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lower", action="store_true", help="write lower counts as the baseline")
    parser.add_argument("--list", type=Path, metavar="FILE", help="print the hits of a file")
    options = parser.parse_args()
    if options.list is not None:
        check = check_file(options.list)
        for hit in (*check.prose, *check.names):
            print(f"{options.list}:{hit.line}: {hit.text}")
        return
    checks = {path.relative_to(ROOT).as_posix(): check_file(path) for path in checked_files()}
    counts = {
        name: [len(check.prose), len(check.names)]
        for name, check in checks.items()
        if check.prose or check.names
    }
    baseline = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else counts
    risen = [
        f"{name}: {prose} hits in prose (at most {most[0]}), {weak} weak names (at most {most[1]})"
        for name, (prose, weak) in counts.items()
        if prose > (most := baseline.get(name, [0, 0]))[0] or weak > most[1]
    ]
    if options.lower:
        lower = {
            name: [min(pair) for pair in zip(count, baseline.get(name, count), strict=True)]
            for name, count in counts.items()
        }
        lines = (f"{json.dumps(name)}: {count}" for name, count in sorted(lower.items()))
        BASELINE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    prose, weak = (sum(count[at] for count in counts.values()) for at in (0, 1))
    words, names = (sum(check[at] for check in checks.values()) for at in (2, 3))
    print(
        f"{prose} hits in {words:,} words of prose ({1e4 * prose / words:.1f} per 10,000); "
        f"{weak} weak names of {names:,} ({100 * weak / names:.2f} %)."
    )
    if risen:
        print(*risen, "python -m scripts.prose_check --list FILE prints each hit.", sep="\n")
        sys.exit(1)


if __name__ == "__main__":
    main()

"""Pieces of the libraries that this project is built and tested with, as harmless records for `portcullis train`.

Without an argument: prints one JSON object a line on standard output. Source code, manuals, settings and licences are what
agents read all day, and what people paste. The versions of the libraries are pinned, and `./test` installs them, so that the
same checkout gives the same records. Which files are taken, and which pieces of them, says a hash of their names; nothing of
them is kept in this repository.
"""

import hashlib
import json
import os
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Where packages lie, one a subfolder: as cargo unpacks crates, and as `./test` installs the others.
CRATES = "registry/src/*"
OTHERS = (
    "sdk/typescript/node_modules",
    ".test/docs/npm/node_modules",
    ".test/sdk-python/lib/python3*/site-packages",
    ".test/deploy/venv/lib/python3*/site-packages",
)
# What Python brings itself, in a version of its own, and what installers note.
UNPINNED = re.compile(r"pip|setuptools|pkg_resources|_distutils_hack|__pycache__|portcullis|.+\.dist-info")
# How many pieces a package gives at most, and how many of them of one kind of file: large ones would be half of all.
OF_PACKAGE, OF_KIND = 24, 5
SIZES = (300, 800, 2000, 4000)
# Files that are lists of names and numbers, or say the same in all packages.
DULL = {".orig", ".lock", ".map", ".stderr", ".snap", ".pem", ".svg"}
# Kinds of files, by their names; the first that fits. Each is a source of its own, so that each can be left out.
KINDS = {
    "licences": re.compile(r"licen[cs]e|copying|copyright|notice"),
    "manuals": re.compile(r"readme|change|\.(?:md|mdx|rst|txt|html)$"),
    "settings": re.compile(r"\.(?:toml|ya?ml|json|ini|cfg)$"),
    "code": re.compile(""),
}
# What is read of a file, in characters, and from which length on there is something to learn.
READ, LEAST = 300_000, 200


def number(*parts: str) -> int:
    """The same for the same words, and of no order otherwise."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:8])


def source(name: str) -> str:
    """What kind of file it is."""
    file = name.rpartition("/")[2].lower()
    return "libraries_" + next(kind for kind, names in KINDS.items() if names.search(file))


def packages() -> Iterator[Path]:
    """All packages, crates first."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    for crate in lock["package"]:
        # Those without a source are of this repository.
        if "source" in crate:
            yield from there(home, f"{CRATES}/{crate['name']}-{crate['version']}")
    for other in OTHERS:
        for folder in there(ROOT, other):
            yield from inside(folder)


def there(base: Path, pattern: str) -> list[Path]:
    """The folders that are meant; without them the records would be others."""
    found = sorted(base.glob(pattern))
    if not found:
        sys.exit(f"{base / pattern} is not there: `cargo fetch --locked` and `./test` install what is read here")
    return found


def inside(folder: Path) -> Iterator[Path]:
    """The packages of a folder, those of npm scopes among them."""
    for one in sorted(path for path in folder.iterdir() if path.is_dir()):
        if one.name.startswith("@"):
            yield from inside(one)
        elif not UNPINNED.fullmatch(one.name):
            yield one


def text_of(path: Path) -> str:
    """The beginning of a file; nothing if that is no text."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read(READ)
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if "\0" in text else text


def pieces(package: Path) -> Iterator[tuple[str, str]]:
    """Some pieces of files of a package, each with where it is from."""
    def rank(path: Path) -> int:
        return number(package.name, path.relative_to(package).as_posix())

    of_kind: dict[str, int] = defaultdict(int)
    taken = 0
    for path in sorted((path for path in package.rglob("*") if path.is_file() and not path.is_symlink()), key=rank):
        kind = path.suffix.lower() or path.name
        if taken == OF_PACKAGE:
            return
        if kind in DULL or of_kind[kind] == OF_KIND or "node_modules" in path.relative_to(package).parts:
            continue
        text = text_of(path)
        if len(text) < LEAST:
            continue
        name = f"{package.name}/{path.relative_to(package).as_posix()}"
        at = number(name, "at") % (len(text) - LEAST + 1)
        yield name, text[at : at + SIZES[number(name, "size") % len(SIZES)]]
        of_kind[kind] += 1
        taken += 1


def main() -> None:
    if len(sys.argv) > 1:
        sys.exit("libraries.py takes no argument")
    seen: set[str] = set()
    for package in packages():
        for name, text in pieces(package):
            if text in seen:
                continue
            seen.add(text)
            record = {
                "id": f"libraries-{name}",
                "text": text,
                "label": "benign",
                "category": "library",
                "surface": ("user", "tool_result")[number(name, "surface") % 2],
                "tier": "material",
                "source": source(name),
                "license": "of the package",
            }
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

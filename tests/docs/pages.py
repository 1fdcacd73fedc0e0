"""The pages as tests see them: fenced blocks with their place, commands, headings and links."""

import pathlib
import re
import textwrap
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "sdk").glob("*/README.md"))]
PAGES += [ROOT / "deploy/README.md", *sorted((ROOT / "examples").glob("*/*/README.md"))]

FENCE = re.compile(r"^( *)```(\S*)\n(.*?)^\1```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks(*languages, pages=PAGES):
    """Blocks in these languages, in the order of the pages."""
    found = []
    for page in pages:
        text = page.read_text()
        for match in FENCE.finditer(text):
            if match[2] in languages:
                line = text.count("\n", 0, match.start()) + 1
                found.append(Block(str(page.relative_to(ROOT)), line, match[2], textwrap.dedent(match[3])))
    return found


def without_blocks(text):
    """The text with fenced blocks emptied, so that lines keep their numbers."""
    return FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)


def commands(text):
    """Commands of a block: one a line, unless a line ends in a backslash or a quote is still open."""
    found, held = [], ""
    for line in text.splitlines():
        held = f"{held}\n{line}" if held else line
        if held.endswith("\\") or is_open(held):
            continue
        if held.strip() and not held.lstrip().startswith("#"):
            found.append(held)
        held = ""
    assert not held, f"a command that does not end: {held}"
    return found


def without_comment(command):
    """The command without the comment behind it."""
    at, quote = 0, ""
    while at < len(command):
        char = command[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#" and at and command[at - 1] == " " and not quote:
            return command[:at].rstrip()
        at += 1
    return command.strip()


def is_open(command):
    """Whether a quote of the command is still open."""
    quote, escaped = "", False
    for at, char in enumerate(command):
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#" and (at == 0 or command[at - 1].isspace()):
            return False
    return bool(quote)


def steps(page, title):
    """Commands of the numbered list below a heading."""
    text = (ROOT / page).read_text()
    section = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    assert section, f"{page} has no heading {title}"
    return re.findall(r"^\d+\. `(.*?)`(?: |$)", section[1], re.M)


def anchors(page):
    """Anchors of a page, as GitHub makes them of its headings."""
    found, counts = set(), {}
    for heading in re.findall(r"^#+ (.*)$", without_blocks(page.read_text()), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        plain = plain.replace("&lt;", "<").replace("&gt;", ">")
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        count = counts.get(slug, 0)
        counts[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found

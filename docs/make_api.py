#!/usr/bin/env python3
"""Writes docs/API.md from the comments of proto/portcullis/v1.

    docs/make_api.py            writes the page
    docs/make_api.py --check    exit code 1 when the page is not what it would write

Needs Python alone. It reads the subset of proto3 that our files are written in, one declaration a line, and stops at
anything else, so that nothing is left out in silence.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROTOS = ROOT / "proto" / "portcullis" / "v1"
PAGE = ROOT / "docs" / "API.md"

# The order in which a reader meets them; a file that is not named here is an error.
FILES = [
    "policy_decision_service",
    "decision",
    "messages",
    "context",
    "interceptors",
    "monitor",
    "bundles",
    "interceptor_registry_service",
    "incident_service",
    "submission_service",
    "entity_service",
    "policy_service",
    "audit_service",
    "extension_service",
]

HEAD = """# API reference

Package `portcullis.v1`, written by `docs/make_api.py` from the comments of [`proto/portcullis/v1`](../proto/portcullis/v1):
change those, not this page. Who may call what is told in [Identity](IDENTITY.md#roles), errors in [Operating](OPERATING.md#errors).
"""

BLOCK = re.compile(r"^(service|message|enum|oneof) (\w+) \{$")
RPC = re.compile(r"^rpc (\w+)\((stream )?([\w.]+)\) returns \((stream )?([\w.]+)\);$")
FIELD = re.compile(r"^(?:(optional|repeated) )?(map<\w+, [\w.]+>|[\w.]+) (\w+) = (\d+)( \[[^\]]*\])?;$")
VALUE = re.compile(r"^(\w+) = (\d+);$")
IGNORED = re.compile(r"^(syntax|package|import|option|reserved)\b.*;$")


def read(path):
    """One file as (its comment, its top-level blocks); a block is a dict with `kind`, `name`, `text` and `items`."""
    comment, head, stack, blocks = [], [], [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if line.startswith("//"):
            text = line[2:].strip()
            # Orders to the linter are no matter of the reader.
            if not text.startswith("buf:lint:"):
                comment.append(text)
            continue
        text, comment = comment, []
        if not line or IGNORED.match(line):
            if line.startswith("package"):
                head = text
            elif text and not line:
                raise SystemExit(f"{path.name}:{number}: a comment that belongs to nothing")
        elif opened := BLOCK.match(line):
            block = {"kind": opened[1], "name": opened[2], "text": text, "items": []}
            (stack[-1]["items"] if stack else blocks).append(block)
            stack.append(block)
        elif empty := re.match(r"^message (\w+) \{\}$", line):
            blocks.append({"kind": "message", "name": empty[1], "text": text, "items": []})
        elif line == "}":
            stack.pop()
        elif stack and (found := RPC.match(line)):
            stack[-1]["items"].append({"kind": "rpc", "name": found[1], "text": text, "found": found})
        elif stack and (found := VALUE.match(line)) and stack[-1]["kind"] == "enum":
            stack[-1]["items"].append({"kind": "value", "name": found[1], "text": text, "number": found[2]})
        elif stack and (found := FIELD.match(line)):
            stack[-1]["items"].append({"kind": "field", "name": found[3], "text": text, "found": found})
        else:
            raise SystemExit(f"{path.name}:{number}: not understood: {line}")
        if line and not IGNORED.match(line) and line != "}" and not text:
            raise SystemExit(f"{path.name}:{number}: without a comment: {line}")
    return head, blocks


def paragraphs(lines):
    """Lines of a comment as Markdown; numbered steps stay a list."""
    return "\n".join(lines).strip()


def cell(lines):
    """Lines of a comment in one cell of a table."""
    return " ".join(line for line in lines if line).replace("|", "\\|")


def link(name, known):
    """A type, as a link where it is one of ours or of a known library."""
    short = name.rsplit(".", 1)[-1]
    return f"[`{short}`](#{short.lower()})" if short in known and not name.startswith("google.") else f"`{name}`"


def kind_of(field, known):
    label, kind = field["found"][1], field["found"][2]
    if kind.startswith("map<"):
        key, value = kind[4:-1].split(", ")
        return f"map of `{key}` to {link(value, known)}"
    return f"{label} {link(kind, known)}" if label else link(kind, known)


def table(head, rows):
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows), ""]


def write_message(block, known):
    rows = []
    for item in block["items"]:
        if item["kind"] == "oneof":
            rows.append([f"one of `{item['name']}`", "", cell(item["text"])])
            rows += [[f"&nbsp;&nbsp;`{each['name']}`", kind_of(each, known), cell(each["text"])] for each in item["items"]]
        else:
            rows.append([f"`{item['name']}`", kind_of(item, known), cell(item["text"])])
    out = [f"### {block['name']}", "", paragraphs(block["text"]), ""]
    return out + (table(["field", "type", "meaning"], rows) if rows else ["No fields.", ""])


def write_enum(block):
    rows = [[f"`{item['name']}`", item["number"], cell(item["text"])] for item in block["items"]]
    return [f"### {block['name']}", "", paragraphs(block["text"]), "", *table(["value", "number", "meaning"], rows)]


def write_service(block, known):
    out = [f"### {block['name']}", "", paragraphs(block["text"]), ""]
    for item in block["items"]:
        _, name, asks, request, answers, response = item["found"].group(0, 1, 2, 3, 4, 5)
        shape = f"{asks or ''}{link(request, known)} → {answers or ''}{link(response, known)}"
        out += [f"#### {block['name']}.{name}", "", shape, "", paragraphs(item["text"]), ""]
    return out


def page():
    there = {path.stem for path in PROTOS.glob("*.proto")}
    if there != set(FILES):
        raise SystemExit(f"files that FILES does not name, or names in vain: {sorted(there ^ set(FILES))}")
    files = {name: read(PROTOS / f"{name}.proto") for name in FILES}
    names = [block["name"] for _, blocks in files.values() for block in blocks]
    if len({name.lower() for name in names}) != len(names):
        raise SystemExit("two declarations have one anchor")
    known = set(names)
    out = [HEAD]
    for service in (block for _, blocks in files.values() for block in blocks if block["kind"] == "service"):
        calls = ", ".join(f"[`{rpc['name']}`](#{(service['name'] + rpc['name']).lower()})" for rpc in service["items"])
        out.append(f"- [`{service['name']}`](#{service['name'].lower()}): {calls}")
    out.append("")
    for name, (head, blocks) in files.items():
        out += [f"## {name}.proto", "", paragraphs(head), ""]
        for block in blocks:
            if block["kind"] == "service":
                out += write_service(block, known)
            elif block["kind"] == "enum":
                out += write_enum(block)
            else:
                out += write_message(block, known)
    return "\n".join(out).rstrip() + "\n"


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 64
    text = page()
    if not arguments:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        print("docs/API.md is not what docs/make_api.py writes: run it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Writes what `config` may hold into the chart's values.schema.json.

    deploy/helm/make_schema.py            writes it
    deploy/helm/make_schema.py --check    exit code 1 when the schema is not what it would write

Keys, words and kinds of values are those of docs/SETTINGS_REFERENCE.md: read from the same structs by the same program
(docs/make_reference.py). How a duration, a size, an address, a host, a level and the URL of a collector are written stands
here, in FORMATS; a test holds each against the program. So a slip fails at `helm template`, and not in a pod that ends with
exit code 78. Ranges are left to the service, which knows them. Needs Python alone.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "deploy" / "helm" / "portcullis" / "values.schema.json"

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs"))
import make_reference as reference  # noqa: E402

# The member that is written: from its name to the line of the next one.
CONFIG = re.compile(r'^    "config": .*?,\n(?=    "policies": )', re.M | re.S)


def either(*words):
    """Any of these words, in letters of either case: there is no flag for that in a schema."""
    return "(" + "|".join("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in word) for word in words) + ")"


LEVEL = either("off", "error", "warn", "info", "debug", "trace")
DURATION = r"\s*[0-9]+\s*(ms|s|m|h)\s*"
SIZE = r"\s*[0-9]+\s*" + either("gib", "mib", "kib", "b") + r"?\s*"
# No digit more may be refused here than the service refuses: what is too large is a matter of ranges.
FORMATS = {
    "duration": DURATION,
    "duration, `off`": f"({DURATION}|{either('off')})",
    "size": SIZE,
    "address": r"([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9a-fA-F:.]+(%[0-9]+)?\]):[0-9]+",
    # Texts whose format is that of one setting.
    "log.level": rf"(\s*[^,=]*={LEVEL}\s*,)*\s*{LEVEL}\s*(,\s*([^,=]*=)?{LEVEL}\s*)*",
    "http.allowed_hosts[]": r"(\*|([A-Za-z0-9._~!$&'()+,;=%-]+|\[[0-9a-fA-F:.]+\])(:[0-9]+)?)",
    "tracing.otlp_endpoint": r"http://[^\s/?#:]\S*",
    "audit.otlp_endpoint": r"http://[^\s/?#:]\S*",
}
# What a value may be, by its kind in the reference. `off` without quotes is false to YAML, and refused.
TYPES = {
    "path": ["string"],
    "text": ["string"],
    "text, secret": ["string"],
    "address": ["string"],
    "`true`, `false`": ["boolean"],
    "whole number": ["integer"],
    "number": ["number"],
    "size": ["string", "integer"],
    "duration": ["string"],
    "duration, `off`": ["string"],
    "mapping": ["object"],
}


class Schema(reference.Settings):
    """The tree of settings as a schema. Null is allowed everywhere: Helm deletes with it, some settings have it as a value."""

    def __init__(self):
        self.rust = reference.Rust()

    def config(self):
        root = self.rust.find("Settings", reference.SRC / "config" / "mod.rs")
        return {"description": "portcullis.yaml. Written by deploy/helm/make_schema.py.", **self.mapping(root, "")}

    def mapping(self, struct, prefix):
        members = {field["name"]: self.member(field, struct, f"{prefix}{field['name']}") for field in struct["items"]}
        return {"type": ["object", "null"], "additionalProperties": False, "properties": members}

    def member(self, field, owner, key):
        """What the member `key` may be; `kind` of the base class tells it in the words of the reference."""
        plain = reference.unwrapped(field["type"])
        if listed := re.fullmatch(r"Vec<(.+)>", plain):
            item = self.member({**field, "type": listed[1], "attributes": []}, owner, f"{key}[]")
            return {"type": ["array", "null"], "items": item}
        if mapped := re.fullmatch(r"BTreeMap<String, (.+)>", plain):
            item = self.member({**field, "type": mapped[1], "attributes": []}, owner, f"{key}.*")
            return {"type": ["object", "null"], "additionalProperties": item}
        kind, enum = self.kind(field, owner)
        if enum:
            words = reference.words_of(enum)[0]
            # `2` without quotes is a number to YAML.
            numbers = [int(word) for word in words if word.isdigit()]
            as_text = {"enum": [*words, None]}
            return {"anyOf": [as_text, {"enum": numbers}]} if numbers else as_text
        found = None if plain in reference.KINDS else self.rust.find(plain, owner["path"])
        if found and found["kind"] == "struct" and kind == "mapping":
            return self.mapping(found, f"{key}.")
        if kind == "JSON":
            return {}
        made = {"type": [*TYPES[kind], "null"]}
        if pattern := FORMATS.get(key) or FORMATS.get(kind):
            made["pattern"] = f"^{pattern}$"
        if kind == "size":
            made["minimum"] = 0
        return made


def written(value, indent):
    """JSON with objects that hold objects over several lines, and all else on one."""
    if isinstance(value, dict) and any(isinstance(inner, dict) for inner in value.values()):
        inner = ",\n".join(f"{indent}  {json.dumps(name)}: {written(each, indent + '  ')}" for name, each in value.items())
        return f"{{\n{inner}\n{indent}}}"
    return json.dumps(value)


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 64
    text = SCHEMA.read_text()
    made, count = CONFIG.subn(lambda _: f'    "config": {written(Schema().config(), "    ")},\n', text)
    if count != 1:
        raise SystemExit(f"{SCHEMA.name} has {count} places for `config` before `policies`")
    if arguments:
        if made != text:
            print("values.schema.json is not what deploy/helm/make_schema.py writes: run it", file=sys.stderr)
        return int(made != text)
    SCHEMA.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

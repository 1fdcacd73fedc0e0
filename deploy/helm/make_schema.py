#!/usr/bin/env python3
"""Writes what `config` may hold into the chart's values.schema.json.

    deploy/helm/make_schema.py            writes it
    deploy/helm/make_schema.py --check    exit code 1 when the schema is not what it would write

Keys, words and kinds of values are those of docs/SETTINGS_REFERENCE.md: read from the same structs by the same program
(docs/make_reference.py). So a misspelt key fails at `helm template`, and not in a pod that ends with exit code 78. Ranges
are left to the service, which knows them. Needs Python alone.
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
# What a value may be, by its kind in the reference. A duration without a unit is left to the chart, which says what is wrong
# with it; `off` without quotes is false to YAML, and refused.
TYPES = {
    "path": ["string"],
    "text": ["string"],
    "text, secret": ["string"],
    "address": ["string"],
    "`true`, `false`": ["boolean"],
    "whole number": ["integer"],
    "number": ["number"],
    "size": ["string", "integer"],
    "duration": ["string", "integer"],
    "duration, `off`": ["string", "integer"],
    "mapping": ["object"],
}


class Schema(reference.Settings):
    """The tree of settings as a schema. Null is allowed everywhere: Helm deletes with it, some settings have it as a value."""

    def __init__(self):
        self.rust = reference.Rust()

    def config(self):
        root = self.rust.find("Settings", reference.SRC / "config" / "mod.rs")
        return {"description": "portcullis.yaml. Written by deploy/helm/make_schema.py.", **self.mapping(root)}

    def mapping(self, struct):
        members = {field["name"]: self.member(field, struct) for field in struct["items"]}
        return {"type": ["object", "null"], "additionalProperties": False, "properties": members}

    def member(self, field, owner):
        """What a member may be; `kind` of the base class tells it in the words of the reference."""
        plain = reference.unwrapped(field["type"])
        if listed := re.fullmatch(r"Vec<(.+)>", plain):
            return {"type": ["array", "null"], "items": self.member({**field, "type": listed[1], "attributes": []}, owner)}
        if mapped := re.fullmatch(r"BTreeMap<String, (.+)>", plain):
            item = self.member({**field, "type": mapped[1], "attributes": []}, owner)
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
            return self.mapping(found)
        return {} if kind == "JSON" else {"type": [*TYPES[kind], "null"]}


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

#!/usr/bin/env python3
"""Writes docs/POLICY_REFERENCE.md and docs/SETTINGS_REFERENCE.md.

    docs/make_reference.py PROGRAM            writes the pages
    docs/make_reference.py PROGRAM --check    exit code 1 when a page is not what it would write

What a key means is read from the doc comments of the Rust structs under src, and what holds where nothing is said from
the built PROGRAM (`portcullis config`, `portcullis policy show`). A key that one side knows and the other does not is an
error, so neither page can leave one out. Needs Python alone.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

STRUCT = re.compile(r"^pub(?:\([\w:\s]+\))? (struct|enum) (\w+) \{$")
FIELD = re.compile(r"^    (?:pub(?:\([\w:\s]+\))? )?(\w+): (.+),$")
VARIANT = re.compile(r"^    (\w+)(?:\(.*\))?,$")


class Rust:
    """Structs and enums of the sources with their comments."""

    def __init__(self):
        self.types = {}
        for path in sorted(SRC.rglob("*.rs")):
            if "tests" not in path.parts and path.name != "tests.rs":
                self.read(path)

    def read(self, path):
        doc, attributes, current = [], [], None
        for line in path.read_text().splitlines():
            if opened := STRUCT.match(line):
                current = {"kind": opened[1], "name": opened[2], "path": path, "doc": doc, "attributes": attributes, "items": []}
                self.types.setdefault(opened[2], []).append(current)
                doc, attributes = [], []
            elif line.strip().startswith("///"):
                doc.append(line.strip()[3:].strip())
            elif line.strip().startswith("#["):
                attributes.append(line.strip())
            elif line.strip().startswith("//"):
                continue
            elif current and line == "}":
                current, doc, attributes = None, [], []
            elif current and (found := (FIELD if current["kind"] == "struct" else VARIANT).match(line)):
                kind = found[2] if current["kind"] == "struct" else ""
                current["items"].append({"name": found[1], "type": kind, "doc": doc, "attributes": attributes})
                doc, attributes = [], []
            elif not current:
                doc, attributes = [], []

    def find(self, name, path=None):
        """The type called `name`, such as `Config` in `crate::http::Config`; `path` is the file that speaks of it."""
        module, _, short = name.rpartition("::")
        found = self.types.get(short, [])
        if len(found) > 1 and module:
            folder = SRC.joinpath(*module.removeprefix("crate::").split("::"))
            found = [each for each in found if each["path"].parent == folder]
        if len(found) > 1:
            near = [each for each in found if path and path.parent in (each["path"].parent, *each["path"].parents)]
            found = [each for each in near if each["path"] == path] or near
        if len(found) > 1:
            raise SystemExit(f"{name}: there are several of this name")
        return found[0] if found else None

    def strings(self, constant):
        """The texts of a constant list such as `ROOT_KEYS`."""
        text = (SRC / "policy" / "schema.rs").read_text()
        found = re.search(rf"const {constant}: &\[&str\] =\s*&\[(.*?)\];", text, re.S)
        return re.findall(r'"([^"]+)"', found[1])


def text_of(doc, where):
    if not doc:
        raise SystemExit(f"{where}: has no doc comment")
    text = re.sub(r"\[(`[^`]+`)\]", r"\1", " ".join(line for line in doc if line))
    return text.replace("`None`", "absent").replace("|", "\\|")


def unwrapped(kind):
    """`Option<T>` as T."""
    found = re.fullmatch(r"Option<(.+)>", kind)
    return found[1] if found else kind


def words_of(enum):
    """The words of an enum in a settings file, and the one that is its default."""
    style = next((each for each in enum["attributes"] if "rename_all" in each), "")
    words, default = [], None
    for item in enum["items"]:
        renamed = next((re.search(r'rename = "([^"]+)"', each) for each in item["attributes"] if "rename =" in each), None)
        snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", item["name"])
        word = renamed[1] if renamed else (snake if "snake_case" in style else item["name"]).lower() if style else item["name"]
        words.append(word)
        if "#[default]" in item["attributes"]:
            default = word
    return words, default


KINDS = {
    "bool": "`true`, `false`",
    "PathBuf": "path",
    "String": "text",
    "Secret": "text, secret",
    "SocketAddr": "address",
    "f64": "number",
    "i64": "whole number",
    "usize": "whole number",
    "u32": "whole number",
    "Value": "JSON",
    "Map<String, Value>": "mapping",
}
WITH = {
    "bytes": "size",
    "duration": "duration",
    "duration::or_off": "duration, `off`",
    "count": "whole number",
    "address": "address",
    "ratio": "number",
}


class Settings:
    """The tree of settings, walked from the struct `Settings`."""

    def __init__(self, rust, program):
        self.rust = rust
        shown = json.loads(run(program, "config", "--json"))["settings"]
        self.values = {each["key"]: each["value"] for each in shown}
        self.seen = set()

    def kind(self, field, owner):
        """What a value is, in words; the enum if it is one."""
        by = next((re.search(r'with = "(?:crate::setting::)?([\w:]+)"', each) for each in field["attributes"] if "with" in each), None)
        kind = unwrapped(field["type"])
        if by and by[1] in WITH:
            return WITH[by[1]], None
        if kind in KINDS:
            return KINDS[kind], None
        if listed := re.fullmatch(r"Vec<(.+)>", kind):
            return f"list of {self.kind({**field, 'type': listed[1], 'attributes': []}, owner)[0]}", None
        if mapped := re.fullmatch(r"BTreeMap<String, (.+)>", kind):
            return f"mapping of names to {self.kind({**field, 'type': mapped[1], 'attributes': []}, owner)[0]}", None
        found = self.rust.find(kind, owner["path"])
        if found and found["kind"] == "enum":
            return ", ".join(f"`{word}`" for word in words_of(found)[0]), found
        if found:
            return "mapping", None
        return f"`{kind}`", None

    def default(self, key, enum):
        value = self.values[key]
        if value == "***" and enum:
            # What `config` masks for its name is no secret where the words are known.
            value = words_of(enum)[1]
        if value is None:
            return "none"
        if value in ([], {}):
            return "empty"
        shown = value if isinstance(value, str) else json.dumps(value)
        return f"`{shown}`"

    def rows(self, struct, prefix, in_file):
        """Rows of one section; `in_file` says that the keys are leaves of `config`."""
        rows, later = [], []
        for field in struct["items"]:
            key = f"{prefix}{field['name']}"
            plain = unwrapped(field["type"])
            inner = None if plain in KINDS else self.rust.find(plain, struct["path"])
            if inner and inner["kind"] == "struct":
                deeper, more = self.rows(inner, f"{key}.", in_file)
                rows += deeper
                later += more
                continue
            kind, enum = self.kind(field, struct)
            if in_file:
                self.seen.add(key)
                default = self.default(key, enum)
                rows.append([f"`{key}`", kind, default, text_of(field["doc"], key)])
            else:
                rows.append([f"`{key}`", kind, text_of(field["doc"], key)])
            held = re.fullmatch(r"(?:Vec|BTreeMap)<(?:String, )?(\w+)>", unwrapped(field["type"]))
            item = held and self.rust.find(held[1], struct["path"])
            if item and item["kind"] == "struct":
                later.append((f"{key}.&lt;name&gt;" if field["type"].startswith("BTreeMap") else f"{key}[]", item))
        return rows, later

    def page(self):
        out = [SETTINGS_HEAD]
        root = self.rust.find("Settings", SRC / "config" / "mod.rs")
        for field in root["items"]:
            section = self.rust.find(field["type"], root["path"])
            if not section or section["kind"] != "struct":
                kind, enum = self.kind(field, root)
                key = field["name"]
                self.seen.add(key)
                out += [f"## {key}", "", *table(SETTINGS_COLUMNS, [[f"`{key}`", kind, self.default(key, enum), text_of(field["doc"], key)]])]
                continue
            out += [f"## {field['name']}", "", text_of(field["doc"], field["name"]), ""]
            rows, later = self.rows(section, f"{field['name']}.", True)
            out += table(SETTINGS_COLUMNS, rows)
            while later:
                prefix, item = later.pop(0)
                out += [f"### {prefix}", "", text_of(item["doc"], prefix), ""]
                rows, more = self.rows(item, "", False)
                out += table(["key", "value", "meaning"], rows)
                later += more
        # A mapping with entries shows each of them, which is no key of its own.
        missing = {key for key in self.values if not any(key == seen or key.startswith(f"{seen}.") for seen in self.seen)}
        if missing or self.seen - set(self.values):
            raise SystemExit(f"the program and the structs differ: {sorted(missing | (self.seen - set(self.values)))}")
        return "\n".join(out).rstrip() + "\n"


SETTINGS_COLUMNS = ["key", "value", "default", "meaning"]
SETTINGS_HEAD = """# Settings reference

Every key of `portcullis.yaml`, written by `docs/make_reference.py` from the doc comments of the structs and from `portcullis
config`: change those, not this page. Where settings come from, how keys become variables, and how durations and sizes are
written is told in [Operating](OPERATING.md#settings). What is out of range is refused at the start, with the range.
"""

POLICY_HEAD = """# Policy reference

Every key of a policy file, written by `docs/make_reference.py` from the doc comments of the structs and from `portcullis policy
show`: change those, not this page. What the keys are for, how policies inherit and how findings become decisions is told in
[Policies](POLICIES.md). The default is that of the built-in policy `default`.
"""

# Each list of keys in src/policy/schema.rs: heading, text, struct, fields by key where the names differ, path of defaults.
POLICY_SECTIONS = [
    ("ROOT_KEYS", "The file", "", "Layer", {"injection": None, "pii": None, "audit": None}, ""),
    ("THRESHOLD_KEYS", "thresholds", "", "ThresholdsLayer", {}, "thresholds."),
    ("CATEGORY_KEYS", "categories.&lt;category&gt;", "", "CategoryLayer", {"warn": ("ThresholdsLayer", "warn"), "block": ("ThresholdsLayer", "block")}, None),
    ("RULE_KEYS", "rules.&lt;rule&gt;", "", "CategoryLayer", {}, None),
    ("PLUGIN_KEYS", "plugins.&lt;plugin&gt;", "", "PluginLayer", {"fail": None}, None),
    ("FAIL_KEYS", "plugins.&lt;plugin&gt;.fail", "One word for both, or:", "PluginLayer", {"input": "fail_input", "output": "fail_output"}, None),
    ("INJECTION_KEYS", "injection", "", "Layer", {}, "injection."),
    ("PII_KEYS", "pii", "", "Layer", {}, "pii."),
    ("AUDIT_KEYS", "audit", "", "Layer", {}, "audit."),
    ("AUDIT_FILTER_KEYS", "audit.filters[]", "", "AuditFilter", {}, None),
    ("SUPPRESSION_KEYS", "suppressions[]", "", "Suppression", {}, None),
    ("TOOLS_KEYS", "tools", "", "ToolSettings", {}, None),
    ("ARGUMENT_KIND_KEYS", "tools.arguments.&lt;tool&gt;", "", "ArgumentKind", "variants", None),
    ("INTERCEPTOR_KEYS", "interceptors[]", "", "InterceptorSpec", {"when": ("RuleSpec", "when"), "do": ("RuleSpec", "actions"), "extension": ("HandlerSpec", "Extension"), "webhook": ("HandlerSpec", "Webhook")}, None),
    ("ACTION_KEYS", "interceptors[].do[]", "Each item has one of these keys.", "ActionSpec", "tagged", None),
    ("PARAMS_KEYS", "interceptors[].do[].set_params", "", "Params", {}, None),
    ("EXTENSION_KEYS", "interceptors[].extension", "", "RemoteSpec", {}, None),
    ("WEBHOOK_KEYS", "interceptors[].webhook", "", "RemoteSpec", {"url": "endpoint"}, None),
    ("BUILTIN_KEYS", "interceptors[] with an id of a built-in one", "What is left out stays as it is.", "BuiltinSwitch", {"id": "=One of `builtin:…`."}, None),
    ("STREAMS_KEYS", "streams", "", "StreamSettings", {}, "streams."),
    ("KNOWN_SAFE_KEYS", "streams.known_safe[]", "", "KnownSafe", {}, None),
]  # fmt: skip


def policy_page(rust, program):
    shown = run(program, "policy", "show")
    values = flat(shown)
    out = [POLICY_HEAD]
    named = set(re.findall(r"const (\w+_KEYS): &\[&str\]", (SRC / "policy" / "schema.rs").read_text()))
    if named != {section[0] for section in POLICY_SECTIONS}:
        raise SystemExit(f"lists of keys that have no section, or sections without: {named ^ {s[0] for s in POLICY_SECTIONS}}")
    for constant, heading, text, struct, fields, path in POLICY_SECTIONS:
        rows = []
        for key in rust.strings(constant):
            meaning = policy_meaning(rust, struct, fields, key)
            # Its own name and description are no defaults of others.
            default = "" if path is None or key in ("name", "description") else values.get(f"{path}{key}", "")
            rows.append([f"`{key}`", *([f"`{default}`" if default else ""] if path is not None else []), meaning])
        out += [f"## {heading}", ""] + ([text, ""] if text else [])
        out += table(["key", "default", "meaning"] if path is not None else ["key", "meaning"], rows)
        if constant == "PLUGIN_KEYS":
            out += ["The built-in policy has:", "", *table(["plugin", "mode", "fail", "timeout"], plugin_rows(shown))]
    return "\n".join(out).rstrip() + "\n"


def policy_meaning(rust, struct, fields, key):
    """The comment of the field or variant behind `key`."""
    if fields in ("variants", "tagged"):
        enum = rust.find(struct, SRC / "policy" / "schema.rs")
        for item in enum["items"]:
            text = text_of(item["doc"], f"{struct}.{item['name']}")
            if fields == "variants" and re.sub(r"(?<=[a-z])([A-Z])", r"_\1", item["name"]).lower() == key:
                return text
            if fields == "tagged" and text.startswith(f"`{key}`: "):
                text = text.removeprefix(f"`{key}`: ")
                return text[0].upper() + text[1:]
        raise SystemExit(f"{struct}: no variant for `{key}`")
    target = fields.get(key, key)
    if target is None:
        return "See below."
    if isinstance(target, str) and target.startswith("="):
        return target[1:]
    if isinstance(target, tuple):
        struct, target = target
    found = rust.find(struct, SRC / "policy" / "schema.rs")
    for item in found["items"]:
        if item["name"] == target:
            return text_of(item["doc"], f"{struct}.{target}")
    raise SystemExit(f"{struct}: no field for `{key}`")


def flat(yaml):
    """The single values of what `policy show` prints, by dotted key."""
    values, stack = {}, []
    for line in yaml.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        key, _, value = line.strip().partition(":")
        stack[depth:] = [key.strip('"')]
        if value.strip():
            values[".".join(stack)] = value.strip()
    return values


def plugin_rows(yaml):
    values = flat(yaml)
    names = sorted({key.split(".")[1] for key in values if key.startswith("plugins.")})
    rows = []
    for name in names:
        fail = dict(re.findall(r"(\w+): (\w+)", values[f"plugins.{name}.fail"]))
        words = set(fail.values())
        shown = words.pop() if len(words) == 1 else ", ".join(f"{key}: {word}" for key, word in fail.items())
        rows.append([f"`{name}`", f"`{values[f'plugins.{name}.mode']}`", f"`{shown}`", f"`{values[f'plugins.{name}.timeout']}`"])
    return rows


def table(head, rows):
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows), ""]


def run(program, *arguments):
    """What the program prints, in an empty folder and without an environment: settings of this place take no part."""
    with tempfile.TemporaryDirectory() as empty:
        return subprocess.run([program, *arguments], cwd=empty, env={}, check=True, capture_output=True, text=True).stdout


def main(arguments):
    if len(arguments) not in (1, 2) or arguments[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 64
    program = pathlib.Path(arguments[0]).resolve()
    rust = Rust()
    pages = {"POLICY_REFERENCE.md": policy_page(rust, program), "SETTINGS_REFERENCE.md": Settings(rust, program).page()}
    stale = 0
    for name, text in pages.items():
        page = ROOT / "docs" / name
        if len(arguments) == 1:
            page.write_text(text)
        elif not page.exists() or page.read_text() != text:
            print(f"docs/{name} is not what docs/make_reference.py writes: run it", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The Dockerfile, what reaches the builder, and the last stage put together by hand.

No container engine is needed: what cannot be checked here is the fetching of the base images and the build within them.
"""

import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import tomllib

import pytest
import yaml
from conftest import DEPLOY, ROOT
from service import BINARY

DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
# Libraries of gcr.io/distroless/cc-debian12: the C library, and what GCC brings.
DISTROLESS_CC = {
    "linux-vdso.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libdl.so.2",
    "libpthread.so.0", "librt.so.1", "libresolv.so.2", "libgcc_s.so.1", "libstdc++.so.6", "libgomp.so.1",
}  # fmt: skip
USER = 65532


def instructions() -> list[tuple[str, str]]:
    """Every instruction with its arguments, lines that go on joined."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.M)
    text = re.sub(r"\\\n\s*", "", text)
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line.strip())]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    return found[max(i for i, (word, _) in enumerate(found) if word == "FROM") :]


def of_last_stage(word: str) -> list[str]:
    return [rest for found, rest in last_stage() if found == word]


def hadolint(text: str) -> subprocess.CompletedProcess:
    return subprocess.run(["hadolint", "--failure-threshold", "style", "-"], input=text, capture_output=True, text=True)


def test_hadolint():
    result = hadolint(DOCKERFILE)
    assert result.returncode == 0, result.stdout
    assert "hadolint ignore" not in DOCKERFILE
    assert hadolint(DOCKERFILE + "RUN cd /tmp && sudo true\n").returncode != 0


def test_base_images_are_pinned():
    arguments = dict(rest.split("=", 1) for word, rest in instructions() if word == "ARG")
    images = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert images == ["${RUST_IMAGE}", "${RUN_IMAGE}"], "digests can be given with --build-arg"
    version = re.fullmatch(r"rust:(\d+)\.(\d+)\.\d+-bookworm", arguments["RUST_IMAGE"])
    needed = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["rust-version"]
    assert tuple(map(int, version.groups())) >= tuple(map(int, needed.split(".")))
    assert arguments["RUN_IMAGE"] == "gcr.io/distroless/cc-debian12:nonroot", "the same Debian as that of the build"


def test_the_last_stage():
    assert [json.loads(rest) for rest in of_last_stage("ENTRYPOINT")] == [["/usr/local/bin/portcullis"]]
    assert [json.loads(rest) for rest in of_last_stage("CMD")] == [["serve"]]
    assert of_last_stage("USER") == [f"{USER}:{USER}"]
    assert of_last_stage("STOPSIGNAL") == ["SIGTERM"]
    assert not of_last_stage("RUN"), "there is no shell"
    (check,) = of_last_stage("HEALTHCHECK")
    assert json.loads(check.partition("CMD ")[2]) == ["/usr/local/bin/portcullis", "health"]


def ignored(path: pathlib.PurePath) -> bool:
    """Whether .dockerignore keeps a path from the builder: the last pattern that fits it, or a folder above it, decides."""
    result = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, is_exception = line.removeprefix("!"), line.startswith("!")
            if any(fnmatch.fnmatchcase(str(part), pattern) and (pattern != "*" or "/" not in str(part)) for part in (path, *path.parents)):
                result = not is_exception
    return result


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """What reaches the builder."""
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if files.returncode == 0:
        names = files.stdout.splitlines()
    else:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() and not {"target", "node_modules", ".test"} & set(p.parts)]
    folder = tmp_path_factory.mktemp("context")
    for name in names:
        if not ignored(pathlib.PurePath(name)) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def test_what_the_build_does_not_need_stays_away(context):
    for path in ("target/release/portcullis", ".git/config", ".test/venv/bin/python", "data/admin-token", "docs/RULES.md",
                 "deploy/.env", "tests/clients/python/run", "fuzz/target/x", "fuzz/corpus/text/x", "fuzz/seeds/text/x", "portcullis.yaml"):  # fmt: skip
        assert ignored(pathlib.PurePath(path)), path
    assert {each.name for each in context.iterdir()} == {
        ".cargo", "Cargo.toml", "Cargo.lock", "build.rs", "askama.toml", "src", "proto", "rules", "benches", "examples", "fuzz", "tests", "deploy",
    }  # fmt: skip


def test_cargo_finds_what_it_needs(context):
    """Every target that a manifest names is there, or cargo refuses to build any of them."""
    result = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--offline", "--locked", "--format-version=1"],
        cwd=context, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    targets = [t for package in json.loads(result.stdout)["packages"] for t in package["targets"]]
    assert [t["name"] for t in targets if t["kind"] == ["bin"] and t["name"] == "portcullis"]
    missing = [t["src_path"] for t in targets if not pathlib.Path(t["src_path"]).is_file()]
    assert not missing


def test_the_compiler_finds_what_it_includes(context):
    """Files that the source puts into the program, those of tests aside, which stand at the end of their file."""
    found = 0
    for source in context.glob("src/**/*.rs"):
        if "tests" in source.relative_to(context).with_suffix("").parts:
            continue
        for name in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', source.read_text().partition("#[cfg(test)]")[0]):
            found += 1
            assert (source.parent / name).is_file(), f"{source.name} includes {name}"
    assert found


def test_copied_files_are_there():
    for rest in (rest for word, rest in instructions() if word == "COPY" and "--from" not in rest):
        *sources, _ = rest.split()
        for source in (source for source in sources if source != "."):
            assert (ROOT / source).exists() and not ignored(pathlib.PurePath(source))


def libraries() -> dict[str, str]:
    """The libraries that the program is linked with, and where they are on this machine."""
    lines = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for line in lines:
        name, _, place = line.strip().partition(" => ")
        name, place = (name.split()[0], (place or name).split()[0])
        found[os.path.basename(name)] = place
    return found


def test_libraries_are_those_of_the_image():
    assert set(libraries()) <= DISTROLESS_CC


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The last stage, put together by hand: program, libraries, settings, and a folder that the user may write."""
    root = tmp_path_factory.mktemp("image")
    copies = {BINARY: "usr/local/bin/portcullis", DEPLOY / "image/portcullis.yaml": "etc/portcullis/portcullis.yaml"}
    copies |= {place: place.lstrip("/") for place in libraries().values() if place.startswith("/")}
    for source, target in copies.items():
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / target)
    (root / "var/lib/portcullis").mkdir(parents=True, mode=0o700)
    (root / "tmp").mkdir(mode=0o1777)
    if os.geteuid() == 0:
        os.chown(root / "var/lib/portcullis", USER, USER)
        for folder in (root, root.parent, root.parent.parent):
            folder.chmod(folder.stat().st_mode | 0o011)
    return root


def in_root(root, *command: str, **options):
    """Runs a command with that folder as its root: as the user of the image, where we may become it."""
    change = ["chroot", f"--userspec={USER}:{USER}"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot"]
    environment = {"PORTCULLIS_CONFIG": "/etc/portcullis/portcullis.yaml", "PORTCULLIS_SERVER__INSECURE_ALLOW_ANONYMOUS": "true"}
    return subprocess.Popen(
        [*change, str(root), *command],
        env=environment | {"PATH": os.environ["PATH"]}, text=True, **options,
    )  # fmt: skip


def test_the_last_stage_runs(root):
    """Nothing but the program, its libraries and its settings: no shell, no /proc, no /dev."""
    (entrypoint,) = [json.loads(rest) for rest in of_last_stage("ENTRYPOINT")]
    command = json.loads(of_last_stage("CMD")[0])
    free = ["--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0"]
    process = in_root(root, *entrypoint, *command, *free, stderr=subprocess.PIPE)
    try:
        serving = {}
        for line in process.stderr:
            serving = json.loads(line) if line.startswith("{") else {}
            if "grpc" in serving:
                break
        assert "grpc" in serving
        (check,) = of_last_stage("HEALTHCHECK")
        health = in_root(
            root, *json.loads(check.partition("CMD ")[2]), f"--server=http://{serving['grpc']}", "--timeout=20s",
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert health.communicate()[0].strip() == "SERVING" and health.returncode == 0
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
    settings = yaml.safe_load((root / "etc/portcullis/portcullis.yaml").read_text())
    token = root / settings["data_dir"].lstrip("/") / "admin-token"
    assert token.stat().st_mode & 0o777 == 0o600
    if os.geteuid() == 0:
        assert token.stat().st_uid == USER
    written = {str(p.relative_to(root).parts[:3]) for p in root.rglob("*") if p.is_file() and p.stat().st_uid == USER}
    assert written <= {str(("var", "lib", "portcullis"))}

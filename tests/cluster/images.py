"""Container images without a registry and without a builder: archives that containerd imports."""

import hashlib
import io
import json
import pathlib
import tarfile

from state import run

PAUSE = "localhost/adamant-test/pause:1"
PROBE = "localhost/adamant-test/probe:1"


def write_probe_image(folder):
    """The archive, in the folder, of probe.c under both names."""
    program = folder / "probe"
    run("cc", "-static", "-Os", "-o", program, pathlib.Path(__file__).with_name("probe.c"))
    archive = folder / "probe.tar"
    write_image(archive, [PAUSE, PROBE], {"probe": program}, ["/probe"])
    return archive


def write_image(archive, names, files, entry_point):
    """An image of one layer in the form of `docker save`. `files`: {path in the image: executable here}. Its processes
    are those of a user without rights."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for path, source in files.items():
            _add(tar, path, source.read_bytes(), mode=0o755)
    content = layer.getvalue()
    configuration = json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[run("uname", "-m").strip()], "os": "linux",
        "config": {"Entrypoint": entry_point, "User": "65532:65532"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
    }).encode()
    manifest = [{"Config": "config.json", "RepoTags": names, "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        _add(tar, "layer.tar", content)
        _add(tar, "config.json", configuration)
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def _add(tar, path, content, mode=0o644):
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))

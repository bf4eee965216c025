#!/usr/bin/env python3
"""Makes small archives of images and expects tools/image_sbom.py to tell of all that is in them."""

import hashlib
import io
import json
import pathlib
import tarfile
import tempfile
import unittest

import image_sbom

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: some

Files: *
Copyright: 2020 Somebody
License: Expat

Files: a/*
License: GPL-2+ or Odd, and Apache-2.0

License: Odd
 Do as you like.
 .
 Or do not.
"""
LABELS = {"org.opencontainers.image.version": "1.2.3", "org.opencontainers.image.revision": "abc",
          "org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.created": "2026-01-02T03:04:05Z"}
SUM = hashlib.md5(b"library").hexdigest()
FILES = {
    "usr/bin/adamant": b"program",
    "usr/share/doc/adamant/copyright": b"ours",
    "usr/lib/libsome.so.1": b"library",
    "usr/share/doc/libsome++1/copyright": COPYRIGHT.encode(),
    "var/lib/dpkg/status.d/libsome++1":
        b"Package: libsome++1\nArchitecture: amd64\nSource: some (1:2.0)\nVersion: 1:2.0+b1\nDescription: a\n b\n",
    "var/lib/dpkg/status.d/libsome++1.md5sums": f"{SUM}  usr/lib/libsome.so.1\n".encode(),
}


def pack(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def layer(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            pack(tar, name, content)
        link = tarfile.TarInfo("usr/lib/link")
        link.type, link.linkname = tarfile.SYMTYPE, "libsome.so.1"
        tar.addfile(link)
    return out.getvalue()


class ImageSbomTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.archive = pathlib.Path(folder.name) / "image.tar"

    def document(self, *layers: dict[str, bytes]) -> dict:
        names = [f"{number}.tar" for number in range(len(layers))]
        with tarfile.open(self.archive, "w") as tar:
            for name, files in zip(names, layers):
                pack(tar, name, layer(files))
            pack(tar, "config.json", json.dumps({"config": {"Labels": LABELS}}).encode())
            manifest = [{"Config": "config.json", "RepoTags": ["localhost/adamant:1.2.3"], "Layers": names}]
            pack(tar, "manifest.json", json.dumps(manifest).encode())
        return image_sbom.document(image_sbom.read_image(self.archive))

    def packages(self, *layers: dict[str, bytes]) -> dict[str, dict]:
        return {package["name"]: package for package in self.document(*layers)["packages"]}

    def licences(self, text: str) -> image_sbom.Licences:
        return image_sbom.Licences("libsome++1", text)

    def test_every_file_is_named_once_with_its_sums_and_is_of_one_package(self) -> None:
        document = self.document(FILES)
        self.assertEqual([file["fileName"] for file in document["files"]], [f"./{path}" for path in sorted(FILES)])
        for file in document["files"]:
            content = FILES[file["fileName"][2:]]
            sums = {each["algorithm"]: each["checksumValue"] for each in file["checksums"]}
            self.assertEqual(sums, {"SHA1": hashlib.sha1(content).hexdigest(),
                                    "SHA256": hashlib.sha256(content).hexdigest()})
        owners = {each["relatedSpdxElement"]: each["spdxElementId"] for each in document["relationships"]}
        self.assertEqual(len(owners), len(document["relationships"]))
        for file in document["files"]:
            ours = "usr/bin" in file["fileName"] or "adamant" in file["fileName"]
            self.assertEqual(owners[file["SPDXID"]],
                             "SPDXRef-package-adamant" if ours else "SPDXRef-package-libsome-2b--2b-1")

    def test_a_package_has_its_version_its_source_and_a_name_that_scanners_know(self) -> None:
        package = self.packages(FILES)["libsome++1"]
        self.assertEqual(package["versionInfo"], "1:2.0+b1")
        self.assertIn("source package some", package["sourceInfo"])
        [reference] = package["externalRefs"]
        self.assertEqual(reference["referenceLocator"],
                         "pkg:deb/debian/libsome%2B%2B1@1:2.0%2Bb1?arch=amd64&distro=debian-12")

    def test_a_later_layer_counts(self) -> None:
        document = self.document(FILES, {"usr/bin/adamant": b"newer"})
        [program] = [file for file in document["files"] if file["fileName"] == "./usr/bin/adamant"]
        self.assertEqual(program["checksums"][1]["checksumValue"], hashlib.sha256(b"newer").hexdigest())

    def test_a_file_that_is_of_nobody_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "usr/lib/stray.so is of no package"):
            self.document(FILES | {"usr/lib/stray.so": b""})

    def test_the_time_is_the_images_and_the_name_its_content(self) -> None:
        document = self.document(FILES)
        self.assertEqual(document["creationInfo"]["created"], "2026-01-02T03:04:05Z")
        settings = json.dumps({"config": {"Labels": LABELS}}).encode()
        self.assertTrue(document["documentNamespace"].endswith(hashlib.sha256(settings).hexdigest()))

    def test_licences_get_the_names_that_spdx_has_and_others_their_text(self) -> None:
        licences = self.licences(COPYRIGHT)
        odd = "LicenseRef-libsome-1-Odd"
        self.assertEqual(licences.expression, f"(GPL-2.0-or-later OR {odd}) AND Apache-2.0 AND MIT")
        self.assertEqual(licences.texts, {odd: "Do as you like.\n.\nOr do not."})
        for debian, spdx in {"LGPL-2.1": "LGPL-2.1-only", "GPLv3+": "GPL-3.0-or-later", "bsd-2-clause": "BSD-2-Clause",
                             "GFDL-1.2+": "GFDL-1.2-or-later", "LGPLv3+_or_GPLv2+":
                             "(LGPL-3.0-or-later OR GPL-2.0-or-later)", "Expat and ISC": "ISC AND MIT",
                             "Expat and ISC or zlib": "((MIT AND ISC) OR Zlib)"}.items():
            text = f"Format: x\n\nFiles: *\nLicense: {debian}\n"
            self.assertEqual(self.licences(text).expression, spdx)

    def test_licences_that_differ_only_in_later_versions_differ(self) -> None:
        text = "Format: x\n\nFiles: *\nLicense: GPL-2 with odd exception\n\nFiles: a\nLicense: GPL-2+ with odd exception\n"
        self.assertEqual(len(self.licences(text).texts), 2)

    def test_licences_that_no_machine_can_read_are_not_asserted(self) -> None:
        for text in ("This package was debianized by\nLicense: GPL\n", "Format: x\n\nFiles: *\nLicense:\n",
                     "Format: x\n\nLicense: Expat\n text\n"):
            self.assertEqual(self.licences(text).expression, image_sbom.NONE, text)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Writes what an image holds (SPDX 2.3, JSON), from the archive of it that tools/images makes: every file with its sums and
the package that it is of, every package with its version and licences. Equal archives give equal bytes.

usage: tools/image_sbom.py ARCHIVE FILE.spdx.json

Debian packages are known by their entries in var/lib/dpkg/status.d, their files by the lists there. A file that is neither
of one of them nor one of ours is an error. Licences are those of copyright files that machines can read, as SPDX names them
where it has such a name; of other packages they stand in the file alone that the comment names.
"""

import collections
import dataclasses
import hashlib
import json
import pathlib
import re
import sys
import tarfile
import urllib.parse

STATUS = "var/lib/dpkg/status.d/"
LIST = ".md5sums"
OURS = re.compile(r"usr/bin/[^/]+|usr/share/doc/adamant/copyright|etc/(passwd|group|nsswitch\.conf)")
NONE = "NOASSERTION"
LICENCES = {  # SPDX's names of Debian's
    name.lower(): name for name in (
        "0BSD", "Apache-2.0", "Beerware", "BSD-2-Clause", "BSD-3-Clause", "BSD-4-Clause", "BSD-4-Clause-UC", "CC-BY-3.0",
        "CC-BY-4.0", "CC-BY-SA-4.0", "curl", "FSFULLR", "ISC", "Latex2e", "MIT", "MPL-1.1", "MPL-2.0", "MS-PL", "OLDAP-2.8",
        "OpenSSL", "RSA-MD", "X11", "Zlib")
} | {"apache-2": "Apache-2.0", "expat": "MIT", "openldap-2.8": "OLDAP-2.8"}
GNU = re.compile(r"(A?L?GPL|GFDL)-?v?(\d)(\.\d)?(\+?)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class File:
    sha1: str
    sha256: str


@dataclasses.dataclass
class Image:
    identity: str = ""  # sum of its settings, by which engines name it
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    tag: str = ""
    files: dict[str, File] = dataclasses.field(default_factory=dict)
    texts: dict[str, str] = dataclasses.field(default_factory=dict)  # of the files that this program reads


def read_image(archive: pathlib.Path) -> Image:
    image = Image()
    with tarfile.open(archive) as tar:
        [manifest] = json.load(tar.extractfile("manifest.json"))
        settings = tar.extractfile(manifest["Config"]).read()
        image.identity = hashlib.sha256(settings).hexdigest()
        image.labels = json.loads(settings)["config"].get("Labels", {})
        [image.tag] = manifest["RepoTags"]
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=tar.extractfile(layer)) as files:
                for member in files:
                    if member.isfile():
                        add(image, member.name.removeprefix("./"), files.extractfile(member).read())
                    elif not (member.isdir() or member.issym()):
                        raise ValueError(f"{member.name} is no file, folder or link")
    return image


def add(image: Image, path: str, content: bytes) -> None:
    image.files[path] = File(hashlib.sha1(content).hexdigest(), hashlib.sha256(content).hexdigest())
    if path.startswith((STATUS, "usr/share/doc/")):
        image.texts[path] = content.decode(errors="replace")


def packages_of(image: Image) -> dict[str, dict[str, str]]:
    """{name: fields} of the Debian packages."""
    found = {}
    for path, text in image.texts.items():
        if path.startswith(STATUS) and not path.endswith(LIST):
            [fields] = paragraphs(text)
            found[fields["Package"]] = fields
    return found


def files_by_package(image: Image, packages: dict[str, dict[str, str]]) -> dict[str, list[str]]:
    """{package: its files} of all files; "" has ours."""
    owners = {f"{STATUS}{name}{ending}": name for name in packages for ending in ("", LIST)}
    owners |= {f"usr/share/doc/{name}/copyright": name for name in packages}
    for name in packages:
        owners |= {line.split(maxsplit=1)[1]: name for line in image.texts[f"{STATUS}{name}{LIST}"].splitlines()}
    found = collections.defaultdict(list)
    for path in sorted(image.files):
        if path not in owners and not OURS.fullmatch(path):
            raise ValueError(f"{path} is of no package, and not ours")
        found[owners.get(path, "")].append(path)
    return found


# --- Licences


def paragraphs(text: str) -> list[dict[str, str]]:
    """Of a file of Debian's fields: of each paragraph the fields, continued lines included."""
    found = []
    for block in re.split(r"\n[ \t]*\n", text.strip("\n")):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line.startswith((" ", "\t")) and name:
                fields[name] += "\n" + line[1:]
            elif ":" in line and not line.startswith("#"):
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        found.append(fields)
    return found


class Licences:
    """The licences of one package: SPDX's expression of them, and the texts of those that SPDX has no name for."""

    def __init__(self, package: str, copyright_file: str):
        self.package = package
        self.texts: dict[str, str] = {}  # by the name that the expression has
        self.expression = NONE
        all_of = paragraphs(copyright_file)
        if "Format" not in all_of[0]:
            return
        self.known = {}
        expressions = set()
        for fields in all_of:
            name, _, text = fields.get("License", "").partition("\n")
            self.known.setdefault(name.lower(), text)
            if "Files" in fields:
                expressions.add(name)
        if expressions and "" not in expressions:
            self.expression = " AND ".join(sorted({part for each in expressions for part in self.parts(each)}))

    def parts(self, debian: str) -> list[str]:
        """Which all hold, of "A or B, and C": there a comma binds weakest, then "or", then "and"."""
        found = []
        for part in re.split(r",\s+and\s+", debian.replace("_or_", " or ")):
            choices = re.split(r",?\s+or\s+", part)
            if len(choices) == 1:
                found += self.all_of(part)
            else:
                found.append("(" + " OR ".join(self.grouped(self.all_of(choice)) for choice in choices) + ")")
        return found

    def all_of(self, words: str) -> list[str]:
        return [self.named(word.strip()) for word in re.split(r"\s+and\s+", words)]

    @staticmethod
    def grouped(names: list[str]) -> str:
        return names[0] if len(names) == 1 else f"({' AND '.join(names)})"

    def named(self, name: str) -> str:
        if (spdx := LICENCES.get(name.lower())) is not None:
            return spdx
        if gnu := GNU.fullmatch(name):
            return f"{gnu[1].upper()}-{gnu[2]}{gnu[3] or '.0'}-{'or-later' if gnu[4] else 'only'}"
        plain = re.sub(r"[^A-Za-z0-9.]+", "-", f"{self.package}-{name.replace('+', '-or-later')}").strip("-")
        reference = f"LicenseRef-{plain}"
        text = self.known.get(name.lower(), "").strip()
        self.texts[reference] = text or f"{name}: see /usr/share/doc/{self.package}/copyright"
        return reference


# --- The document


def identifier(kind: str, name: str) -> str:
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.]", lambda other: f"-{ord(other[0]):x}-", name)


def file_entry(path: str, file: File) -> dict:
    return {
        "SPDXID": identifier("file", path),
        "fileName": f"./{path}",
        "checksums": [{"algorithm": "SHA1", "checksumValue": file.sha1},
                      {"algorithm": "SHA256", "checksumValue": file.sha256}],
        "licenseConcluded": NONE,
        "copyrightText": NONE,
    }


def package_entry(image: Image, name: str, paths: list[str], version: str, more: dict) -> dict:
    sums = "".join(sorted(image.files[path].sha1 for path in paths))
    return {
        "SPDXID": identifier("package", name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": NONE,
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1(sums.encode()).hexdigest()},
        "licenseConcluded": NONE,
        "copyrightText": NONE,
    } | more


def debian_entry(image: Image, fields: dict[str, str], paths: list[str], licences: Licences) -> dict:
    name, version, quote = fields["Package"], fields["Version"], urllib.parse.quote
    source = fields.get("Source", name).split()[0]
    locator = f"pkg:deb/debian/{quote(name)}@{quote(version, safe=':~')}?arch={fields['Architecture']}&distro=debian-12"
    return package_entry(image, name, paths, version, {
        "supplier": "Organization: Debian",
        "sourceInfo": f"built from the source package {source}",
        "licenseDeclared": licences.expression,
        "licenseComments": f"as /usr/share/doc/{name}/copyright of the image says of the source package",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}],
    })


def image_entry(image: Image) -> dict:
    return {
        "SPDXID": "SPDXRef-image",
        "name": image.tag,
        "versionInfo": image.labels["org.opencontainers.image.version"],
        "primaryPackagePurpose": "CONTAINER",
        "downloadLocation": NONE,
        "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": image.identity}],
        "licenseConcluded": NONE,
        "licenseDeclared": NONE,
        "copyrightText": NONE,
    }


def document(image: Image) -> dict:
    packages = packages_of(image)
    paths = files_by_package(image, packages)
    version = image.labels["org.opencontainers.image.version"]
    licences = {name: Licences(name, image.texts[f"usr/share/doc/{name}/copyright"]) for name in packages}
    ours = package_entry(image, "adamant", paths[""], version, {
        "sourceInfo": f"revision {image.labels['org.opencontainers.image.revision']}",
        "licenseDeclared": image.labels["org.opencontainers.image.licenses"]})
    entries = {"": ours} | {name: debian_entry(image, packages[name], paths[name], licences[name])
                            for name in sorted(packages)}
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image")]
    for name, entry in entries.items():
        relations.append(("SPDXRef-image", "CONTAINS", entry["SPDXID"]))
        relations += [(entry["SPDXID"], "CONTAINS", identifier("file", path)) for path in paths[name]]
    texts = {name: text for each in licences.values() for name, text in each.texts.items()}
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": image.tag,
        "documentNamespace": f"https://adamant.dev/spdx/adamant-{version}-{image.identity}",
        "creationInfo": {"created": image.labels.get("org.opencontainers.image.created") or "1970-01-01T00:00:00Z",
                         "creators": ["Tool: adamant-image_sbom"]},
        "packages": [image_entry(image), *entries.values()],
        "files": [file_entry(path, image.files[path]) for path in sorted(image.files)],
        "hasExtractedLicensingInfos": [{"licenseId": name, "extractedText": texts[name]} for name in sorted(texts)],
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                          for one, kind, other in relations],
    }


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__[__doc__.index("usage: "):].splitlines()[0], file=sys.stderr)
        return 2
    text = json.dumps(document(read_image(pathlib.Path(sys.argv[1]))), indent=1, ensure_ascii=False)
    pathlib.Path(sys.argv[2]).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

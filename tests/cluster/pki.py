"""Certificates of one cluster's own authority, and kubeconfig files with them."""

import base64
import json

from state import run

_DAYS = 30
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """Keeps its files in a folder: ca.crt, ca.key, and NAME.crt and NAME.key of each certificate."""

    def __init__(self, folder):
        self._folder = folder
        self.certificate = folder / "ca.crt"
        self._configuration = folder / "openssl.cnf"  # the system's would make every certificate an authority

    def create(self):
        self._folder.mkdir()
        self._configuration.write_text("[req]\ndistinguished_name = name\n[name]\n")
        self._make("ca", "/CN=adamant-test-cluster", ["basicConstraints=critical,CA:TRUE",
                                                      "keyUsage=critical,keyCertSign,cRLSign",
                                                      "subjectKeyIdentifier=hash"])

    def issue(self, name, subject, addresses=()):
        """(certificate, key) of a server and client; `addresses` like "IP:127.0.0.1" or "DNS:localhost"."""
        certificate, key = self.issued(name)
        if not certificate.exists():
            extensions = ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=serverAuth,clientAuth"]
            if addresses:
                extensions.append(f"subjectAltName={','.join(addresses)}")
            self._make(name, subject, extensions, "-CA", self.certificate, "-CAkey", self._folder / "ca.key")
        return certificate, key

    def issued(self, name):
        """(certificate, key) of one that issue() has made."""
        return self._folder / f"{name}.crt", self._folder / f"{name}.key"

    def make_signing_key(self, name):
        """The path of a new private key that signs tokens."""
        path = self._folder / name
        run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
        return path

    def _make(self, name, subject, extensions, *signer):
        added = [word for extension in extensions for word in ("-addext", extension)]
        run("openssl", "req", "-x509", "-config", self._configuration, *_KEY, "-keyout", self._folder / f"{name}.key",
            "-out", self._folder / f"{name}.crt", "-days", _DAYS, "-subj", subject, *added, *signer)


def write_kubeconfig(path, server, authority, user):
    """A file that stands alone. `user`: {"token": TEXT} or the pair that issue() returned."""
    if not isinstance(user, dict):
        certificate, key = user
        user = {"client-certificate-data": _encoded(certificate), "client-key-data": _encoded(key)}
    cluster = {"server": server, "certificate-authority-data": _encoded(authority.certificate)}
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }, indent=1))
    return path


def _encoded(path):
    return base64.b64encode(path.read_bytes()).decode()

"""A way to the API server that knows who asks for what, and can stop a write right before it or keep its answer."""

import base64
import contextlib
import http.client
import http.server
import json
import re
import socket
import ssl
import subprocess
import sys
import threading
import urllib.parse

PORT = 7443
_LISTEN = """
import socket, sys
listener = socket.create_server((sys.argv[2], int(sys.argv[3])))
socket.send_fds(socket.socket(fileno=int(sys.argv[1])), [b"x"], [listener.fileno()])
"""
_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")


def kind_of(method, path):
    """"PUT configmaps"; of a subresource "PATCH trainingjobs/status"."""
    parts = re.sub(r"^/(api|apis/[^/]+)/[^/]+/", "", path.partition("?")[0]).split("/")
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    return f"{method} {'/'.join([parts[0], *parts[2:]])}"


class ApiProxy:
    """Listens at ADDRESS:PORT in the network of the cluster's control plane, with the API server's own certificate.

    `on_write(kind, pod, send)` is called, on some thread, for each write: `pod` is that of the service account's token,
    `send()` passes the request on and returns whether it took effect. What it returns says whether the answer goes out;
    else the connection breaks."""

    def __init__(self, cluster, address, on_write):
        self._url = urllib.parse.urlsplit(cluster.url)
        self._outward = ssl.create_default_context(cafile=cluster.authority.certificate)
        inward = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        inward.load_cert_chain(*cluster.authority.issued("apiserver"))
        self._server = http.server.ThreadingHTTPServer((address, PORT), self._handler(on_write),
                                                       bind_and_activate=False)
        self._server.socket.close()
        listener = listen(cluster, address)
        self._server.socket = inward.wrap_socket(listener, server_side=True, do_handshake_on_connect=False)
        self._server.daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()

    def _handler(self, on_write):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle(self):
                with contextlib.suppress(OSError, ValueError, http.client.HTTPException):  # broken by either end
                    super().handle()

            def _pass(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                upstream = http.client.HTTPSConnection(proxy._url.hostname, proxy._url.port, timeout=60,
                                                       context=proxy._outward)
                with contextlib.closing(upstream):
                    answers = []

                    def send():
                        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
                        upstream.request(self.command, self.path, body, headers)
                        answers.append(upstream.getresponse())
                        return answers[0].status < 300

                    if self.command == "GET":
                        send()
                    elif not on_write(kind_of(self.command, self.path), _pod_of(self.headers), send):
                        self.close_connection = True
                        return
                    self._answer(answers[0])

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass

            def _answer(self, answer):
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while piece := answer.read1(1 << 16):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

        return Handler


def _pod_of(headers):
    """The pod that a service account's token was made for; empty: none."""
    token = headers.get("Authorization", "").removeprefix("Bearer ")
    with contextlib.suppress(ValueError, IndexError, KeyError):
        claims = token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["kubernetes.io"]["pod"]["name"]
    return ""


def listen(cluster, address):
    """A socket that listens at ADDRESS:PORT in the network of the control plane."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = cluster.in_control_network(sys.executable, "-c", _LISTEN, str(theirs.fileno()), address, str(PORT))
        subprocess.run(command, pass_fds=[theirs.fileno()], check=True)
        _, descriptors, *_ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=descriptors[0])

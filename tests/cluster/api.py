"""The Kubernetes API over HTTPS, as far as the harness and its tests need it."""

import http.client
import json
import ssl
import time
import urllib.parse

TRIES_OF_A_BUSY_SERVER = 10  # a second apart, as it asks


class ApiError(OSError):
    """What the API server refused, with its HTTP status."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """Methods may be called by several threads: each request has a connection of its own."""

    def __init__(self, server, authority, certificate, key, timeout=10):
        self._address = urllib.parse.urlsplit(server)
        self._timeout = timeout
        self._context = ssl.create_default_context(cafile=authority)
        self._context.load_cert_chain(certificate, key)

    def request(self, method, path, body=None, content_type="application/json", timeout=None):
        """The answer: JSON, or text where it is none. ApiError, or OSError when the server cannot be reached or says
        nothing for the timeout (seconds; None: the usual one). A server that is busy, as with a new kind's storage, is
        asked again."""
        for _ in range(TRIES_OF_A_BUSY_SERVER):
            try:
                return self._request(method, path, body, content_type, timeout)
            except ApiError as error:
                if error.status != 429:
                    raise
                time.sleep(1)
        return self._request(method, path, body, content_type, timeout)

    def _request(self, method, path, body, content_type, timeout):
        connection = self._connect(timeout)
        try:
            text = self._answer(connection, method, path, body, content_type).read().decode()
        except http.client.HTTPException as error:
            raise OSError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        try:
            return json.loads(text)
        except ValueError:
            return text

    def get(self, path, timeout=None):
        return self.request("GET", path, timeout=timeout)

    def create(self, path, body):
        return self.request("POST", path, body)

    def delete(self, path):
        return self.request("DELETE", path)

    def is_ready(self):
        try:
            return self.get("/readyz") == "ok"
        except OSError:
            return False

    def watch(self, path):
        """Yields the events of a list's path as they come, until the server ends the watch or nothing comes for the
        timeout (TimeoutError)."""
        connection = self._connect()
        try:
            separator = "&" if "?" in path else "?"
            for line in self._answer(connection, "GET", f"{path}{separator}watch=true"):
                yield json.loads(line)
        finally:
            connection.close()

    def _connect(self, timeout=None):
        return http.client.HTTPSConnection(self._address.hostname, self._address.port,
                                           timeout=timeout or self._timeout, context=self._context)

    @staticmethod
    def _answer(connection, method, path, body=None, content_type="application/json"):
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": content_type})
        response = connection.getresponse()
        if response.status >= 400:
            raise ApiError(response.status, response.read().decode(errors="replace")[:1000])
        return response

"""The API server, asked as its administrator."""

import http.client
import json
import ssl
from urllib.parse import urlencode

from support.shell import eventually

GROUP = "/apis/sandbox.opensandbox.io/v1alpha1"


class Api:
    def __init__(self, host, port, certificates, name="admin"):
        self.host, self.port = host, port
        self.context = ssl.create_default_context(cafile=str(certificates.path("ca.crt")))
        self.context.load_cert_chain(certificates.path(f"{name}.crt"), certificates.path(f"{name}.key"))

    def call(self, method, path, body=None, content_type="application/json", query=None, timeout=20):
        """(status, document or text)."""
        connection = http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=timeout)
        try:
            target = path + ("?" + urlencode(query) if query else "")
            data = None if body is None else json.dumps(body)
            connection.request(method, target, data, {"Content-Type": content_type} if data else {})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def get(self, path, **query):
        return self.call("GET", path, query=query or None)

    def read(self, path, **query):
        status, document = self.get(path, **query)
        assert status == 200, f"GET {path}: {status} {document}"
        return document

    def create(self, path, document):
        status, made = self.call("POST", path, document)
        assert status in (200, 201), f"POST {path}: {status} {made}"
        return made

    def merge(self, path, patch):
        status, made = self.call("PATCH", path, patch, "application/merge-patch+json")
        assert status == 200, f"PATCH {path}: {status} {made}"
        return made

    def delete(self, path, **query):
        status, answer = self.call("DELETE", path, query=query or None)
        assert status in (200, 202, 404), f"DELETE {path}: {status} {answer}"

    def is_ready(self):
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False

    # What the tests look at.

    def pods(self, space, selector=None):
        query = {"labelSelector": selector} if selector else {}
        return self.read(f"/api/v1/namespaces/{space}/pods", **query)["items"]

    def batches(self, space):
        return self.read(f"{GROUP}/namespaces/{space}/batchsandboxes")["items"]

    def batch(self, space, name):
        return self.read(f"{GROUP}/namespaces/{space}/batchsandboxes/{name}")

    def make_batch(self, space, name, spec, **metadata):
        document = {"apiVersion": "sandbox.opensandbox.io/v1alpha1", "kind": "BatchSandbox",
                    "metadata": {"name": name, **metadata}, "spec": spec}
        return self.create(f"{GROUP}/namespaces/{space}/batchsandboxes", document)

    def delete_batch(self, space, name):
        self.delete(f"{GROUP}/namespaces/{space}/batchsandboxes/{name}")

    def make_space(self, name):
        self.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        # Pods are refused before it has its account.
        eventually(lambda: self.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200, 60, 0.1,
                   f"the account of namespace {name}")
        return name

    def nothing_of(self, space, *, timeout=60):
        """Waits until nothing of sandboxes is left in a namespace."""
        kinds = {"pods": f"/api/v1/namespaces/{space}/pods",
                 "claims": f"/api/v1/namespaces/{space}/persistentvolumeclaims",
                 "secrets": f"/api/v1/namespaces/{space}/secrets",
                 "sandboxes": f"{GROUP}/namespaces/{space}/batchsandboxes"}

        def left():
            return {kind: names for kind, path in kinds.items()
                    if (names := [item["metadata"]["name"] for item in self.read(path)["items"]])}

        eventually(lambda: not left(), timeout, 0.2, f"an empty namespace {space}; left: {left()}")

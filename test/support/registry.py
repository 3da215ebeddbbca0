"""Debian's registry on loopback, and a proxy in front of it that spoils what passes."""

import base64
import gzip
import http.client
import http.server
import json
import re
import shutil
import ssl
import subprocess
import threading
from pathlib import Path

from support.addresses import free_port
from support.rootfs import digest, image_config, tar_of
from support.shell import eventually, run

OCI = "application/vnd.oci.image"


def certificate(directory):
    """A certificate authority of its own, and a certificate for 127.0.0.1 by it."""
    directory = Path(directory)
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-days", "2", "-subj", "/CN=test authority", "-keyout", directory / "ca.key", "-out",
        directory / "ca.crt")
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
        "/CN=127.0.0.1", "-keyout", directory / "server.key", "-out", directory / "server.csr")
    (directory / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    run("openssl", "x509", "-req", "-days", "2", "-in", directory / "server.csr", "-CA",
        directory / "ca.crt", "-CAkey", directory / "ca.key", "-CAcreateserial", "-extfile",
        directory / "names", "-out", directory / "server.crt")
    return directory / "ca.crt"


class Registry:
    """`docker-registry serve` with storage of its own."""

    def __init__(self, directory, *, login=None, tls=False):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True)
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.login = login
        self.ca = certificate(self.directory) if tls else None
        settings = {
            "version": 0.1,
            "log": {"level": "error"},
            "storage": {
                "filesystem": {"rootdirectory": str(self.directory / "data")},
                "delete": {"enabled": True},
            },
            "http": {"addr": self.host},
        }
        if tls:
            settings["http"]["tls"] = {
                "certificate": str(self.directory / "server.crt"),
                "key": str(self.directory / "server.key"),
            }
        if login:
            user, password = login
            line = run("htpasswd", "-Bbn", user, password).stdout
            (self.directory / "htpasswd").write_text(line)
            settings["auth"] = {
                "htpasswd": {"realm": "test", "path": str(self.directory / "htpasswd")}
            }
        (self.directory / "config.yml").write_text(json.dumps(settings))
        self.process = None

    def __enter__(self):
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [shutil.which("docker-registry"), "serve", str(self.directory / "config.yml")],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )
        eventually(self.answers, 20, what="the registry's readiness")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)

    def answers(self):
        try:
            return self.request("GET", "/v2/").status == 200
        except OSError:
            return False

    def request(self, method, path, body=None, headers=None):
        if self.ca:
            context = ssl.create_default_context(cafile=str(self.ca))
            connection = http.client.HTTPSConnection(self.host, timeout=30, context=context)
        else:
            connection = http.client.HTTPConnection(self.host, timeout=30)
        headers = dict(headers or {})
        if self.login:
            text = base64.b64encode(":".join(self.login).encode()).decode()
            headers["Authorization"] = f"Basic {text}"
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        response.data = response.read()
        connection.close()
        return response

    def put_blob(self, repository, data):
        begun = self.request("POST", f"/v2/{repository}/blobs/uploads/", body=b"")
        assert begun.status == 202, begun.data
        place = re.sub(r"^https?://[^/]+", "", begun.getheader("Location"))
        place += ("&" if "?" in place else "?") + f"digest={digest(data)}"
        done = self.request("PUT", place, body=data, headers={"Content-Type": "application/octet-stream"})
        assert done.status == 201, done.data
        return {"digest": digest(data), "size": len(data)}

    def put_manifest(self, repository, tag, document):
        data = json.dumps(document).encode()
        done = self.request("PUT", f"/v2/{repository}/manifests/{tag}", body=data,
                            headers={"Content-Type": document["mediaType"]})
        assert done.status == 201, done.data
        return {"mediaType": document["mediaType"], "digest": digest(data), "size": len(data)}

    def put_image(self, repository, tag, layers, pack=None, suffix="+gzip", **config):
        """Layers are uncompressed tars, lowest first."""
        pack = pack or (lambda data: gzip.compress(data, 1, mtime=0))
        described = [
            {"mediaType": f"{OCI}.layer.v1.tar{suffix}", **self.put_blob(repository, pack(layer))}
            for layer in layers
        ]
        configuration = self.put_blob(repository, image_config(layers, **config))
        return self.put_manifest(repository, tag, {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": {"mediaType": f"{OCI}.config.v1+json", **configuration},
            "layers": described,
        })

    def manifest(self, repository, tag):
        reply = self.request("GET", f"/v2/{repository}/manifests/{tag}",
                             headers={"Accept": f"{OCI}.manifest.v1+json"})
        assert reply.status == 200, reply.data
        return json.loads(reply.data)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


def file_layer(name, content):
    return tar_of([(name, content)])


class FaultyProxy:
    """Passes requests to a registry without TLS and back. `fault(request, status, headers, body)`
    may return another (status, headers, body), or "cut" and a number of bytes after which the
    connection breaks; `requests` has (method, path, Range) of what came."""

    def __init__(self, registry, fault):
        self.registry = registry
        self.requests = []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def pass_on(self):
                proxy.requests.append((self.command, self.path, self.headers.get("Range")))
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else None
                connection = http.client.HTTPConnection(registry.host, timeout=30)
                sent = {k: v for k, v in self.headers.items() if k.lower() != "host"}
                connection.request(self.command, self.path, body=body, headers=sent)
                response = connection.getresponse()
                data = response.read()
                connection.close()
                headers = {
                    k: v.replace(registry.host, proxy.host) for k, v in response.getheaders()
                    if k.lower() not in ("content-length", "transfer-encoding", "connection")
                }
                size = response.getheader("Content-Length") if self.command == "HEAD" else None
                answer = fault(self, response.status, headers, data) or (response.status, headers, data)
                cut = None
                if answer[0] == "cut":
                    cut, answer = answer[1], (response.status, headers, data)
                status, headers, data = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", size or str(len(data)))
                self.end_headers()
                if self.command == "HEAD":
                    return
                if cut is not None:
                    self.wfile.write(data[:cut])
                    self.wfile.flush()
                    self.close_connection = True
                    return
                self.wfile.write(data)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

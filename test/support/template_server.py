"""A server that has templates, as far as a client can see: ours has no runtime that builds any."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_TIME = "2026-01-02T03:04:05Z"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, document=None):
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def kept(self):
        name = urlsplit(self.path).path.removeprefix("/v1/templates/")
        return name if name in self.server.templates else None

    def missing(self):
        self.answer(404, {"code": "FSB::TEMPLATE_NOT_FOUND", "message": "There is no such template."})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.server.bodies.append(body)
        name = f"tpl-{len(self.server.bodies)}"
        self.server.templates[name] = {
            "format": "overlaybd", **body, "templateId": name, "createdAt": _TIME, "updatedAt": _TIME,
            "status": {"phase": "Pending"},
        }
        self.answer(201, self.server.templates[name])

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path != "/v1/templates":
            name = self.kept()
            return self.answer(200, self.server.templates[name]) if name else self.missing()
        wanted = parse_qs(parse_qs(url.query).get("metadata", [""])[0])
        items = [t for t in self.server.templates.values()
                 if all(t.get("metadata", {}).get(k) in v for k, v in wanted.items())]
        self.answer(200, {"items": items, "pagination": {
            "page": 1, "pageSize": 20, "totalItems": len(items), "totalPages": 1, "hasNextPage": False}})

    def do_DELETE(self):
        name = self.kept()
        if not name:
            return self.missing()
        del self.server.templates[name]
        self.answer(204)


class TemplateServer(ThreadingHTTPServer):
    """`bodies` has every request to create one; `templates` what is there."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies, self.templates = [], {}
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def address(self):
        return f"127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()

"""A small HTTP client of both APIs. Every reply is checked against the specification."""

import http.client
import json
import time
import urllib.parse

from support import contract


class Reply:
    """One answer: status, headers as received, body."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode()

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Http:
    """Requests over one kept-alive connection. `surface` names the specification that replies are
    checked against; None checks nothing (a proxied service answers what it likes)."""

    def __init__(self, address, surface=None, prefix="", headers=None, timeout=60):
        address = address.split("://")[-1]
        host, slash, path = address.partition("/")
        self.address = host
        self.base = (slash + path).rstrip("/")
        self.surface = surface
        self.prefix = prefix
        self.headers = headers or {}
        self.connection = http.client.HTTPConnection(host, timeout=timeout)

    def close(self):
        self.connection.close()

    def open(self, method, path, *, body=None, headers=None, query=None, raw_query=None):
        """Sends a request and returns the connection's response, its body still unread."""
        target = self.base + self.prefix + path
        if query:
            target += "?" + urllib.parse.urlencode(query, doseq=True)
        if raw_query:
            target += "?" + raw_query
        sent = dict(self.headers)
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        for last in (False, True):
            try:
                self.connection.request(method, target, body=body, headers=sent)
                return self.connection.getresponse()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # A kept-alive connection that the other end closed while it was idle.
                self.connection.close()
                if last or method == "POST":
                    raise
            except BaseException:
                self.connection.close()
                raise

    def request(self, method, path, **options):
        check = options.pop("check", True)
        response = self.open(method, path, **options)
        reply = Reply(response.status, response.getheaders(), response.read())
        if self.surface and check:
            contract.check_reply(self.surface, method, path, reply)
        return reply

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.request("POST", path, body=body, **options)

    def delete(self, path, **options):
        return self.request("DELETE", path, **options)

    def patch(self, path, body=None, **options):
        return self.request("PATCH", path, body=body, **options)

    def put(self, path, body=None, **options):
        return self.request("PUT", path, body=body, **options)


class Finished:
    """What a foreground command did."""

    def __init__(self, events):
        self.events = events
        self.id = next((e["text"] for e in events if e["type"] == "init"), None)
        self.stdout = "".join(e["text"] for e in events if e["type"] == "stdout")
        self.stderr = "".join(e["text"] for e in events if e["type"] == "stderr")
        terminal = [e for e in events if e["type"] in ("error", "execution_complete")]
        assert len(terminal) == 1, f"one terminal event expected: {events}"
        self.error = terminal[0].get("error")
        #: None when the command could not even start: `error` then says why.
        self.code = 0
        if self.error:
            text = self.error["evalue"]
            self.code = int(text) if text.lstrip("-").isdigit() else None

    def __repr__(self):
        return (
            f"<exit {self.code} stdout={self.stdout[:2000]!r} stderr={self.stderr[:2000]!r} "
            f"error={self.error}>"
        )


class Agent(Http):
    """The API inside a sandbox."""

    def __init__(self, address, headers=None, timeout=60):
        super().__init__(address, "execd", headers=headers, timeout=timeout)

    def events(self, body, path="/command"):
        """Yields the events of a command as they arrive, with the moment of their arrival."""
        response = self.open("POST", path, body=body)
        if response.status != 200:
            reply = Reply(response.status, response.getheaders(), response.read())
            contract.check_reply(self.surface, "POST", path, reply)
            raise AssertionError(f"{body} answered {reply}")
        assert response.getheader("Content-Type", "").startswith("text/event-stream")
        pending = b""
        while True:
            part = response.read1(65536)
            if not part:
                break
            pending += part
            while b"\n\n" in pending:
                frame, pending = pending.split(b"\n\n", 1)
                event = json.loads(frame)
                contract.check_event(event)
                event["_at"] = time.monotonic()
                yield event
        assert not pending.strip(), f"the stream ends within an event: {pending!r}"

    def run(self, command, **options):
        """Runs a command (text for the shell, a list without one) and returns when it ended."""
        body = {"argv" if isinstance(command, list) else "command": command, **options}
        return Finished(list(self.events(body)))

    def sh(self, command, **options):
        """Like run(), and fails unless the command ends with 0; returns its stdout."""
        done = self.run(command, **options)
        assert done.code == 0, f"{command!r}: {done}"
        return done.stdout

    def write(self, path, data, mode=644):
        return self.upload("/files/upload", path, data, mode)

    def upload(self, route, path, data, mode=644):
        boundary = "harness-boundary-7d1f"
        metadata = json.dumps({"path": path, "mode": mode}).encode()
        if isinstance(data, str):
            data = data.encode()
        body = b"".join(
            [
                f"--{boundary}\r\nContent-Disposition: form-data; name=\"metadata\"; "
                f"filename=\"metadata\"\r\nContent-Type: application/json\r\n\r\n".encode(),
                metadata,
                f"\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; "
                f"filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n".encode(),
                data,
                f"\r\n--{boundary}--\r\n".encode(),
            ]
        )
        return self.post(
            route,
            body,
            headers={"Content-Type": f"multipart/form-data; boundary={boundary}"},
        )

    def read(self, path):
        return self.get("/files/download", query={"path": path})

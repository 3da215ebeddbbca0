"""A Docker engine that fails when told to: stands before a real one, passes everything on, and answers
the calls that a rule names by itself."""

import json
import re
import socket
import threading
from contextlib import contextmanager
from pathlib import Path


class Rule:
    """What happens to calls of one method whose path matches. `status` and `message` make an answer
    of the engine's kind, `body` one that looks whole; `garbage` is sent as it is; `hold` is an event
    to wait for before passing on; `drop` closes."""

    def __init__(self, method, path, *, status=None, message="told to fail", body=None, garbage=None,
                 hold=None, drop=False):
        self.method = method
        self.path = re.compile(path)
        self.status = status or (200 if body is not None else None)
        self.body = {"message": message} if body is None else body
        self.garbage = garbage
        self.hold = hold
        self.drop = drop
        self.hits = 0

    def matches(self, method, path):
        plain = re.sub(r"^/v[0-9.]+(?=/)", "", path)
        return method == self.method and self.path.search(plain) is not None

    def answer(self):
        if self.garbage is not None:
            return self.garbage
        body = json.dumps(self.body).encode() + b"\n"
        head = f"HTTP/1.1 {self.status} Told\r\nContent-Type: application/json\r\nConnection: close\r\n"
        return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


class FaultyEngine:
    def __init__(self, directory, target):
        """`target` is the real engine's socket."""
        self.path = Path(directory) / "faulty.sock"
        self.target = str(target)
        self.rules = []
        self.lock = threading.Lock()
        self.connections = set()
        self.listener = None

    @property
    def host(self):
        return f"unix://{self.path}"

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.path.unlink(missing_ok=True)
        self.listener.bind(str(self.path))
        self.listener.listen(64)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        return self

    def __exit__(self, *_):
        """Also an engine that is gone: nothing listens, and every connection is cut."""
        listener, self.listener = self.listener, None
        if listener:
            # close() alone would not wake the thread that accepts.
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.path.unlink(missing_ok=True)
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    @contextmanager
    def gone(self):
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    @contextmanager
    def fails(self, method, path, **how):
        """While it lasts, calls that match go wrong as Rule says. Fails if no call did."""
        rule = Rule(method, path, **how)
        with self.lock:
            self.rules.append(rule)
        try:
            yield rule
        finally:
            with self.lock:
                self.rules.remove(rule)
        assert rule.hits, f"no call of {method} {path} was made"

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        engine = socket.socket(socket.AF_UNIX)
        with self.lock:
            self.connections |= {client, engine}
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(65536)
                if not part:
                    return
                head += part
            method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
            with self.lock:
                rule = next((r for r in self.rules if r.matches(method, path)), None)
                if rule:
                    rule.hits += 1
            if rule:
                if rule.hold:
                    rule.hold.wait(60)
                if rule.drop:
                    return
                if rule.status or rule.garbage is not None:
                    client.sendall(rule.answer())
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(65536):
                        pass
                    return
            engine.connect(self.target)
            engine.sendall(self._one_request(head))
            back = threading.Thread(target=self._copy, args=(engine, client), daemon=True)
            back.start()
            self._copy(client, engine)
            back.join()
        except OSError:
            pass
        finally:
            with self.lock:
                self.connections -= {client, engine}
            client.close()
            engine.close()

    @staticmethod
    def _one_request(data):
        """The request with a connection of its own, so that every request can be looked at. What
        turns the connection into a stream stays as it is."""
        head, rest = data.split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        if not any(line.lower().startswith(b"upgrade:") for line in lines):
            lines = [line for line in lines if not line.lower().startswith(b"connection:")]
            lines.append(b"Connection: close")
        return b"\r\n".join(lines) + b"\r\n\r\n" + rest

    @staticmethod
    def _copy(source, sink):
        try:
            while part := source.recv(65536):
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

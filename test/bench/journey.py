"""A client's way from nothing to a finished command, with as little of its own time as Python allows:
bare sockets, requests made ahead, one thread for all that run at once."""

import errno
import json
import re
import select
import socket
import time

_LENGTH = re.compile(rb"content-length: *(\d+)", re.I)


def _address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def _request(method, path, address, headers=None, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: {address}"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def connect(address):
    connection = socket.create_connection(_address(address), 60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setblocking(False)
    return connection


def _reply(connection):
    """One answer with a length, as (status, body). Yields the socket that it waits for."""
    text = b""
    while True:
        try:
            part = connection.recv(65536)
        except BlockingIOError:
            yield connection, select.EPOLLIN
            continue
        if not part:
            raise ConnectionError("the server closed the connection")
        text += part
        head, end, body = text.partition(b"\r\n\r\n")
        if not end:
            continue
        length = _LENGTH.search(head)
        if len(body) >= (int(length[1]) if length else 0):
            return int(head[9:12]), body


class Sandboxes:
    """Those of one server, asked over kept-alive connections."""

    def __init__(self, server, request, *, path="/command", command=None, ending=b"execution_complete"):
        self.address, self.path, self.ending = server.address, path, ending
        self.command = command or {"command": "true"}
        self.headers = {"OPEN-SANDBOX-API-KEY": server.key}
        self._create = _request("POST", "/v1/sandboxes", self.address, self.headers, request)

    def connect(self):
        return connect(self.address)

    def create(self, connection):
        connection.send(self._create)
        status, body = yield from _reply(connection)
        if status != 202:
            raise AssertionError(f"create answered {status}: {body[:500]!r}")
        return json.loads(body)["id"]

    def endpoint(self, connection, id):
        connection.send(_request("GET", f"/v1/sandboxes/{id}/endpoints/44772", self.address, self.headers))
        status, body = yield from _reply(connection)
        if status != 200:
            raise AssertionError(f"endpoint answered {status}: {body[:500]!r}")
        return json.loads(body)

    def run(self, where, patience=60):
        """The first command, on a connection of its own. A port may be open before its agent is."""
        host, slash, rest = where["endpoint"].partition("/")
        text = _request("POST", f"{slash}{rest}{self.path}", host, where.get("headers"), self.command)
        until = time.perf_counter() + patience
        while True:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as agent:
                agent.setblocking(False)
                if agent.connect_ex(_address(host)) == errno.EINPROGRESS:
                    yield agent, select.EPOLLOUT
                heard = b""
                try:
                    agent.send(text)
                    while self.ending not in heard:
                        try:
                            part = agent.recv(65536)
                        except BlockingIOError:
                            yield agent, select.EPOLLIN
                            continue
                        if not part:
                            break
                        heard += part
                    else:
                        return heard
                except OSError:
                    pass
            if time.perf_counter() > until:
                raise AssertionError(f"no command ran at {where}: {heard[:500]!r}")
            time.sleep(0.005)

    def journey(self, connection):
        """Create, endpoint, one command; the sandbox's id."""
        id = yield from self.create(connection)
        where = yield from self.endpoint(connection, id)
        yield from self.run(where)
        return id

    def delete(self, connection, id):
        connection.send(_request("DELETE", f"/v1/sandboxes/{id}", self.address, self.headers))
        status, body = yield from _reply(connection)
        if status != 204:
            raise AssertionError(f"delete answered {status}: {body[:500]!r}")


def together(*ways):
    """Goes all ways at once; what each returned, in their order."""
    results = [None] * len(ways)
    waiting = {}
    with select.epoll() as poll:
        def go_on(number):
            try:
                waited, events = next(ways[number])
            except StopIteration as end:
                results[number] = end.value
                return
            fd = waited.fileno()
            waiting[fd] = number
            try:
                poll.modify(fd, events | select.EPOLLONESHOT)
            except FileNotFoundError:
                poll.register(fd, events | select.EPOLLONESHOT)

        for number in range(len(ways)):
            go_on(number)
        while waiting:
            for fd, _ in poll.poll(120):
                go_on(waiting.pop(fd))
    return results


def alone(way):
    return together(way)[0]

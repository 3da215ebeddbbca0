"""TLS before a server that has none."""

import socket
import ssl
import threading

from support.shell import run


def make_certificate(directory):
    """A self-signed one for 127.0.0.1, with its key in the same file."""
    path = directory / "certificate.pem"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-days", "2", "-subj", "/CN=front", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out",
        directory / "chain.pem")
    path.write_text(path.read_text() + (directory / "chain.pem").read_text())
    return path


class TlsFront:
    """Listens on all of the loopback, takes TLS off and passes the bytes on."""

    def __init__(self, behind, certificate):
        host, port = behind.split(":")
        self.behind = (host, int(port))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        self.listener = socket.create_server(("0.0.0.0", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        try:
            peer.settimeout(30)
            with self.context.wrap_socket(peer, server_side=True) as outer, \
                    socket.create_connection(self.behind, 10) as inner:
                back = threading.Thread(target=self._pass, args=(inner, outer), daemon=True)
                back.start()
                self._pass(outer, inner)
                back.join(30)
        except OSError:
            peer.close()

    @staticmethod
    def _pass(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

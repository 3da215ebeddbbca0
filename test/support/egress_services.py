"""The servers of support/egress_internet.py, a program: DIRECTORY ADDRESS... On every address TCP
80, 8080 (HTTP), 443, 853 (HTTP within TLS) and 7 (echo) and UDP 7, 443 and 853 (echo). HTTP answers
with the address that was connected to."""

import asyncio
import ssl
import sys
from pathlib import Path

HTTP, TLS, ECHO, DATAGRAMS = (80, 8080), (443, 853), 7, (7, 443, 853)


async def answer(reader, writer):
    try:
        await reader.readuntil(b"\r\n\r\n")
        body = writer.get_extra_info("sockname")[0].encode()
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        writer.write(head + body)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def echo(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        self.transport.sendto(data, peer)


async def main():
    directory = Path(sys.argv[1])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)  # connections that end within the handshake
    for port in HTTP:
        await asyncio.start_server(answer, None, port)
    for port in TLS:
        await asyncio.start_server(answer, None, port, ssl=tls)
    await asyncio.start_server(echo, None, ECHO)
    for address in sys.argv[2:]:
        for port in DATAGRAMS:
            await loop.create_datagram_endpoint(Echo, (address, port))
    (directory / "ready").touch()
    await asyncio.Event().wait()


asyncio.run(main())

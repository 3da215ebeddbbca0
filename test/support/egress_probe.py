"""What a sandbox tries, a program of its own without anything but Python: takes a JSON list of
attempts, each {"do": NAME, ...}, makes them one after the other and writes the list of what came of
them. An outcome is "connected", "answered", "silence" (nothing came) or the name of an error."""

import errno
import json
import os
import random
import socket
import ssl
import struct
import sys
import time

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "NULL": 10, "PTR": 12, "TXT": 16, "AAAA": 28, "HTTPS": 65,
         "AXFR": 252, "ANY": 255}
SO_MARK, IPV6_FREEBIND, IP_FREEBIND = 36, 78, 15


def name_of(error):
    if isinstance(error, socket.gaierror):
        return "no name"
    if isinstance(error, TimeoutError):
        return "silence"
    return errno.errorcode.get(error.errno, type(error).__name__)


def family_of(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def timed(work):
    begin = time.monotonic()
    try:
        result = work()
    except OSError as error:
        result = {"outcome": name_of(error)}
    return {**result, "seconds": round(time.monotonic() - begin, 3)}


def tcp(host, port=80, wait=4.0, tls=False, http=False, mark=None, **_):
    family = socket.AF_UNSPEC
    kind, _, _, _, address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
    connection = socket.socket(kind, socket.SOCK_STREAM)
    with connection:
        connection.settimeout(wait)
        marked = set_mark(connection, mark)
        connection.connect(address)
        if tls:
            connection = ssl._create_unverified_context().wrap_socket(connection,
                                                                      server_hostname=host)
        if http or tls:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode())
            body = connection.recv(4096).rpartition(b"\r\n\r\n")[2].decode()
            return {"outcome": "connected", "body": body.replace("::ffff:", ""), **marked}
    return {"outcome": "connected", **marked}


def set_mark(sending, mark):
    if mark is None:
        return {}
    try:
        sending.setsockopt(socket.SOL_SOCKET, SO_MARK, mark)
        return {"marked": True}
    except OSError as error:
        return {"marked": name_of(error)}


def udp(host, port=7, wait=1.0, mark=None, source=None, data="hello", **_):
    with socket.socket(family_of(host), socket.SOCK_DGRAM) as sending:
        sending.settimeout(wait)
        marked = set_mark(sending, mark)
        if source:
            v6 = ":" in source
            sending.setsockopt(socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP,
                               IPV6_FREEBIND if v6 else IP_FREEBIND, 1)
            sending.bind((source, 0))
        try:
            sending.connect((host, port))
            sending.send(data.encode())
            sending.recv(65536)
            return {"outcome": "answered", **marked}
        except OSError as error:
            return {"outcome": name_of(error), **marked}


def question(name, kind, size, edns):
    labels = b"".join(bytes([len(part)]) + part for part in name.encode().split(b".") if part)
    head = struct.pack(">HHHHHH", random.randrange(65536), 0x0100, 1, 0, 0, int(edns))
    opt = b"\0" + struct.pack(">HHIH", 41, size, 0, 0) if edns else b""
    return head + labels + b"\0" + struct.pack(">HH", TYPES[kind], 1) + opt


def read_name(message, at):
    labels, end = [], None
    while True:
        size = message[at]
        if size & 0xC0:
            end = end or at + 2
            at = struct.unpack(">H", message[at:at + 2])[0] & 0x3FFF
        elif size == 0:
            return ".".join(labels), end or at + 1
        else:
            labels.append(message[at + 1:at + 1 + size].decode())
            at += 1 + size


def read_answer(message):
    _, flags, questions, answers, authority, additional = struct.unpack(">HHHHHH", message[:12])
    at, found, extended = 12, [], []
    for _ in range(questions):
        at = read_name(message, at)[1] + 4
    for i in range(answers + authority + additional):
        at = read_name(message, at)[1]
        kind, _, ttl, size = struct.unpack(">HHIH", message[at:at + 10])
        at += 10
        data = message[at:at + size]
        if i < answers:
            if kind in (1, 28):
                value = socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, data)
            else:
                value = read_name(message, at)[0] if kind == 5 else data.hex()
            found.append({"type": kind, "ttl": ttl, "value": value})
        while kind == 41 and data:
            code, length = struct.unpack(">HH", data[:4])
            if code == 15:
                extended.append([struct.unpack(">H", data[4:6])[0], data[6:4 + length].decode()])
            data = data[4 + length:]
        at += size
    return {"rcode": flags & 15, "truncated": bool(flags & 0x200), "answers": found,
            "addresses": [a["value"] for a in found if a["type"] in (1, 28)],
            "extended": extended, "outcome": "answered"}


def dns(name, type="A", server="8.8.8.8", over="udp", wait=4.0, size=1232, edns=True, port=53, **_):
    asked = question(name, type, size, edns)
    kind = socket.SOCK_STREAM if over == "tcp" else socket.SOCK_DGRAM
    with socket.socket(family_of(server), kind) as sending:
        sending.settimeout(wait)
        sending.connect((server, port))
        if over == "udp":
            sending.send(asked)
            return read_answer(sending.recv(65536))
        sending.sendall(struct.pack(">H", len(asked)) + asked)
        stream = sending.makefile("rb")
        length = stream.read(2)
        answer = stream.read(struct.unpack(">H", length)[0]) if len(length) == 2 else b""
        # Whoever answers may be killed in between.
        return read_answer(answer) if answer else {"outcome": "closed"}


def resolve(name, **_):
    found = socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)
    return {"outcome": "answered", "addresses": sorted({entry[4][0] for entry in found})}


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def ping(host, wait=1.0, **_):
    v6 = ":" in host
    protocol = socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP
    try:
        sending = socket.socket(family_of(host), socket.SOCK_RAW, protocol)
    except PermissionError:
        sending = socket.socket(family_of(host), socket.SOCK_DGRAM, protocol)
    with sending:
        sending.settimeout(wait)
        packet = struct.pack(">BBHHH", 128 if v6 else 8, 0, 0, 7, 1) + b"osb-test"
        if not v6:
            packet = packet[:2] + struct.pack(">H", checksum(packet)) + packet[4:]
        sending.connect((host, 0))
        sending.send(packet)
        while True:
            data = sending.recv(4096)
            kind = data[0] if v6 or data[0] >> 4 != 4 else data[(data[0] & 15) * 4]
            if kind in (0, 129):
                return {"outcome": "answered"}


def own_address(host, port=9):
    with socket.socket(family_of(host), socket.SOCK_DGRAM) as sending:
        sending.connect((host, port))
        return sending.getsockname()[0]


def ipv4_packet(source, target, port, protocol=17):
    payload = struct.pack(">HHHH", 40000, port, 16, 0) + b"osb-test"
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0,
                       socket.inet_aton(source), socket.inet_aton(target))
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def ipv6_packet(source, target, port):
    source, target = (socket.inet_pton(socket.AF_INET6, a) for a in (source, target))
    payload = struct.pack(">HHHH", 40000, port, 16, 0) + b"osb-test"
    pseudo = source + target + struct.pack(">II", len(payload), 17)
    payload = payload[:6] + struct.pack(">H", checksum(pseudo + payload)) + payload[8:]
    return struct.pack(">IHBB", 6 << 28, len(payload), 17, 64) + source + target + payload


def raw(host, port=7, source=None, protocol=17, count=1, **_):
    """Packets with a header of our own."""
    v6 = ":" in host
    source = source or own_address(host)
    packet = ipv6_packet(source, host, port) if v6 else ipv4_packet(source, host, port, protocol)
    with socket.socket(family_of(host), socket.SOCK_RAW, socket.IPPROTO_RAW) as sending:
        for _ in range(count):
            sending.sendto(packet, (host, 0))
    return {"outcome": "sent"}


def frame(host, port=7, source=None, bypass=False, link="eth0", count=1, **_):
    """Frames below all of IP, with a packet of our own in them."""
    v6 = ":" in host
    source = source or own_address(host)
    packet = ipv6_packet(source, host, port) if v6 else ipv4_packet(source, host, port)
    kind = 0x86DD if v6 else 0x0800
    gateway = neighbour(link)
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as sending:
        if bypass:
            sending.setsockopt(263, 20, 1)  # SOL_PACKET, PACKET_QDISC_BYPASS
        for _ in range(count):
            sending.sendto(packet, (link, kind, 0, 0, gateway))
    return {"outcome": "sent"}


def neighbour(link):
    """The gateway's link address; it is looked for with whatever packet goes that way."""
    with open("/proc/net/route") as routes:
        rows = [line.split() for line in routes][1:]
    gateway = next(row[2] for row in rows if row[1] == "00000000" and row[0] == link)
    address = socket.inet_ntoa(bytes.fromhex(gateway)[::-1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.setblocking(False)
        for _ in range(20):
            with open("/proc/net/arp") as table:
                for row in (line.split() for line in table):
                    if row[0] == address and row[3] != "00:00:00:00:00:00":
                        return bytes.fromhex(row[3].replace(":", ""))
            try:
                sending.sendto(b"", (address, 9))
            except OSError:
                pass
            time.sleep(0.05)
    raise FileNotFoundError(errno.ENXIO, "the gateway's link address is not known")


def hold(host, port, stop, ready, count=4, limit=60, **_):
    """Connections over which something goes all the time, until the file `stop` is there."""
    connections = [socket.create_connection((host, port), 5) for _ in range(count)]
    outcomes = [None] * count
    exchanges, end = 0, time.monotonic() + limit
    for connection in connections:
        connection.settimeout(3)
    open(ready, "w").close()
    while None in outcomes and not os.path.exists(stop) and time.monotonic() < end:
        for i, connection in enumerate(connections):
            if outcomes[i]:
                continue
            try:
                connection.sendall(b"x" * 100)
                if not connection.recv(100):
                    outcomes[i] = "closed"
                exchanges += 1
            except OSError as error:
                outcomes[i] = name_of(error)
        time.sleep(0.002)
    return {"outcome": "held", "connections": [o or "alive" for o in outcomes],
            "exchanges": exchanges}


def flood(targets, stop, ready, limit=60, **_):
    """Tries all targets again and again, each [attempt], until the file `stop` is there."""
    made, outcomes, end = 0, {}, time.monotonic() + limit
    while not os.path.exists(stop) and time.monotonic() < end:
        for i, target in enumerate(targets):
            outcome = attempt({"wait": 0.2, **target})["outcome"]
            outcomes.setdefault(str(i), {}).setdefault(outcome, 0)
            outcomes[str(i)][outcome] += 1
            made += 1
        if made == len(targets):
            open(ready, "w").close()
    return {"outcome": "done", "made": made, "outcomes": outcomes}


def attempt(what):
    return timed(lambda: KINDS[what["do"]](**{k: v for k, v in what.items() if k != "do"}))


KINDS = {"tcp": tcp, "udp": udp, "dns": dns, "resolve": resolve, "ping": ping, "raw": raw,
         "frame": frame, "hold": hold, "flood": flood}

if __name__ == "__main__":
    print(json.dumps([attempt(each) for each in json.loads(sys.argv[1])]))

"""Objects that the kernel counts for a user or for the host. A program: `take KIND SECONDS` takes all
it can get of a kind, says how many and why no more, and holds them; `use` takes a few of every kind
and says, as JSON, which could not be had."""

import ctypes
import errno
import fcntl
import json
import os
import pty
import resource
import signal
import socket
import struct
import sys
import tempfile
import time

libc = ctypes.CDLL(None, use_errno=True)


def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def inotify_instance():
    return call(libc.inotify_init1(0o2000000))


class Watches:
    """On as many files as it takes: each instance has one watch a file."""

    FILES = 2000

    def __init__(self):
        self.where = tempfile.mkdtemp(dir="/dev/shm")
        for number in range(self.FILES):
            open(f"{self.where}/{number}", "w").close()
        self.instance, self.next = inotify_instance(), 0

    def __call__(self):
        if self.next == self.FILES:
            self.instance, self.next = inotify_instance(), 0
        call(libc.inotify_add_watch(self.instance, f"{self.where}/{self.next}".encode(), 2))
        self.next += 1

    def clean(self):
        for number in range(self.FILES):
            os.unlink(f"{self.where}/{number}")
        os.rmdir(self.where)


def pending_signal():
    call(libc.sigqueue(os.getpid(), signal.SIGRTMIN + 1, ctypes.c_void_p(0)))


def posix_timer():
    # SIGEV_SIGNAL with its own number and no value.
    event = struct.pack("QiiQQQQQQ", 0, signal.SIGRTMIN + 2, 0, 0, 0, 0, 0, 0, 0)
    call(libc.syscall(222, 1, event, ctypes.byref(ctypes.c_int())))


class Queues:
    def __init__(self):
        self.names = []

    def __call__(self):
        name = f"/taken-{os.getpid()}-{len(self.names)}".encode()
        call(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None))
        self.names.append(name)

    def clean(self):
        for name in self.names:
            libc.mq_unlink(name)


def aio_context():
    call(libc.syscall(206, 512, ctypes.byref(ctypes.c_ulong())))


class Terminals:
    def __init__(self):
        self.held = []

    def __call__(self):
        self.held.append(pty.openpty())


class Files:
    def __init__(self):
        self.held = []

    def __call__(self):
        self.held.append(os.open("/dev/null", os.O_RDONLY))


def process():
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    return pid


class Streams:
    """Connections to itself that nobody reads."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.held = []

    def __call__(self):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        one.settimeout(5)
        one.connect(self.listener.getsockname())
        other = self.listener.accept()[0]
        other.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        one.setblocking(False)
        self.held += [one, other]
        try:
            for _ in range(256):
                one.send(b"x" * 65536)
        except BlockingIOError:
            pass


class Flows:
    """Datagrams to many ports of one address: each is a connection to whoever tracks them."""

    def __init__(self):
        self.target, self.port = os.environ.get("TARGET", "127.0.0.1"), 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __call__(self):
        if self.port == 60000:
            self.socket, self.port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0
        self.port += 1
        try:
            self.socket.sendto(b"x", (self.target, self.port))
        except (ConnectionRefusedError, BlockingIOError):
            pass
        except OSError as error:
            # What the wall answered to an earlier one.
            if error.errno not in (errno.EHOSTUNREACH, errno.EACCES, errno.ENOBUFS):
                raise


def semaphore_set():
    call(libc.semget(0, 100, 0o600 | 0o1000))


class Pipes:
    def __init__(self):
        self.held = []

    def __call__(self):
        ends = os.pipe()
        self.held.append(ends)
        fcntl.fcntl(ends[0], 1031, 1 << 20)


#: Kind, what takes one, how many are enough for who takes all (0: until there are no more), and how
#: many who only uses them wants.
KINDS = {
    "inotify instances": (lambda: inotify_instance, 0, 8),
    "inotify watches": (Watches, int(os.environ.get("WATCHES", "0")), 64),
    "pending signals": (lambda: pending_signal, 0, 64),
    "POSIX timers": (lambda: posix_timer, 0, 64),
    "message queues": (Queues, 0, 2),
    "AIO contexts": (lambda: aio_context, 0, 0),
    "terminals": (Terminals, 0, 8),
    "open files": (Files, 0, 128),
    "processes": (lambda: process, 0, 16),
    "socket buffers": (Streams, 128, 4),
    "tracked connections": (Flows, 60000, 16),
    "semaphores": (lambda: semaphore_set, 400, 2),
    "pipes": (Pipes, 200, 4),
}
#: Of these one process cannot take all.
BY_PROCESSES = {"terminals": 8, "open files": 16, "inotify instances": 4}


def take(kind, most):
    """How many were had, and the errno that ended it."""
    make, _, _ = KINDS[kind]
    had, ended = 0, 0
    keep = []
    try:
        one = make()
        keep.append(one)
        while most == 0 or had < most:
            keep.append(one())
            had += 1
    except OSError as error:
        ended = error.errno or errno.ENOSPC  # the standard library names no number for terminals
    return had, ended, keep


def clean(keep):
    for thing in keep:
        if hasattr(thing, "clean"):
            thing.clean()
        elif isinstance(thing, int) and thing > 2:
            try:
                os.kill(thing, 0)
            except OSError:
                pass


def prepare():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN + 1, signal.SIGRTMIN + 2})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main_take(kind, seconds):
    prepare()
    readers = []
    for _ in range(BY_PROCESSES.get(kind, 1)):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                had, ended, keep = take(kind, KINDS[kind][1])
                os.write(writer, json.dumps([had, ended]).encode())
                time.sleep(seconds)
                for thing in keep:
                    if kind == "processes" and isinstance(thing, int):
                        os.kill(thing, signal.SIGKILL)
                clean(keep)
            finally:
                os._exit(0)
        os.close(writer)
        readers.append((pid, reader))
    results = [json.loads(os.read(reader, 100) or "[0, -1]") for _, reader in readers]
    print(json.dumps({"had": sum(had for had, _ in results), "ended": results[-1][1]}), flush=True)
    for pid, _ in readers:
        os.waitpid(pid, 0)


def main_use():
    prepare()
    missing = {}
    for kind, (_, _, few) in KINDS.items():
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            had, ended, keep = take(kind, few) if few else (0, 0, [])
            os.write(writer, json.dumps([had, ended]).encode())
            for thing in keep:
                if kind == "processes" and isinstance(thing, int):
                    os.kill(thing, signal.SIGKILL)
            clean(keep)
            os._exit(0)
        os.close(writer)
        had, ended = json.loads(os.read(reader, 100) or "[0, -1]")
        os.close(reader)
        os.waitpid(pid, 0)
        if had < few:
            missing[kind] = f"{had} of {few}: {os.strerror(ended)}"
    print(json.dumps(missing))


if __name__ == "__main__":
    if sys.argv[1] == "take":
        main_take(sys.argv[2], float(sys.argv[3]))
    else:
        main_use()

"""Ordinary work inside: installs and uses what people use, in common images, as root and as a user.

    test/run work [--kind KIND]... [--image IMAGE]... [--only NAME]... [--rootfs NAME=TAR]... [--table FILE]

For each kind of native server and each image, prints what works and what is refused with which words.
Fails when something does not work that should, or is refused in other words than its row says.
"""

import argparse
import re
import signal
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support.runsc import build_runsc
from support.server import EXECUTABLE, Server
from support.shell import eventually
from support.users import Launched, tun_device
from work import images
from work.works import DEBIAN, KINDS, WORKS

UID = 1000
HOME = {"root": "/root", "user": "/home/worker"}


@contextmanager
def serving(kind):
    """A server of the kind, gone afterwards."""
    with ExitStack() as stack:
        if kind == "rootless":
            user = stack.enter_context(Launched())
            # Sandboxes of an ordinary user have a network where the user may open this device.
            tun = tun_device(user.home / "tun", 0o666)
            server = Server(user.home / "server", user=user, executable=user.copy(EXECUTABLE), pool_size=2,
                            launcher=user.launcher([(tun, "/dev/net/tun")]))
            del server.settings["native"]["state_dir"]
            server.state.rmdir()
            server.state = server.directory / ".opensandbox"
        else:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="opensandbox-work-", dir="/var/tmp"))
            secure = {"secure_runtime": {"type": "gvisor", "runsc": str(build_runsc())}} if kind == "gvisor" else {}
            server = Server(Path(directory) / "server", sections=secure, pool_size=2)
        stack.callback(server.destroy)
        yield server.start()


@contextmanager
def sandbox_of(server, image):
    with server.create(image={"uri": image}, timeout=86400, env=images.VARIABLES,
                       resourceLimits={"cpu": "2", "memory": "6Gi", "pids": "4096"}) as sandbox:
        images.trust(sandbox)
        sandbox.sh(f"grep -q ^worker: /etc/passwd || echo 'worker:x:{UID}:{UID}::/home/worker:/bin/sh' >>/etc/passwd; "
                   f"mkdir -p /home/worker && chown {UID}:{UID} /home/worker")
        yield sandbox


def has_network(sandbox):
    """Whether names are found; what connects an ordinary user's sandboxes may be later than the first of them."""
    try:
        eventually(lambda: sandbox.run("getent hosts pypi.org", timeout=20000).code == 0, 20, 0.5, "names")
    except AssertionError:
        return False
    return True


class Session:
    """The rows of one image under one kind of server."""

    def __init__(self, kind, image, results):
        self.kind, self.image, self.results = kind, image, results

    def perform(self, sandbox, works):
        network = has_network(sandbox)
        installed = set()
        if network and self.image in (*DEBIAN, "host"):
            self._sh(sandbox, "apt-get update -q", "root", 300)
        for work in works:
            if (work.network or not set(work.packages) <= installed) and not network:
                self.note(work, "root" if work.root else "user", "NOT TRIED: no network", True)
                continue
            missing = sorted(set(work.packages) - installed)
            if missing and self.image in DEBIAN:
                done = self._sh(sandbox, "apt-get install -y -q --no-install-recommends " + " ".join(missing), "root", 1800)
                if done.code != 0:
                    self.note(work, "root", f"not installed: {last_words(done)}", True)
                    continue
                installed |= set(missing)
            for who in ("root", "user"):
                if getattr(work, who):
                    self.attempt(sandbox, work, who)

    def attempt(self, sandbox, work, who):
        expected = work.refusal(self.kind, who)
        done = self._sh(sandbox, work.use, who, work.seconds)
        words = last_words(done)
        if not expected:
            self.note(work, who, "works" if done.code == 0 else f"FAILS ({done.code}): {words}", done.code != 0)
            return
        told = done.code != 0 and re.search(expected, done.stdout + done.stderr)
        line = next((line for line in (done.stderr + done.stdout).splitlines() if re.search(expected, line)), words)
        self.note(work, who, f"refused: {line.strip()}" if told else f"NOT REFUSED AS SAID ({done.code}): {words}", not told)

    @staticmethod
    def _sh(sandbox, script, who, seconds):
        ids = {"uid": UID, "gid": UID} if who == "user" else {}
        return sandbox.connect(timeout=seconds + 30).run(
            ["timeout", "-k", "5", str(seconds), "sh", "-c", script], cwd=HOME[who], envs={"HOME": HOME[who]},
            timeout=(seconds + 20) * 1000, **ids)

    def note(self, work, who, words, failed):
        self.results.append((work.name, self.image, who, self.kind, words, failed))
        print(f"{'FAIL' if failed else 'ok':4} {self.kind:8} {self.image:9} {who:4} {work.name}: {words}", flush=True)


def last_words(done):
    lines = [line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    return " / ".join(lines[-2:])[-300:] or str(done.error)


def table(results):
    """What works where, as the specification has it."""
    kinds = [kind for kind in KINDS if any(row[3] == kind for row in results)]
    yield "| work | image | who | " + " | ".join(kinds) + " |"
    yield "|---|---|---|" + "---|" * len(kinds)
    found = {}
    for name, image, who, kind, words, _ in results:
        found.setdefault((name, who), {}).setdefault(image, {})[kind] = words
    for (name, who), by_image in found.items():
        same = {}
        for image, by_kind in by_image.items():
            same.setdefault(tuple(by_kind.get(kind, "") for kind in kinds), []).append(image)
        for words, where in same.items():
            cells = " | ".join(word.replace("|", "\\|") for word in words)
            yield f"| {name} | {', '.join(where)} | {who} | {cells} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--image", action="append")
    parser.add_argument("--only", action="append", help="names of rows")
    parser.add_argument("--rootfs", action="append", default=[], help="NAME=TAR of an image that is not made here")
    parser.add_argument("--table", type=Path, help="write the table of what works there")
    options = parser.parse_args()
    # Whoever ends it, what it made goes.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    given = dict(item.split("=", 1) for item in options.rootfs)
    wanted = options.image or [*DEBIAN, "host", *given]
    results = []
    for kind in options.kind or KINDS:
        with serving(kind) as server:
            for image in wanted:
                works = [w for w in WORKS if image in w.images and (not options.only or w.name in options.only)]
                if works:
                    name = images.add(server, image, given)
                    with sandbox_of(server, name) as sandbox:
                        Session(kind, image, results).perform(sandbox, works)
    lines = list(table(results))
    print("\n".join(["", *lines]))
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")
    failed = [row for row in results if row[5]]
    print(f"\n{len(results) - len(failed)} as said, {len(failed)} not")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

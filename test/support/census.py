"""What exists on the host: mounts, links, rules, cgroups, processes, files.

Two counts of the same server at rest must be equal: blank slots may have been replaced by others
in between, so names differ, but there are as many of each kind as before.
"""

import json
import os
import re
import stat
import subprocess
import time
from collections import Counter
from pathlib import Path

_NUMBER = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")


def _kind(name):
    """A name without what makes it unique."""
    return _NUMBER.sub("#", name)


def _mounts():
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, right = line.rstrip("\n").split(" - ", 1)
            yield f"{right.split()[0]} {_kind(left.split()[4])}"


def _links():
    return (_kind(name) for name in os.listdir("/sys/class/net"))


def _addresses():
    out = subprocess.run(["ip", "-j", "-4", "route"], capture_output=True, text=True).stdout
    return (_kind(str(r.get("dst"))) for r in json.loads(out or "[]"))


def _rules():
    out = subprocess.run(["nft", "-j", "list", "ruleset"], capture_output=True, text=True).stdout
    for item in json.loads(out or "{}").get("nftables", []):
        for kind, value in item.items():
            if kind == "metainfo":
                continue
            yield f"{kind} {value.get('family')} {value.get('table', value.get('name'))}"
            if kind in ("set", "map"):
                for _ in value.get("elem", []):
                    yield f"element {value.get('table')} {value.get('name')}"


def _cgroups():
    for line in open("/proc/self/mounts"):
        _, where, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):
            for path, _, _ in os.walk(where):
                yield _kind(path)


def _processes(executable):
    """Processes of the executable, and everything that runs in a pid namespace but the host's."""
    host = os.readlink("/proc/self/ns/pid")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != host:
                yield "in a namespace"
            elif os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)") == str(executable):
                yield "of the host"
        except OSError:
            continue


# A database's journal comes and goes with use, logs grow: neither is left behind by a sandbox.
_PASSING = re.compile(r"(-wal|-shm|-journal|\.log)$")


def _files(directory):
    for path, directories, files in os.walk(directory):
        for name in directories + files:
            if _PASSING.search(name):
                continue
            full = os.path.join(path, name)
            try:
                mode = os.lstat(full).st_mode
            except OSError:
                continue
            yield f"{stat.filemode(mode)[0]} {_kind(os.path.relpath(full, directory))}"


def take(executable, state_directory):
    """Counts everything once: {class: Counter of kinds}."""
    return {
        "mounts": Counter(_mounts()),
        "links": Counter(_links()),
        "routes": Counter(_addresses()),
        "nft": Counter(_rules()),
        "cgroups": Counter(_cgroups()),
        "processes": Counter(_processes(Path(executable).resolve())),
        "files": Counter(_files(state_directory)),
    }


def difference(before, after):
    """Readable lines, empty when both counts are equal."""
    lines = []
    for kind in before:
        for name in sorted(set(before[kind]) | set(after[kind])):
            was, now = before[kind][name], after[kind][name]
            if was != now:
                lines.append(f"{kind}: {name}: {was} before, {now} after")
    return lines


def settled(executable, state_directory, quiet=0.3, timeout=20.0):
    """A count that did not change for `quiet` seconds: pools refill and remove off the request path."""
    end = time.monotonic() + timeout
    last = take(executable, state_directory)
    while time.monotonic() < end:
        time.sleep(quiet)
        now = take(executable, state_directory)
        if not difference(last, now):
            return now
        last = now
    return last


def expect_equal(before, executable, state_directory, timeout=30.0):
    """Fails unless the count is back to `before` within `timeout` seconds."""
    end = time.monotonic() + timeout
    while True:
        lines = difference(before, take(executable, state_directory))
        if not lines:
            return
        if time.monotonic() >= end:
            raise AssertionError("left behind:\n  " + "\n  ".join(lines))
        time.sleep(0.1)


def totals(count):
    return {kind: sum(counter.values()) for kind, counter in count.items()}

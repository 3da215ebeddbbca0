"""What exists on the host: mounts, links, rules, cgroups, processes, files.

Two counts of the same server at rest must be equal: blank slots may have been replaced by others
in between, so names differ, but there are as many of each kind as before. What other servers on this
host have, under the tag of six digits that tells servers apart, does not count; all else does.
"""

import ipaddress
import json
import os
import re
import stat
import subprocess
import time
from collections import Counter
from pathlib import Path

_NUMBER = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")


def kind_of(name):
    """A name without what makes it unique."""
    return _NUMBER.sub("#", name)


_TAGGED = re.compile(r"(?:osb|opensandbox[-_])([0-9a-f]{6})")


def tag_of(state_directory):
    """The tag of the server with this state directory."""
    value = 2166136261
    for byte in str(state_directory).encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return f"{(value ^ value >> 24) & 0xFFFFFF:06x}"


def _mounts(state_directory):
    """Files of ended sandboxes go behind the answer: another server's may still be on their way."""
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, right = line.rstrip("\n").split(" - ", 1)
            where = left.split()[4]
            if "/sandboxes/gone/" not in where or where.startswith(f"{state_directory}/"):
                yield f"{right.split()[0]} {kind_of(where)}"


def _ip(*argv):
    out = subprocess.run(["ip", "-j", *argv], capture_output=True, text=True, check=True).stdout
    return json.loads(out or "[]")


def _links():
    return (link["ifname"] for link in _ip("link"))


def _routes():
    for route in _ip("-4", "route"):
        yield f"{route.get('dev')} {route.get('dst')}"
    for route in _ip("-6", "route"):
        # Of a host's address only the end differs, and may have no digit.
        where = route.get("dst", "")
        yield f"{route.get('dev')} IPv6 {where if '/' in where or where == 'default' else 'address'}"


def _addresses():
    """Gateways on the loopback are named after their server: IPv4 addresses by their label, IPv6
    addresses because they hold its tag. What else is there is nobody's of ours."""
    for link in _ip("address"):
        for item in link["addr_info"]:
            whose = item.get("label", link["ifname"])
            if item["family"] == "inet6":
                parts = ipaddress.ip_address(item["local"]).exploded.split(":")
                if parts[:2] == ["fd6f", "7362"]:
                    whose = f"lo:osb{parts[2]}{parts[3][:2]}"
            if whose != "lo":
                yield f"{whose} {item['family']} {item['scope']}"


def _rules():
    out = subprocess.run(["nft", "-j", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
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
                if _TAGGED.search(path):
                    yield path


def _processes(executable, directory):
    """Processes of the executable that work for this directory, and all that run in a cgroup of a
    server but not in the host's pid namespace."""
    host = os.readlink("/proc/self/ns/pid")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != host:
                with open(f"/proc/{pid}/cgroup") as f:
                    server = _TAGGED.search(f.read())
                if server:
                    yield f"in a namespace of {server[0]}"
            elif os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)") == str(executable):
                with open(f"/proc/{pid}/cmdline", errors="replace") as f:
                    if directory in f.read():
                        yield "of the host"
        except OSError:
            continue


# A database's journal comes and goes with use, logs grow: neither is left behind by a sandbox.
_PASSING = re.compile(r"(-wal|-shm|-journal|\.log)$")
# The built-in image is made on its first use and kept, as is the list of images.
# So are some of the spawner's files, to be written to again.
_KEPT = re.compile(r"images/(host(/|$)|index\.json$)|spawner/journal\.spare/")
#: What slots that wait have or have not, as the images asked for last were: an image mounted ahead, an
#: overlay over the host's /usr. All else in a slot's directory counts, and the directory itself.
_AHEAD = re.compile(r"sandboxes/s[0-9a-f]+/(layer/)?(u2|w2|w2?/work(/incompat(/volatile(/dirty)?)?)?)$")


def files_of(directory):
    for path, directories, files in os.walk(directory):
        for name in directories + files:
            if _PASSING.search(name):
                continue
            full = os.path.join(path, name)
            below = os.path.relpath(full, directory)
            if _KEPT.match(below) or _AHEAD.match(below):
                continue
            try:
                mode = os.lstat(full).st_mode
            except OSError:
                continue
            yield f"{stat.filemode(mode)[0]} {kind_of(below)}"


def _count(names, tag):
    counter = Counter()
    for name in names:
        found = _TAGGED.search(name)
        if found and tag and found[1] != tag:
            continue
        counter[kind_of(name)] += 1
    return counter


def take(executable, state_directory, tag=None):
    """Counts everything once: {class: Counter of kinds}. With a tag, without other servers."""
    return {
        "mounts": Counter(_mounts(state_directory)),
        "links": _count(_links(), tag),
        "routes": _count(_routes(), tag),
        "addresses": _count(_addresses(), tag),
        "nft": _count(_rules(), tag),
        "cgroups": _count(_cgroups(), tag),
        "processes": _count(_processes(Path(executable).resolve(), str(Path(state_directory).parent)), tag),
        "files": Counter(files_of(state_directory)),
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


def settled(take_one, quiet=0.3, timeout=20.0):
    """A count that did not change for `quiet` seconds: pools refill and remove off the request path."""
    end = time.monotonic() + timeout
    last = take_one()
    while time.monotonic() < end:
        time.sleep(quiet)
        now = take_one()
        if not difference(last, now):
            return now
        last = now
    return last


def expect_equal(before, take_one, timeout=30.0):
    """Fails unless the count is back to `before` within `timeout` seconds."""
    end = time.monotonic() + timeout
    while True:
        lines = difference(before, take_one())
        if not lines:
            return
        if time.monotonic() >= end:
            raise AssertionError("left behind:\n  " + "\n  ".join(lines[:40]))
        time.sleep(0.1)


def totals(count):
    return {kind: sum(counter.values()) for kind, counter in count.items()}

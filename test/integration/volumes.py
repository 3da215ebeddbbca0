"""Directories from outside: who owns what is in them, and what stays."""

import os
import struct
import subprocess

import pytest

from support.server import HOST_IMAGE
from support.shell import eventually

TMPFS = "opensandbox.io/tmpfs"


@pytest.fixture(scope="module")
def shared(scratch):
    directory = scratch / "volumes-shared"
    directory.mkdir()
    return directory


@pytest.fixture(scope="module")
def server(make_server, shared):
    return make_server(sections={"storage": {"allowed_host_paths": [str(shared)]}})


def host(path, **fields):
    return {"name": "v", "mountPath": "/v", "host": {"path": str(path)}, **fields}


def claim(name, **fields):
    return {"name": "v", "mountPath": "/v", "pvc": {"claimName": name, **fields}}


def test_owners_are_the_same_on_both_sides(server, shared):
    (shared / "roots").write_text("root of the host\n")
    (shared / "users").write_text("user\n")
    os.chown(shared / "users", 1234, 1235)
    with server.create(volumes=[host(shared)]) as sandbox:
        assert sandbox.sh("stat -c %u:%g /v/roots /v/users") == "0:0\n1234:1235\n"
        sandbox.sh("echo inside > /v/made; echo more >> /v/roots; touch /v/given; chown 33:44 /v/given")
        sandbox.sh("chmod 600 /v/users; rm /v/users")
    made, given = os.stat(shared / "made"), os.stat(shared / "given")
    assert (made.st_uid, made.st_gid) == (0, 0)
    assert (given.st_uid, given.st_gid) == (33, 44)
    assert (shared / "roots").read_text() == "root of the host\nmore\n"
    assert not (shared / "users").exists()


def test_what_is_read_only_stays_as_it_is(server, shared):
    (shared / "fixed").write_text("x\n")
    with server.create(volumes=[host(shared, readOnly=True)]) as sandbox:
        assert sandbox.sh("cat /v/fixed") == "x\n"
        for attempt in ("echo y > /v/fixed", "rm /v/fixed", "touch /v/new", "mount -o remount,rw /v"):
            assert sandbox.run(attempt).code != 0, attempt
    assert (shared / "fixed").read_text() == "x\n"


def test_a_part_of_a_volume(server, shared):
    (shared / "a" / "b").mkdir(parents=True)
    (shared / "a" / "b" / "file").write_text("deep\n")
    (shared / "a" / "out").symlink_to("/etc")
    with server.create(volumes=[host(shared, subPath="a/b")]) as sandbox:
        assert sandbox.sh("ls /v; cat /v/file") == "file\ndeep\n"
    body = {**HOST_IMAGE, "volumes": [host(shared, subPath="a/out")]}
    reply = server.api().post("/sandboxes", body)
    assert reply.status == 400 and reply.json["code"].startswith("VOLUME::"), reply


def test_a_named_volume_is_shared_and_outlives_sandboxes(server):
    with server.create(volumes=[claim("team")]) as one, server.create(volumes=[claim("team")]) as two:
        one.sh("echo from one > /v/note; install -o 1000 -g 1000 -m 600 /dev/null /v/private")
        assert two.sh("cat /v/note; stat -c %u /v/private") == "from one\n1000\n"
        two.sh("echo from two >> /v/note")
        assert one.sh("cat /v/note") == "from one\nfrom two\n"
    with server.create(volumes=[claim("team")]) as later:
        assert later.sh("cat /v/note") == "from one\nfrom two\n"
    own = claim("passing", deleteOnSandboxTermination=True)
    with server.create(volumes=[own]) as sandbox:
        sandbox.sh("echo x > /v/x")
        assert (server.state / "volumes" / "passing" / "x").exists()
    eventually(lambda: not (server.state / "volumes" / "passing").exists(), 10)
    assert (server.state / "volumes" / "team").exists()


def test_programs_of_a_volume_get_no_rights_by_it(server, shared):
    (shared / "set-id").write_bytes(open("/bin/true", "rb").read())
    os.chmod(shared / "set-id", 0o6755)
    os.mknod(shared / "null", 0o20666, os.makedev(1, 3))
    try:
        with server.create(volumes=[host(shared)]) as sandbox:
            options = [line for line in sandbox.sh("cat /proc/mounts").splitlines() if " /v " in line]
            assert "nosuid" in options[0] and "nodev" in options[0]
            assert sandbox.run("cat /v/null").code != 0
    finally:
        (shared / "null").unlink()


NOBODY = 65534
CAPABILITY = "security.capability"
#: Every capability, permitted and effective: version 2, as root of the host would write it.
ALL_CAPABILITIES = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0x1FF, 0)
#: Calls that the C library has no function for, by their numbers on x86-64.
CALL = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*given):
    if libc.syscall(*given) < 0:
        raise OSError(ctypes.get_errno(), "call")
"""
#: Ways to give /v/id rights of its owner, each with what it begins with.
WAYS = {
    "chmod": "chmod 4755 /v/id",
    "chmod, group": "chmod 2755 /v/id",
    "chmod, another owner": "chown 1000:1000 /v/id; chmod 6755 /v/id",
    "its own owner": "chown 1000:1000 /v/id; setpriv --reuid=1000 --regid=1000 --clear-groups chmod 6755 /v/id",
    "below another root": "python3 -c 'import os; os.chroot(\"/v\"); os.chdir(\"/\"); os.chmod(\"/id\", 0o4755)'",
    "below another root, from there": "cd /v; python3 -c 'import os; os.chroot(\"/v\"); os.chmod(\"id\", 0o4755)'",
    "fchmod": "python3 -c 'import os; os.fchmod(os.open(\"/v/id\", os.O_RDONLY), 0o6755)'",
    "fchmodat": "cd /v; python3 -c 'import os; os.chmod(\"id\", 0o4755, dir_fd=os.open(\".\", os.O_RDONLY))'",
    "fchmodat2": f"python3 -c '{CALL}call(452, -100, b\"/v/id\", 0o4755, 0x100)'",
    "a link": "ln -s /v/id /usr/local/link; chmod 4755 /usr/local/link",
    "a descriptor's name": "python3 -c 'import os; f = os.open(\"/v/id\", 0); os.chmod(f\"/proc/self/fd/{f}\", 0o4755)'",
    "install": "install -m 6755 /usr/bin/id /v/id",
    "open": "rm /v/id; python3 -c 'import os; os.umask(0); os.write(os.open(\"/v/id\", 65, 0o6755), open(\"/usr/bin/id\", \"rb\").read())'",
    "openat2": f"rm /v/id; python3 -c '{CALL}how = struct.pack(\"QQQ\", 65, 0o6755, 0); call(437, -100, b\"/v/id\", how, 24)'",
    "mknod": "rm /v/id; python3 -c 'import os; os.umask(0); os.mknod(\"/v/id\", 0o106755)'; cat /usr/bin/id > /v/id",
    "a move": "cp /usr/bin/id /id; chmod 4755 /id; mv /id /v/id",
    "a copy": "cp /usr/bin/id /id; chmod 4755 /id; cp -a /id /v/id",
    "tar": "cp /usr/bin/id /id; chmod 6755 /id; tar -C / -cf /x.tar id; rm /v/id; tar -C /v -xpf /x.tar",
    "capabilities": "python3 -c 'import os; os.setxattr(\"/v/id\", \"security.capability\", bytes.fromhex(\"CAPS\"))'",
    "capabilities, open file": "python3 -c 'import os; os.setxattr(os.open(\"/v/id\", 2), \"security.capability\", bytes.fromhex(\"CAPS\"))'",
    "capabilities, another's": "chown 1000 /v/id; python3 -c 'import os; os.setxattr(\"/v/id\", \"security.capability\", bytes.fromhex(\"CAPS\"), follow_symlinks=False)'",
}


def as_nobody(directory, *argv):
    """A user of the host who has nothing, standing in the directory."""
    done = subprocess.run(argv, cwd=directory, user=NOBODY, group=NOBODY, extra_groups=[], text=True,
                          capture_output=True)
    return done.stdout.strip()


def rights_of(path):
    """What of it gives rights to who runs it."""
    mode = os.stat(path).st_mode & 0o6000
    return ([oct(mode)] if mode else []) + [name for name in os.listxattr(path) if name == CAPABILITY]


@pytest.fixture(scope="module")
def with_place(server, shared):
    """A sandbox and its volume, reached by users of the host."""
    place = shared / "rights"
    place.mkdir()
    with server.create(volumes=[host(place)]) as sandbox:
        yield sandbox, place


@pytest.mark.parametrize("way", WAYS)
def test_nothing_that_a_sandbox_writes_gives_users_of_the_host_rights(with_place, way):
    sandbox, place = with_place
    sandbox.sh("rm -rf /v/* /id /x.tar /usr/local/link; cp /usr/bin/id /v/id; chmod 755 /v/id")
    done = sandbox.run(WAYS[way].replace("CAPS", ALL_CAPABILITIES.hex()))
    words = done.stderr + done.stdout
    assert "not permitted" in words or "Error" in words, done
    for file in place.iterdir():
        assert rights_of(file) == [], (file, oct(file.stat().st_mode))
    if (place / "id").exists() and (place / "id").stat().st_size:
        os.chmod(place / "id", os.stat(place / "id").st_mode & 0o6777 | 0o755)
        assert as_nobody(place, "./id", "-u") in (str(NOBODY), ""), way
        assert as_nobody(place, "./id", "-g") in (str(NOBODY), ""), way


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("open", "openat2", "mknod")])
def test_each_way_leads_there_where_it_may(with_place, way):
    """The control of the test above, with a directory of the sandbox's own."""
    sandbox, _ = with_place
    sandbox.sh("rm -rf /w /id /x.tar /usr/local/link; mkdir /w; cp /usr/bin/id /w/id; chmod 755 /w/id")
    command = WAYS[way].replace("CAPS", ALL_CAPABILITIES.hex()).replace("/v", "/w")
    sandbox.sh(command)
    look = "import os; print(os.stat('/w/id').st_mode & 0o6000, os.listxattr('/w/id'))"
    found = sandbox.sh(f'python3 -c "{look}"')
    assert not found.startswith("0 ") or CAPABILITY in found, found


def test_a_refusal_is_told_and_the_mode_stays(with_place):
    sandbox, place = with_place
    sandbox.sh("rm -rf /v/*; touch /v/f; chmod 640 /v/f")
    refused = sandbox.run("chmod 4755 /v/f")
    assert refused.code != 0 and "not permitted" in refused.stderr + refused.stdout
    assert os.stat(place / "f").st_mode & 0o7777 == 0o640
    # What lends no rights goes on: other modes, attributes, whose group new files are of.
    sandbox.sh("chmod 1777 /v/f; chmod 755 /v/f; mkdir /v/d; chmod 2775 /v/d; chown 1000:1001 /v/f")
    sandbox.sh("python3 -c 'import os; os.setxattr(\"/v/f\", \"user.note\", b\"x\")'")
    assert os.stat(place / "d").st_mode & 0o7777 == 0o2775
    assert os.getxattr(place / "f", "user.note") == b"x"
    assert (os.stat(place / "f").st_uid, os.stat(place / "f").st_gid) == (1000, 1001)


def test_no_isolated_session_gets_round_it(with_place):
    sandbox, _ = with_place
    told = sandbox.agent.get("/v1/isolated/capabilities").json
    assert told["available"] is False and "directory of the host" in told["message"], told
    reply = sandbox.agent.post("/v1/isolated/session", {"workspace": {"path": "/v", "mode": "rw"}})
    assert (reply.status, reply.json["code"]) == (503, "NOT_SUPPORTED"), reply


def test_files_of_the_sandboxs_own_get_such_modes_as_package_managers_ask_for(with_place):
    sandbox, _ = with_place
    set_capabilities = f"os.setxattr(\"/o/id\", \"{CAPABILITY}\", bytes.fromhex(\"{ALL_CAPABILITIES.hex()}\"))"
    sandbox.sh("rm -rf /o; mkdir /o; cp /usr/bin/id /o/id; chmod 6755 /o/id; install -m 4711 /bin/true /o/true")
    assert sandbox.sh("stat -c %a /o/id /o/true") == "6755\n4711\n"
    sandbox.sh("cd /o; tar -cf x.tar id; rm id; tar -xpf x.tar; chmod 2755 true")
    assert sandbox.sh("stat -c %a /o/id /o/true; rm -f /usr/s; cp /bin/true /usr/s; chmod 4755 /usr/s; stat -c %a /usr/s") \
        == "6755\n2755\n4755\n"
    sandbox.sh(f"python3 -c 'import os; {set_capabilities}; assert os.getxattr(\"/o/id\", \"{CAPABILITY}\")'")
    # The calls are made for whoever makes them, with no other rights than his.
    user = "setpriv --reuid=1000 --regid=1000 --clear-groups "
    assert sandbox.run(user + "chmod 4755 /o/true").code != 0
    sandbox.sh("chown 1000:1000 /o/true; " + user + "chmod 6755 /o/true")
    assert sandbox.sh("stat -c %a:%u /o/true") == "6755:1000\n"
    sandbox.sh("mkdir -m 700 /o/shut; cp /bin/true /o/shut/; chown 1000 /o/shut/true")
    assert sandbox.run(user + "chmod 4755 /o/shut/true").code != 0
    assert sandbox.run("setpriv --bounding-set=-fowner --inh-caps=-fowner python3 -c "
                       "'import os; os.chmod(\"/o/true\", 0o4700)'").code != 0


def test_a_file_system_in_memory_has_its_size_and_counts_as_memory(server):
    extensions = {TMPFS: "/scratch=8Mi,/var/cache/deep=1Mi"}
    with server.create(extensions=extensions) as sandbox:
        assert "tmpfs" in sandbox.sh("stat -f -c %T /scratch")
        done = sandbox.run("dd if=/dev/zero of=/scratch/fill bs=1M")
        assert "No space left" in done.stdout + done.stderr
        assert sandbox.sh("stat -c %s /scratch/fill") == f"{8 << 20}\n"
        assert sandbox.sh("stat -c %a /var/cache/deep") == "1777\n"
        options = [line for line in sandbox.sh("cat /proc/mounts").splitlines() if " /scratch " in line]
        assert "nosuid" in options[0] and "nodev" in options[0]
    # What lies there cannot be freed: with the memory full of it, the sandbox ends.
    fill = ["dd", "if=/dev/zero", "of=/scratch/fill", "bs=1M"]
    with server.create(
        entrypoint=fill, extensions={TMPFS: "/scratch=512Mi"}, resourceLimits={"memory": "64Mi"}
    ) as small:
        status = eventually(small.ended, 60, 0.1, "the end of the sandbox")
        assert (status["state"], status["reason"]) == ("Failed", "OOM_KILLED"), status


@pytest.mark.parametrize("value", ["/a", "a=1Mi", "/proc/x=1Mi", "/a=1", "/a/../b=1Mi", "/a=1Mi,/a=1Mi"])
def test_wrong_places_in_memory_are_named(server, value):
    reply = server.api().post("/sandboxes", {**HOST_IMAGE, "extensions": {TMPFS: value}})
    assert (reply.status, reply.json["code"]) == (400, "SANDBOX::INVALID_PARAMETER"), reply
    assert TMPFS in reply.json["message"]

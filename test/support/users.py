"""An ordinary user of the test's own, with a home directory and subordinate ids."""

import os
import pwd
import shlex
import shutil
import stat
from pathlib import Path

from support.shell import eventually, run


class User:
    """`with User() as user`: made by root, and gone afterwards with all that runs under its ids."""

    def __init__(self, name="osbtest"):
        self.name = f"{name}{os.getpid()}"

    def __enter__(self):
        self.home = Path(f"/var/tmp/{self.name}")
        run("useradd", "--create-home", "--home-dir", self.home, "--shell", "/bin/sh", self.name)
        entry = pwd.getpwnam(self.name)
        self.uid, self.gid = entry.pw_uid, entry.pw_gid
        self.first_subordinate, self.subordinates = self._range()
        return self

    def __exit__(self, *_):
        def gone():
            left = self.processes()
            for pid in left:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            return not left

        eventually(gone, 20, 0.1, f"the end of the processes of {self.name}")
        run("userdel", self.name, check=False)
        shutil.rmtree(self.home, ignore_errors=True)

    def _range(self):
        for line in Path("/etc/subuid").read_text().splitlines():
            name, first, count = line.split(":")
            if name == self.name:
                return int(first), int(count)
        raise AssertionError(f"useradd gave {self.name} no subordinate ids")

    def owns(self, uid):
        """Whether an id of the host is this user's."""
        return uid == self.uid or 0 <= uid - self.first_subordinate < self.subordinates

    def processes(self):
        """All processes that run under the ids of this user."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if self.owns(os.stat(f"/proc/{pid}").st_uid):
                    found.append(int(pid))
            except OSError:
                continue
        return found

    def credentials(self):
        """For subprocess: run as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def named(self, prefix):
        """Those of its processes whose name begins so."""
        found = []
        for pid in self.processes():
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                if Path(f"/proc/{pid}/comm").read_text().startswith(prefix) and state != "Z":
                    found.append(pid)
            except OSError:
                continue
        return found

    def copy(self, path):
        """A copy of a file that this user can read, in its home."""
        target = self.home / Path(path).name
        shutil.copy(path, target)
        os.chown(target, self.uid, self.gid)
        return target


def tun_device(path, mode):
    """A node like /dev/net/tun, which may be opened by everybody on some machines and not on others."""
    path.unlink(missing_ok=True)
    os.mknod(path, stat.S_IFCHR, os.makedev(10, 200))
    path.chmod(mode)
    return path


class Launched(User):
    """One whose programs root starts, who prepares their mounts."""

    def credentials(self):
        return {}

    def launcher(self, binds, *before):
        """A command that becomes a program of this user's, behind `before` if need be; it sees the first
        of each pair of files in place of the second."""
        mounts = [f"mount --bind {shlex.quote(str(file))} {shlex.quote(str(at))}" for file, at in binds]
        become = f'exec setpriv --reuid={self.uid} --regid={self.gid} --clear-groups "$@"'
        return [*before, "unshare", "--mount", "sh", "-c", " && ".join([*mounts, become]), "sh"]

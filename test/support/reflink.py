"""A file system that shares the blocks of copies, in a file, mounted by a loop device."""

import subprocess
import time
from pathlib import Path

from support.shell import run


class ReflinkFileSystem:
    """XFS in a sparse file below `directory`; `path` is where it is mounted."""

    def __init__(self, directory, gigabytes=8):
        self.directory = Path(directory)
        self.path = self.directory / "reflink"
        self._file = self.directory / "reflink.img"
        self._gigabytes = gigabytes

    def __enter__(self):
        self.path.mkdir(parents=True)
        with self._file.open("wb") as file:
            file.truncate(self._gigabytes << 30)
        run("mkfs.xfs", "-q", "-m", "reflink=1", self._file)
        run("mount", "-o", "loop", self._file, self.path)
        return self

    def __exit__(self, *_):
        for _ in range(100):
            if subprocess.run(["umount", self.path], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        else:
            run("umount", "-l", self.path)
        self._file.unlink()
        self.path.rmdir()

    def used(self):
        """Bytes of data that are on the disk."""
        run("sync", "-f", self.path)
        out = run("df", "--output=used", "-B1", self.path).stdout
        return int(out.split()[1])

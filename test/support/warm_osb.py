"""The published `osb`, loaded once: each call is a fork that runs its own entry point on its own
environment, arguments and streams. Starting Python anew for each takes most of a second.

As a program: reads one request a line and answers with the exit code."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


class WarmOsb:
    def __init__(self, environment):
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1"})

    def run(self, argv, environment, input=None, cwd="."):
        """As support.shell.run()."""
        with tempfile.TemporaryDirectory() as directory:
            streams = [Path(directory) / name for name in ("in", "out", "err")]
            streams[0].write_text(input or "")
            self.process.stdin.write(json.dumps([argv, environment, [str(s) for s in streams], str(cwd)]) + "\n")
            self.process.stdin.flush()
            code = int(self.process.stdout.readline())
            out, err = (s.read_text() for s in streams[1:])
        return subprocess.CompletedProcess(["osb", *argv], code, out, err)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def _serve():
    import opensandbox.manager  # noqa: F401
    import opensandbox.sync.manager  # noqa: F401
    import opensandbox.sync.sandbox  # noqa: F401
    from opensandbox_cli.main import cli

    for line in sys.stdin:
        argv, environment, streams, cwd = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 70
            try:
                for number, path in enumerate(streams):
                    flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
                    os.dup2(os.open(path, flags, 0o600), number)
                sys.stdin = open(0, closefd=False)
                os.chdir(cwd)
                os.environ.clear()
                os.environ.update(environment)
                try:
                    cli.main(args=argv, prog_name="osb")
                    code = 0
                except SystemExit as end:
                    code = end.code or 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code if isinstance(code, int) else 1)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()

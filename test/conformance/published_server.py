"""Our agent in the published server's hands: the published SDK works through that server as it does
through ours, with the same tests."""

import pytest
from code_interpreter import CodeInterpreter
from opensandbox.models.isolated import CreateIsolatedSessionRequest, IsolatedWorkspaceSpec

from conformance.lifecycle_sdk import *  # noqa: F401, F403
from conformance.python_sdk import *  # noqa: F401, F403
from conformance.python_sdk import with_sandbox

pytestmark = pytest.mark.parametrize("server", ["published"], indirect=True)


def test_code_runs_without_jupyter(server, use_server_proxy):
    async def scenario(sandbox):
        interpreter = await CodeInterpreter.create(sandbox, skip_health_check=True)
        codes = interpreter.codes
        for language, first, second, shown in (
            ("python", "x = 40", "print(x + 2)", "42\n"), ("bash", "x=40", "echo $((x + 2))", "42\n"),
        ):
            context = await codes.create_context(language)
            assert (await codes.run(first, context=context)).error is None
            done = await codes.run(second, context=context)
            assert "".join(m.text for m in done.logs.stdout) == shown
        await interpreter.aclose()

    with_sandbox(server, use_server_proxy, scenario)


def test_isolated_executions_where_the_container_may_make_namespaces(server, use_server_proxy):
    async def scenario(sandbox):
        can = await sandbox.isolation.capabilities()
        assert can.available, can.message
        await sandbox.commands.run("mkdir /work && echo kept > /work/file")
        session = await sandbox.isolation.create(
            CreateIsolatedSessionRequest(workspace=IsolatedWorkspaceSpec(path="/work", mode="overlay")))
        done = await session.run("cat /work/file; echo changed > /work/file; cat /work/file; exit 4")
        assert done.text == "kept\nchanged" and done.exit_code == 4
        assert await sandbox.files.read_file("/work/file") == "kept\n"
        await session.delete()

    with_sandbox(server, use_server_proxy, scenario, extensions={"bootstrap.execd.isolation": "enable"})

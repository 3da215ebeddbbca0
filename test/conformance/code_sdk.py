"""The published code interpreter client, unmodified, against our server: once with the agent's own
drivers, once with a real Jupyter server inside the sandbox."""

import asyncio
import time

import pytest
from code_interpreter import CodeInterpreter, CodeInterpreterSync
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.execd import ExecutionHandlers
from opensandbox.models.execd_sync import ExecutionHandlersSync
from opensandbox.sync import SandboxSync

from support import jupyter
from support.sdk_connection import config_for

# The interpreters are the same wherever a sandbox runs.
pytestmark = pytest.mark.parametrize("server", ["native"], indirect=True)


@pytest.fixture(scope="module")
def packed_jupyter(scratch):
    path = jupyter.archive(scratch / "jupyter.tar")
    yield path
    path.unlink()


@pytest.fixture(scope="module", params=["drivers", "jupyter"])
def shared_box(request, server):
    """One sandbox for the tests of one kind of runtime."""
    with_jupyter = request.param == "jupyter"
    fields = {"env": jupyter.ENVIRONMENT} if with_jupyter else {}
    limits = {"cpu": "2", "memory": "2Gi"}
    with server.create(resourceLimits=limits, **fields) as sandbox:
        sandbox.with_jupyter = with_jupyter
        if with_jupyter:
            jupyter.start(sandbox, request.getfixturevalue("packed_jupyter"))
        yield sandbox


@pytest.fixture
def box(shared_box):
    """The sandbox, without contexts before and after."""
    yield shared_box
    for language in ("python", "bash", "javascript"):
        assert shared_box.agent.delete("/code/contexts", query={"language": language}).status == 200


def with_codes(box, scenario, use_server_proxy=False):
    """Runs an asynchronous scenario with the SDK's code service."""

    async def run():
        config = config_for(box.server, use_server_proxy=use_server_proxy)
        sandbox = await Sandbox.connect(box.id, connection_config=config)
        # Its health check looks for Jupyter's port: right only where there is one.
        interpreter = await CodeInterpreter.create(sandbox, skip_health_check=not box.with_jupyter)
        try:
            await scenario(interpreter.codes)
        finally:
            await interpreter.aclose()
            await sandbox.close()

    asyncio.run(run())


def stdout_of(execution):
    return "".join(m.text for m in execution.logs.stdout)


def stderr_of(execution):
    return "".join(m.text for m in execution.logs.stderr)


@pytest.mark.parametrize("proxy", [False, True], ids=["direct", "proxy"])
def test_a_python_context_keeps_its_state(box, proxy):
    async def scenario(codes):
        context = await codes.create_context("python")
        assert context.id and context.language == "python"
        made = await codes.run("x = 40\ndef twice(n):\n    return 2 * n", context=context)
        assert made.error is None and made.complete is not None and made.result == []
        assert made.id == context.id
        answer = await codes.run("x += 2\ntwice(x)", context=context)
        assert [r.text for r in answer.result] == ["84"]
        assert answer.execution_count >= 1 and stdout_of(answer) == ""
        printed = await codes.run("import sys\nprint('out', x)\nprint('err', file=sys.stderr)",
                                  context=context)
        assert stdout_of(printed) == "out 42\n" and stderr_of(printed) == "err\n"
        other = await codes.create_context("python")
        assert other.id != context.id
        unknown = await codes.run("x", context=other)
        assert unknown.error.name == "NameError" and unknown.complete is None

    with_codes(box, scenario, proxy)


def test_errors_come_once_with_their_traceback(box):
    async def scenario(codes):
        context = await codes.create_context("python")
        seen = []
        handlers = ExecutionHandlers(on_error=lambda e: collect(seen, e))
        failed = await codes.run("print('before')\n1 / 0", context=context, handlers=handlers)
        assert stdout_of(failed) == "before\n" and failed.complete is None
        assert failed.error.name == "ZeroDivisionError"
        assert failed.error.value == "division by zero"
        assert any("ZeroDivisionError" in line for line in failed.error.traceback)
        assert len(seen) == 1
        wrong = await codes.run("this is no python", context=context)
        assert wrong.error.name == "SyntaxError"
        assert [r.text for r in (await codes.run("1 + 1", context=context)).result] == ["2"]

    with_codes(box, scenario)


async def collect(into, item):
    into.append(item)


def test_output_comes_while_the_code_runs(box):
    async def scenario(codes):
        context = await codes.create_context("python")
        path = f"/tmp/go-{context.id}"
        seen = []

        async def on_stdout(message):
            seen.append(message.text)
            if "first" in message.text:
                # The code waits for this file: its output comes while it runs, or never ends.
                box.agent.write(path, "go")

        done = await codes.run(
            "import os, time\nprint('first', flush=True)\n"
            f"while not os.path.exists({path!r}): time.sleep(0.02)\nprint('last')",
            context=context, handlers=ExecutionHandlers(on_stdout=on_stdout),
        )
        assert done.error is None and "".join(seen) == "first\nlast\n"

    with_codes(box, scenario)


def test_languages_have_a_default_context_each(box):
    async def scenario(codes):
        await codes.run("kept = 'py'", language="python")
        await codes.run("kept=sh", language="bash")
        await codes.run("var kept = 'js'", language="javascript")
        assert [r.text for r in (await codes.run("kept", language="python")).result] == ["'py'"]
        assert stdout_of(await codes.run("echo $kept", language="bash")) == "sh\n"
        shown = await codes.run("kept + kept.length", language="javascript")
        assert [r.text.strip("'\"") for r in shown.result] == ["js2"]
        for language in ("python", "bash", "javascript"):
            assert [c.language for c in await codes.list_contexts(language)] == [language]

    with_codes(box, scenario)


def test_contexts_are_listed_got_and_deleted(box):
    async def scenario(codes):
        assert await codes.list_contexts("python") == []
        made = [await codes.create_context("python") for _ in range(2)]
        bash = await codes.create_context("bash")
        listed = await codes.list_contexts("python")
        assert {c.id for c in listed} == {c.id for c in made}
        assert (await codes.get_context(bash.id)).language == "bash"
        await codes.delete_context(made[0].id)
        with pytest.raises(SandboxApiException) as missing:
            await codes.get_context(made[0].id)
        assert missing.value.status_code == 404
        with pytest.raises(SandboxException):
            await codes.run("1", context=made[0])
        assert [c.id for c in await codes.list_contexts("python")] == [made[1].id]
        await codes.delete_contexts("python")
        assert await codes.list_contexts("python") == []
        assert [c.id for c in await codes.list_contexts("bash")] == [bash.id]

    with_codes(box, scenario)


def test_an_interrupt_ends_the_run_and_keeps_the_context(box):
    async def scenario(codes):
        context = await codes.create_context("python")
        await codes.run("kept = 7", context=context)

        async def on_stdout(message):
            await codes.interrupt(context.id)

        stopped = await asyncio.wait_for(
            codes.run("print('running', flush=True)\nwhile True: pass", context=context,
                      handlers=ExecutionHandlers(on_stdout=on_stdout)),
            timeout=60,
        )
        assert stopped.error.name == "KeyboardInterrupt" and stopped.complete is None
        assert [r.text for r in (await codes.run("kept", context=context)).result] == ["7"]

    with_codes(box, scenario)


def test_contexts_run_side_by_side(box):
    async def scenario(codes):
        contexts = [await codes.create_context("python") for _ in range(3)]
        # Each waits for the file of the one before: none may have to wait for another's end.
        stem = f"/tmp/side-{contexts[0].id}"
        code = (
            "import os, time\nopen(f'{stem}-{n}', 'w').close()\n"
            "while not all(os.path.exists(f'{stem}-{i}') for i in range(3)): time.sleep(0.02)\n"
            "print(n)"
        )
        done = await asyncio.wait_for(
            asyncio.gather(*(
                codes.run(f"stem, n = {stem!r}, {n}\n{code}", context=context)
                for n, context in enumerate(contexts)
            )),
            timeout=60,
        )
        assert [stdout_of(d) for d in done] == ["0\n", "1\n", "2\n"]

    with_codes(box, scenario)


def test_much_output_arrives_whole(box):
    # A Jupyter server drops what passes its own limit of a megabyte a second.
    count = 5000 if box.with_jupyter else 200_000

    async def scenario(codes):
        context = await codes.create_context("python")
        done = await codes.run(f"for i in range({count}): print(i, 'x' * 60)", context=context)
        lines = stdout_of(done).splitlines()
        assert len(lines) == count and lines[-1] == f"{count - 1} {'x' * 60}"
        assert done.complete is not None

    with_codes(box, scenario)


def test_unknown_languages_are_refused(box):
    async def scenario(codes):
        began = time.monotonic()
        with pytest.raises(SandboxException):
            await codes.create_context("cobol")
        with pytest.raises(SandboxException):
            await codes.run("1", language="cobol")
        assert time.monotonic() - began < 30

    with_codes(box, scenario)


def test_a_context_begins_in_its_directory(box):
    made = box.agent.post("/code/context", {"language": "python", "cwd": "/var/tmp/of/context"})
    assert made.status == 200 and made.json["cwd"] == "/var/tmp/of/context"
    body = {"code": "import os; os.getcwd()", "context": {"id": made.json["id"]}}
    events = list(box.agent.events(body, path="/code"))
    assert events[0]["type"] == "init" and events[0]["text"] == made.json["id"]
    results = [e["results"] for e in events if e["type"] == "result"]
    assert results == [{"text": "'/var/tmp/of/context'"}]


def test_displayed_objects_keep_their_forms(box):
    """What a plot or a table is displayed as; the drivers have the repr of the last expression."""
    if box.with_jupyter:
        code = "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))\n5"
    else:
        code = "5"
    made = box.agent.post("/code/context", {"language": "python"})
    body = {"code": code, "context": {"id": made.json["id"]}}
    results = [e["results"] for e in box.agent.events(body, path="/code") if e["type"] == "result"]
    if box.with_jupyter:
        assert results.pop(0)["text/html"] == "<b>x</b>"
    assert results == [{"text": "5"}]


@pytest.mark.parametrize("proxy", [False, True], ids=["direct", "proxy"])
def test_synchronous_client(box, proxy):
    config = config_for(box.server, proxy, ConnectionConfigSync)
    sandbox = SandboxSync.connect(box.id, connection_config=config)
    interpreter = CodeInterpreterSync.create(sandbox, skip_health_check=not box.with_jupyter)
    try:
        codes = interpreter.codes
        assert codes.ping()
        context = codes.create_context("python")
        seen = []
        done = codes.run("print('hi')\n2 + 2", context=context,
                         handlers=ExecutionHandlersSync(on_stdout=lambda m: seen.append(m.text)))
        assert "".join(seen) == "hi\n" and [r.text for r in done.result] == ["4"]
        failed = codes.run("raise ValueError('no')", context=context)
        assert (failed.error.name, failed.error.value) == ("ValueError", "no")
        assert codes.get_context(context.id).language == "python"
        assert [c.id for c in codes.list_contexts("python")] == [context.id]
        codes.delete_context(context.id)
        assert codes.list_contexts("python") == []
    finally:
        interpreter.close()
        sandbox.close()

"""The published Python SDK, unmodified, against our server: asynchronous and synchronous, directly
and by way of the server."""

import asyncio
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from opensandbox import Sandbox, SandboxManager
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.execd import ExecutionHandlers, RunCommandOpts
from opensandbox.models.execd_sync import ExecutionHandlersSync
from opensandbox.models.filesystem import (
    ContentReplaceEntry, DirectoryListEntry, MoveEntry, SearchEntry, SetPermissionEntry, WriteEntry,
)
from opensandbox.models.sandboxes import SandboxFilter
from opensandbox.sync import SandboxManagerSync, SandboxSync

from support.sdk_connection import config_for

PROXY = [False, True]
BY = {False: "direct", True: "proxy"}


@pytest.fixture(params=PROXY, ids=BY.get)
def use_server_proxy(request):
    return request.param


def with_sandbox(server, use_server_proxy, scenario, **options):
    """Runs an asynchronous scenario with a sandbox made by the SDK, and kills it."""

    async def run():
        sandbox = await Sandbox.create(
            server.image, connection_config=config_for(server, use_server_proxy), **options
        )
        try:
            await scenario(sandbox)
        finally:
            await sandbox.kill()
            await sandbox.close()

    asyncio.run(run())


def test_create_info_and_kill(server, use_server_proxy):
    async def scenario(sandbox):
        assert await sandbox.is_healthy()
        info = await sandbox.get_info()
        assert info.id == sandbox.id and info.status.state == "Running"
        assert info.image.image == server.image
        assert info.metadata == {"team": "x"}
        assert info.entrypoint == ["tail", "-f", "/dev/null"]
        assert timedelta(minutes=9) < info.expires_at - datetime.now(timezone.utc) <= timedelta(minutes=10)
        hello = await sandbox.commands.run("echo $GREETING")
        assert hello.text == "hi"

    with_sandbox(server, use_server_proxy, scenario, metadata={"team": "x"}, env={"GREETING": "hi"})


def test_output_is_streamed_and_the_exit_code_known(server, use_server_proxy):
    async def scenario(sandbox):
        seen, errors, begun, ended = [], [], [], []

        async def on_stdout(message):
            seen.append(message.text)
            if message.text == "first\n":
                # The command waits for this file: output comes while it runs, or never ends.
                await sandbox.files.write_file("/tmp/go", "go")

        async def collect(into, message):
            into.append(message)

        handlers = ExecutionHandlers(
            on_stdout=on_stdout,
            on_stderr=lambda m: collect(errors, m.text),
            on_init=lambda m: collect(begun, m),
            on_execution_complete=lambda m: collect(ended, m),
        )
        done = await sandbox.commands.run(
            "echo first; until [ -e /tmp/go ]; do sleep 0.02; done; echo err >&2; printf 'last'",
            handlers=handlers,
        )
        assert seen == ["first\n", "last"] and errors == ["err\n"]
        assert done.exit_code == 0 and done.error is None and done.complete is not None
        assert len(begun) == 1 and len(ended) == 1 and begun[0].id == done.id
        assert done.text == "first\nlast"

        failed = await sandbox.commands.run("echo out; exit 42")
        assert failed.exit_code == 42 and failed.error.value == "42" and failed.complete is None
        assert failed.text == "out"

        literal = await sandbox.commands.run(["printf", "%s|", "$HOME", "a b"])
        assert literal.text == "$HOME|a b|"

    with_sandbox(server, use_server_proxy, scenario)


def test_run_options(server):
    async def scenario(sandbox):
        async def run(command, **options):
            return await sandbox.commands.run(command, opts=RunCommandOpts(**options))

        assert (await run("pwd", working_directory="/usr")).text == "/usr"
        assert (await run("echo $A", envs={"A": "with 'quotes' and $x"})).text == "with 'quotes' and $x"
        assert (await run("id -u; id -g", uid=1234, gid=4321)).text == "1234\n4321"
        timed = await run("sleep 1000", timeout=timedelta(milliseconds=200))
        assert timed.exit_code == -1 and timed.error is not None
        with pytest.raises(SandboxException):
            await run("true", working_directory="/no/such")

    with_sandbox(server, False, scenario)


def test_background_status_logs_and_interrupt(server, use_server_proxy):
    async def scenario(sandbox):
        commands = sandbox.commands
        started = await commands.run(
            "echo one; echo two >&2; sleep 1000", opts=RunCommandOpts(background=True)
        )
        assert started.id and started.exit_code is None
        status = await commands.get_command_status(started.id)
        assert status.running is True and status.content.startswith("echo one")
        logs = await commands.get_background_command_logs(started.id)
        while "two" not in logs.content:
            await asyncio.sleep(0.02)
            logs = await commands.get_background_command_logs(started.id)
        assert logs.content == "one\ntwo\n"
        again = await commands.get_background_command_logs(started.id, cursor=logs.cursor)
        assert again.content == "" and again.cursor == logs.cursor
        await commands.interrupt(started.id)
        while (status := await commands.get_command_status(started.id)).running:
            await asyncio.sleep(0.02)
        assert status.exit_code == -1 and status.finished_at >= status.started_at
        quick = await commands.run("exit 3", opts=RunCommandOpts(background=True))
        while (status := await commands.get_command_status(quick.id)).running:
            await asyncio.sleep(0.02)
        assert status.exit_code == 3

    with_sandbox(server, use_server_proxy, scenario)


def test_set_env_reaches_later_commands(server):
    async def scenario(sandbox):
        for value in ("plain", "it's quoted", 'of "two" kinds', "two\nlines", "literal $HOME"):
            await sandbox.commands.set_env("LATER", value)
            assert (await sandbox.commands.run('printf %s "$LATER"')).text == value

    with_sandbox(server, False, scenario)


def test_files(server, use_server_proxy):
    async def scenario(sandbox):
        files = sandbox.files
        blob = bytes(range(256)) * 5000
        await files.write_files([
            WriteEntry(path="/tmp/f/text.txt", data="grüße\nline 2\nline 3\n", mode=644),
            WriteEntry(path="/tmp/f/deep/er/blob.bin", data=blob, mode=600),
            WriteEntry(path="/tmp/f/a name with spaces & ü.py", data="print(1)"),
        ])
        assert await files.read_file("/tmp/f/text.txt") == "grüße\nline 2\nline 3\n"
        assert await files.read_bytes("/tmp/f/deep/er/blob.bin") == blob
        assert await files.read_bytes("/tmp/f/deep/er/blob.bin", range_header="bytes=10-19") == blob[10:20]
        assert await files.read_file("/tmp/f/text.txt", offset=2, limit=1) == "line 2"
        parts = [c async for c in await stream_of(files, "/tmp/f/deep/er/blob.bin")]
        assert b"".join(parts) == blob

        info = await files.get_file_info(["/tmp/f/text.txt", "/tmp/f/deep"])
        text = info["/tmp/f/text.txt"]
        assert (text.size, text.mode, text.owner, text.group) == (22, 644, "root", "root")
        assert abs(datetime.now(timezone.utc) - text.modified_at) < timedelta(minutes=5)
        assert info["/tmp/f/deep"].entry_type == "directory"

        found = await files.search(SearchEntry(path="/tmp/f", pattern="*.bin"))
        assert [e.path for e in found] == ["/tmp/f/deep/er/blob.bin"]
        found = await files.search(SearchEntry(path="/tmp/f", pattern="*"))
        assert len(found) == 3
        listed = await files.list_directory(DirectoryListEntry(path="/tmp/f", depth=1))
        assert [e.path.rsplit("/", 1)[1] for e in listed] == [
            "a name with spaces & ü.py", "deep", "text.txt"]

        await files.replace_contents([
            ContentReplaceEntry(path="/tmp/f/text.txt", old_content="line", new_content="row")])
        counts = await files.replace_contents_detailed([
            ContentReplaceEntry(path="/tmp/f/text.txt", old_content="row", new_content="line"),
            ContentReplaceEntry(path="/tmp/f/deep/er/blob.bin", old_content="nowhere", new_content="")])
        assert {c.path: c.replaced_count for c in counts} == {
            "/tmp/f/text.txt": 2, "/tmp/f/deep/er/blob.bin": 0}
        assert await files.read_bytes("/tmp/f/deep/er/blob.bin") == blob

        await files.set_permissions([SetPermissionEntry(path="/tmp/f/text.txt", mode=640, owner="nobody")])
        changed = (await files.get_file_info(["/tmp/f/text.txt"]))["/tmp/f/text.txt"]
        assert (changed.mode, changed.owner) == (640, "nobody")

        await files.move_files([MoveEntry(source="/tmp/f/text.txt", destination="/tmp/f/moved/here.txt")])
        assert (await files.read_file("/tmp/f/moved/here.txt")).startswith("grüße")
        await files.create_directories([WriteEntry(path="/tmp/f/made/by/sdk", mode=700)])
        await files.delete_files(["/tmp/f/moved/here.txt"])
        with pytest.raises(SandboxApiException) as missing:
            await files.read_file("/tmp/f/moved/here.txt")
        assert missing.value.status_code == 404
        await files.delete_directories(["/tmp/f"])
        assert (await sandbox.commands.run("ls /tmp/f")).exit_code != 0

    with_sandbox(server, use_server_proxy, scenario)


async def stream_of(files, path):
    stream = files.read_bytes_stream(path, chunk_size=65536)
    return await stream if asyncio.iscoroutine(stream) else stream


def test_metrics_and_renew(server, use_server_proxy):
    async def scenario(sandbox):
        metrics = await sandbox.get_metrics()
        assert metrics.cpu_count > 0 and 0 <= metrics.cpu_used_percentage <= 100
        assert 0 < metrics.memory_used_in_mib <= metrics.memory_total_in_mib == 2048
        assert abs(metrics.timestamp / 1000 - time.time()) < 60
        renewed = await sandbox.renew(timedelta(hours=3))
        assert renewed.expires_at == (await sandbox.get_info()).expires_at
        assert renewed.expires_at - datetime.now(timezone.utc) > timedelta(hours=2, minutes=59)

    with_sandbox(server, use_server_proxy, scenario)


def test_endpoint_of_a_service_inside(server, use_server_proxy):
    async def scenario(sandbox):
        import httpx

        await sandbox.commands.run(
            "mkdir -p /tmp/www && echo served > /tmp/www/x && cd /tmp/www && python3 -m http.server 8123",
            opts=RunCommandOpts(background=True),
        )
        endpoint = await sandbox.get_endpoint(8123)
        async with httpx.AsyncClient(headers=endpoint.headers) as client:
            for _ in range(200):
                reply = await client.get(f"http://{endpoint.endpoint}/x")
                if reply.status_code == 200:
                    break
                await asyncio.sleep(0.05)
        assert reply.text == "served\n"

    with_sandbox(server, use_server_proxy, scenario)


def test_metadata_patch_and_connect(server):
    async def scenario(sandbox):
        patched = await sandbox.patch_metadata({"a": "1", "b": "2"})
        assert patched.metadata == {"a": "1", "b": "2"}
        assert (await sandbox.patch_metadata({"a": None})).metadata == {"b": "2"}
        again = await Sandbox.connect(sandbox.id, connection_config=config_for(server))
        try:
            assert (await again.commands.run("echo again")).text == "again"
        finally:
            await again.close()

    with_sandbox(server, False, scenario)


def test_manager_lists_gets_renews_and_kills(server):
    tag = uuid.uuid4().hex[:12]

    async def run():
        config = config_for(server)
        made = [
            await Sandbox.create(server.image, connection_config=config_for(server),
                                 metadata={"tag": tag, "number": str(n), "odd/key": "a.b"})
            for n in range(3)
        ]
        manager = await SandboxManager.create(config)
        try:
            async def listed(**filters):
                page = await manager.list_sandbox_infos(SandboxFilter(**filters))
                return [i.id for i in page.sandbox_infos], page.pagination

            ids, pagination = await listed(metadata={"tag": tag})
            assert ids == [s.id for s in reversed(made)] and pagination.total_items == 3
            ids, _ = await listed(metadata={"tag": tag, "number": "1", "odd/key": "a.b"})
            assert ids == [made[1].id]
            ids, pagination = await listed(metadata={"tag": tag}, states=["Running"], page=2, page_size=2)
            assert ids == [made[0].id] and not pagination.has_next_page
            assert (await listed(metadata={"tag": tag}, states=["Paused"]))[0] == []
            assert (await manager.get_sandbox_info(made[0].id)).status.state == "Running"
            await manager.renew_sandbox(made[0].id, timedelta(hours=1))
            await manager.patch_sandbox_metadata(made[0].id, {"number": None})
            for sandbox in made:
                await manager.kill_sandbox(sandbox.id)
            assert (await listed(metadata={"tag": tag}))[0] == []
            with pytest.raises(SandboxApiException) as unknown:
                await manager.get_sandbox_info(made[0].id)
            assert unknown.value.status_code == 404
            assert unknown.value.error.code == f"{server.runtime.upper()}::SANDBOX_NOT_FOUND"
        finally:
            await manager.close()
            for sandbox in made:
                await sandbox.close()

    asyncio.run(run())


def test_errors_of_create_are_shown(server):
    async def run():
        with pytest.raises(SandboxApiException) as unknown:
            await Sandbox.create("127.0.0.1:1/no/such:image", connection_config=config_for(server))
        assert unknown.value.error.code == f"{server.runtime.upper()}::SANDBOX_IMAGE_PULL_FAILED"
        with pytest.raises(SandboxApiException) as wrong:
            await Sandbox.create(server.image, connection_config=ConnectionConfig(
                domain=server.address, api_key="wrong", protocol="http"))
        assert wrong.value.status_code == 401

    asyncio.run(run())


def test_without_a_timeout_it_lives_until_killed(server):
    async def scenario(sandbox):
        assert (await sandbox.get_info()).expires_at is None

    with_sandbox(server, False, scenario, timeout=None)


# --- the synchronous client -----------------------------------------------------------------------


def test_synchronous_client(server, use_server_proxy):
    config = config_for(server, use_server_proxy, ConnectionConfigSync)
    sandbox = SandboxSync.create(server.image, connection_config=config, metadata={"kind": "sync"})
    try:
        seen = []
        done = sandbox.commands.run(
            "for i in 1 2 3; do echo $i; done; exit 5",
            handlers=ExecutionHandlersSync(on_stdout=lambda m: seen.append(m.text)),
        )
        assert seen == ["1\n", "2\n", "3\n"] and done.exit_code == 5
        sandbox.files.write_files([WriteEntry(path="/tmp/s/x.txt", data="sync")])
        assert sandbox.files.read_file("/tmp/s/x.txt") == "sync"
        found = sandbox.files.search(SearchEntry(path="/tmp/s", pattern="*.txt"))
        assert [e.path for e in found] == ["/tmp/s/x.txt"]
        assert sandbox.get_metrics().memory_total_in_mib > 0
        sandbox.renew(timedelta(minutes=30))
        started = sandbox.commands.run("sleep 1000", opts=RunCommandOpts(background=True))
        sandbox.commands.interrupt(started.id)
        manager = SandboxManagerSync.create(config)
        try:
            page = manager.list_sandbox_infos(SandboxFilter(metadata={"kind": "sync"}))
            assert [i.id for i in page.sandbox_infos] == [sandbox.id]
        finally:
            manager.close()
    finally:
        sandbox.kill()
        sandbox.close()


def test_many_at_once(server):
    async def run():
        config = config_for(server)

        async def one(number):
            sandbox = await Sandbox.create(server.image, connection_config=config)
            try:
                return (await sandbox.commands.run(f"echo {number}")).text
            finally:
                await sandbox.kill()

        assert await asyncio.gather(*(one(n) for n in range(10))) == [str(n) for n in range(10)]

    asyncio.run(run())


def test_sessions(server, use_server_proxy):
    async def scenario(sandbox):
        commands = sandbox.commands
        id = await commands.create_session(working_directory="/tmp/made/deep")
        seen = []

        async def on_stdout(message):
            seen.append(message.text)

        first = await commands.run_in_session(
            id, "export A=$'x\\ny'; B=(1 2); f() { echo f:$1; }; pwd; cd /usr",
            handlers=ExecutionHandlers(on_stdout=on_stdout))
        assert first.exit_code == 0 and seen == ["/tmp/made/deep\n"]
        second = await commands.run_in_session(id, 'echo "$A" ${B[1]}; f 1; pwd; echo bad >&2')
        assert second.text == "x\ny 2\nf:1\n/usr"
        assert [m.text for m in second.logs.stderr] == ["bad\n"]
        assert (await commands.run_in_session(id, "pwd", working_directory="/etc")).text == "/etc"
        assert (await commands.run_in_session(id, "exit 3")).exit_code == 3
        late = await commands.run_in_session(id, "sleep 60", timeout=timedelta(milliseconds=300))
        assert late.error is not None and late.exit_code != 0
        assert (await commands.run_in_session(id, "pwd")).text == "/usr"
        await commands.set_env("FROM_FILE", "it's \"quoted\" $HOME\nand long")
        shown = await commands.run_in_session(id, 'printf "%s" "$FROM_FILE" | head -c 4')
        assert shown.text == "it's"
        assert (await commands.run('printf "%s" "$FROM_FILE" | wc -l')).text.strip() == "1"
        await commands.delete_session(id)
        with pytest.raises(SandboxException):
            await commands.run_in_session(id, "true")

    with_sandbox(server, use_server_proxy, scenario)


def test_sessions_synchronously(server, use_server_proxy):
    sandbox = SandboxSync.create(server.image, connection_config=config_for(server, use_server_proxy, ConnectionConfigSync))
    try:
        id = sandbox.commands.create_session()
        assert sandbox.commands.run_in_session(id, "export A=1; cd /usr").exit_code == 0
        assert sandbox.commands.run_in_session(id, "echo $A; pwd").text == "1\n/usr"
        assert sandbox.commands.run_in_session(id, "exit 9").exit_code == 9
        sandbox.commands.delete_session(id)
    finally:
        sandbox.kill()
        sandbox.close()


def test_isolation_says_what_a_sandbox_can_do(server, use_server_proxy):
    async def scenario(sandbox):
        can = await sandbox.isolation.capabilities()
        if can.available:
            return
        assert can.message
        with pytest.raises(SandboxException):
            await sandbox.isolation.list()

    with_sandbox(server, use_server_proxy, scenario)

"""The published Python SDK, unmodified: pause and resume, snapshots, diagnostics, its pools."""

import asyncio
import uuid
from datetime import timedelta

import pytest
from opensandbox import Sandbox, SandboxManager
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import SandboxFilter, SnapshotFilter
from opensandbox.pool import (
    AcquirePolicy, InMemoryAsyncPoolStateStore, InMemoryPoolStateStore, PoolCreationSpec, SandboxPoolAsync,
)
from opensandbox.sync import SandboxManagerSync, SandboxPoolSync, SandboxSync

from conformance.python_sdk import use_server_proxy, with_sandbox  # noqa: F401
from support.sdk_connection import config_for
from support.shell import eventually


async def ready(manager, snapshot, timeout=60):
    """Waits until a snapshot can be used."""
    async with asyncio.timeout(timeout):
        while (info := await manager.get_snapshot(snapshot.id)).status.state == "Creating":
            await asyncio.sleep(0.02)
    assert info.status.state == "Ready", info
    return info


def test_pause_and_resume(server, use_server_proxy):
    async def scenario(sandbox):
        await sandbox.commands.run("echo kept > /tmp/kept; (while :; do sleep 0.1; done) & echo $! > /tmp/pid")
        await sandbox.pause()
        assert (await sandbox.get_info()).status.state == "Paused"
        with pytest.raises(SandboxApiException) as again:
            await sandbox.pause()
        assert again.value.status_code == 409
        resumed = await Sandbox.resume(sandbox.id, connection_config=config_for(server, use_server_proxy))
        try:
            assert (await resumed.get_info()).status.state == "Running"
            assert (await resumed.commands.run("cat /tmp/kept; kill -0 $(cat /tmp/pid)")).text == "kept"
            # The former object still works: ports stay where they were.
            assert (await sandbox.commands.run("echo here")).text == "here"
        finally:
            await resumed.close()
        with pytest.raises(SandboxApiException) as running:
            await Sandbox.resume(sandbox.id, connection_config=config_for(server))
        assert running.value.status_code == 409

    with_sandbox(server, use_server_proxy, scenario)


def test_the_manager_pauses_resumes_and_finds_the_paused(server):
    tag = uuid.uuid4().hex[:12]

    async def scenario(sandbox):
        manager = await SandboxManager.create(config_for(server))
        try:
            async def in_state(state):
                page = await manager.list_sandbox_infos(SandboxFilter(metadata={"tag": tag}, states=[state]))
                return [i.id for i in page.sandbox_infos]

            await manager.pause_sandbox(sandbox.id)
            assert await in_state("Paused") == [sandbox.id] and await in_state("Running") == []
            await manager.renew_sandbox(sandbox.id, timedelta(hours=1))
            await manager.resume_sandbox(sandbox.id)
            assert await in_state("Running") == [sandbox.id] and await in_state("Paused") == []
        finally:
            await manager.close()

    with_sandbox(server, False, scenario, metadata={"tag": tag})


def test_a_paused_sandbox_can_be_killed(server):
    async def scenario(sandbox):
        await sandbox.pause()

    with_sandbox(server, False, scenario)


def test_snapshots(server):
    name = uuid.uuid4().hex[:12]

    async def scenario(sandbox):
        manager = await SandboxManager.create(config_for(server))
        made = []
        try:
            await sandbox.commands.run("mkdir /opt/work && echo first > /opt/work/file && rm /etc/debian_version")
            first = await sandbox.create_snapshot(name)
            made.append(first)
            assert (first.sandbox_id, first.name) == (sandbox.id, name)
            await ready(manager, first)
            await sandbox.commands.run("echo second > /opt/work/file")
            second = await manager.create_snapshot(sandbox.id)
            made.append(second)
            await ready(manager, second)
            page = await manager.list_snapshots(SnapshotFilter(sandbox_id=sandbox.id))
            assert [s.id for s in page.snapshot_infos] == [second.id, first.id]
            page = await manager.list_snapshots(SnapshotFilter(name=name, states=["Ready"], page_size=1))
            assert [s.id for s in page.snapshot_infos] == [first.id] and not page.pagination.has_next_page

            restored = await Sandbox.create(snapshot_id=first.id, connection_config=config_for(server))
            try:
                info = await restored.get_info()
                assert info.snapshot_id == first.id and info.image is None
                shown = await restored.commands.run("cat /opt/work/file; ls /etc/debian_version")
                assert shown.text == "first" and shown.exit_code != 0
                await restored.commands.run("echo third > /opt/work/file")
            finally:
                await restored.kill()
                await restored.close()
            assert (await sandbox.commands.run("cat /opt/work/file")).text == "second"

            await manager.delete_snapshot(first.id)
            made.remove(first)
            with pytest.raises(SandboxApiException) as gone:
                await manager.get_snapshot(first.id)
            assert gone.value.status_code == 404 and gone.value.error.code == "SNAPSHOT::NOT_FOUND"
            with pytest.raises(SandboxApiException) as unknown:
                await Sandbox.create(snapshot_id=first.id, connection_config=config_for(server))
            assert unknown.value.status_code == 404
        finally:
            for snapshot in made:
                await manager.delete_snapshot(snapshot.id)
            await manager.close()

    with_sandbox(server, False, scenario)


def test_a_snapshot_outlives_its_sandbox(server):
    async def run():
        config = config_for(server)
        manager = await SandboxManager.create(config)
        source = await Sandbox.create(server.image, connection_config=config_for(server))
        snapshot = None
        try:
            await source.commands.run("echo kept > /root/kept")
            snapshot = await ready(manager, await source.create_snapshot())
            await source.kill()
            restored = await Sandbox.create(snapshot_id=snapshot.id, connection_config=config_for(server),
                                            env={"A": "b"}, metadata={"restored": "yes"})
            try:
                assert (await restored.commands.run("cat /root/kept; echo $A")).text == "kept\nb"
                assert (await restored.get_info()).metadata == {"restored": "yes"}
            finally:
                await restored.kill()
                await restored.close()
        finally:
            if snapshot:
                await manager.delete_snapshot(snapshot.id)
            await manager.close()
            await source.close()

    asyncio.run(run())


def test_diagnostics(server):
    async def scenario(sandbox):
        logs = await sandbox.get_diagnostic_logs("container")
        assert (logs.kind, logs.delivery, logs.sandbox_id) == ("logs", "inline", sandbox.id)
        assert "hello from the entrypoint" in logs.content
        assert logs.content_length == len(logs.content.encode()) and logs.truncated is False
        events = await sandbox.get_diagnostic_events("runtime")
        assert events.kind == "events" and events.content is not None
        with pytest.raises(SandboxApiException) as unknown:
            await sandbox.get_diagnostic_logs("nothing")
        assert unknown.value.status_code == 400
        assert unknown.value.error.code == "DIAGNOSTICS_SCOPE_UNSUPPORTED"

    with_sandbox(server, False, scenario,
                 entrypoint=["sh", "-c", "echo hello from the entrypoint; exec tail -f /dev/null"])


def idle(pool, wanted):
    return lambda: pool.snapshot().idle_count == wanted


def test_the_synchronous_pool(server):
    name = f"pool-{uuid.uuid4().hex[:8]}"
    pool = SandboxPoolSync(
        pool_name=name, max_idle=2, state_store=InMemoryPoolStateStore(),
        connection_config=config_for(server, kind=ConnectionConfigSync),
        creation_spec=PoolCreationSpec(image=server.image, metadata={"pool": name}),
    )
    manager = SandboxManagerSync.create(config_for(server, kind=ConnectionConfigSync))
    of_pool = SandboxFilter(metadata={"pool": name})
    pool.start()
    taken = None
    try:
        eventually(idle(pool, 2), 60, 0.1, "two idle sandboxes")
        taken = pool.acquire(policy=AcquirePolicy.FAIL_FAST)
        assert taken.commands.run("echo pooled").text == "pooled"
    finally:
        if taken:
            taken.kill()
            taken.close()
        pool.resize(0)
        pool.release_all_idle()
        pool.shutdown()
        left = manager.list_sandbox_infos(of_pool).sandbox_infos
        for info in left:
            manager.kill_sandbox(info.id)
        manager.close()


def test_the_asynchronous_pool(server):
    name = f"pool-{uuid.uuid4().hex[:8]}"

    async def run():
        manager = await SandboxManager.create(config_for(server))
        pool = SandboxPoolAsync(
            pool_name=name, max_idle=2, state_store=InMemoryAsyncPoolStateStore(),
            connection_config=config_for(server),
            creation_spec=PoolCreationSpec(image=server.image, metadata={"pool": name}),
        )
        try:
            async with pool:
                async with asyncio.timeout(60):
                    while (await pool.snapshot()).idle_count < 2:
                        await asyncio.sleep(0.1)
                taken = await pool.acquire(sandbox_timeout=timedelta(minutes=5), policy=AcquirePolicy.FAIL_FAST)
                assert (await taken.commands.run("echo pooled")).text == "pooled"
                await taken.kill()
                await taken.close()
                await pool.resize(0)
                await pool.release_all_idle()
        finally:
            page = await manager.list_sandbox_infos(SandboxFilter(metadata={"pool": name}))
            for info in page.sandbox_infos:
                await manager.kill_sandbox(info.id)
            await manager.close()

    asyncio.run(run())


def test_synchronous_pause_snapshot_and_restore(server):
    config = config_for(server, kind=ConnectionConfigSync)
    manager = SandboxManagerSync.create(config)
    sandbox = SandboxSync.create(server.image, connection_config=config)
    try:
        sandbox.commands.run("echo sync > /root/sync")
        sandbox.pause()
        sandbox = SandboxSync.resume(sandbox.id, connection_config=config)
        snapshot = sandbox.create_snapshot("sync")
        eventually(lambda: manager.get_snapshot(snapshot.id).status.state == "Ready", 60, 0.05, "the snapshot")
        restored = SandboxSync.create(snapshot_id=snapshot.id, connection_config=config)
        assert restored.commands.run("cat /root/sync").text == "sync"
        restored.kill()
        manager.delete_snapshot(snapshot.id)
    finally:
        sandbox.kill()
        sandbox.close()
        manager.close()

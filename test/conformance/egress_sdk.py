"""Network policy and the credential vault by the published Python SDK, unmodified: what it sets is in
force for what runs in the sandbox, as the servers of a world of the test's own see it."""

import asyncio
import uuid

import pytest
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.sandboxes import CredentialProxyConfig, NetworkPolicy, NetworkRule
from opensandbox.sync import SandboxSync

from support.egress_world import FETCH
from support.sdk_connection import config_for

BY = {False: "direct", True: "proxy"}

#: Looks for a text, given backwards, wherever root in the sandbox can: the memory and environment of
#: all other processes, and files.
SEARCH = r"""
import os, sys
wanted = sys.argv[1][::-1].encode()
found, read = [], 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid():
        continue
    for name in ("environ", "cmdline"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if wanted in file.read():
                    found.append(f"/proc/{pid}/{name}")
        except OSError:
            pass
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                start, end = (int(x, 16) for x in line.split()[0].split("-"))
                if "r" not in line.split()[1]:
                    continue
                try:
                    memory.seek(start)
                    content = memory.read(end - start)
                    read += len(content)
                    if wanted in content:
                        found.append(f"/proc/{pid}/mem")
                except (OSError, OverflowError):
                    pass
    except OSError:
        pass
for top in ("/etc", "/opt", "/tmp", "/root", "/var", "/run", "/home", "/dev/shm"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path) and wanted in open(path, "rb").read():
                    found.append(path)
            except OSError:
                pass
print("found" if found else "nothing", *found)
"""


@pytest.fixture(params=BY, ids=BY.get)
def use_server_proxy(request):
    return request.param


def allowing(*targets):
    rules = [NetworkRule(action="allow", target=target) for target in targets]
    return NetworkPolicy(default_action="deny", egress=rules)


def with_sandbox(server, use_server_proxy, scenario, **options):
    async def run():
        sandbox = await Sandbox.create(
            server.image, connection_config=config_for(server, use_server_proxy), **options)
        try:
            await scenario(sandbox)
        finally:
            await sandbox.kill()
            await sandbox.close()

    asyncio.run(run())


async def fetch(sandbox, url, *fields):
    """A request of a program in the sandbox: "200 …" or what went wrong."""
    done = await sandbox.commands.run(["python3", "-c", FETCH, url, *fields])
    return done.text.strip()


async def reaches(sandbox, url):
    return (await fetch(sandbox, url)).startswith("200")


def path():
    """One that no other test asks for."""
    return "/" + uuid.uuid4().hex


def fields_of(request):
    return {name.lower(): value for name, value in request["headers"].items()}


def test_the_policy_of_the_create_is_in_force(egress_place, use_server_proxy):
    server, world = egress_place
    allowed, denied = path(), path()

    async def scenario(sandbox):
        policy = await sandbox.get_egress_policy()
        assert policy.default_action == "deny"
        assert [(r.action, r.target) for r in policy.egress] == [("allow", "api.example")]
        assert await reaches(sandbox, f"http://api.example{allowed}")
        assert not await reaches(sandbox, f"http://other.example{denied}")
        assert not await reaches(sandbox, f"http://203.0.113.11{denied}")
        assert len(world.requests(allowed)) == 1 and not world.requests(denied)

    with_sandbox(server, use_server_proxy, scenario, network_policy=allowing("api.example"))


def test_rules_are_patched_and_deleted(egress_place, use_server_proxy):
    server, _ = egress_place

    async def scenario(sandbox):
        async def rules():
            return [(r.action, r.target) for r in (await sandbox.get_egress_policy()).egress]

        assert await rules() == []
        await sandbox.patch_egress_rules([NetworkRule(action="allow", target="api.example"),
                                          NetworkRule(action="allow", target="*.sub.example")])
        assert await reaches(sandbox, "http://api.example/patched")
        assert await reaches(sandbox, "http://deep.sub.example/patched")
        await sandbox.patch_egress_rules([NetworkRule(action="deny", target="API.example")])
        assert not await reaches(sandbox, "http://api.example/patched")
        assert [action for action, _ in await rules()] == ["deny", "allow"]
        await sandbox.delete_egress_rules(["*.sub.example", "not-there.example"])
        assert not await reaches(sandbox, "http://deep.sub.example/patched")
        assert len(await rules()) == 1
        with pytest.raises(SandboxApiException) as refused:
            await sandbox.patch_egress_rules([NetworkRule(action="allow", target="https://x.example/")])
        assert refused.value.status_code == 400
        assert len(await rules()) == 1

    with_sandbox(server, use_server_proxy, scenario, network_policy=NetworkPolicy())


def test_a_sandbox_without_a_policy_has_no_control(egress_place):
    server, _ = egress_place

    async def scenario(sandbox):
        assert await reaches(sandbox, "http://other.example/free")
        with pytest.raises(SandboxException):
            await sandbox.get_egress_policy()

    with_sandbox(server, False, scenario)


def test_policy_by_the_synchronous_client(egress_place, use_server_proxy):
    server, _ = egress_place
    sandbox = SandboxSync.create(
        server.image, network_policy=allowing("api.example"),
        connection_config=config_for(server, use_server_proxy, ConnectionConfigSync))
    try:
        sandbox.patch_egress_rules([NetworkRule(action="allow", target="other.example")])
        assert [r.target for r in sandbox.get_egress_policy().egress] == ["other.example", "api.example"]
        sandbox.delete_egress_rules(["api.example"])
        assert [r.target for r in sandbox.get_egress_policy().egress] == ["other.example"]
    finally:
        sandbox.kill()
        sandbox.close()


def test_policy_after_pause_and_connect(egress_place, use_server_proxy):
    server, _ = egress_place

    async def scenario(sandbox):
        await sandbox.pause()
        config = config_for(server, use_server_proxy)
        again = await Sandbox.resume(sandbox.id, connection_config=config)
        try:
            assert [r.target for r in (await again.get_egress_policy()).egress] == ["api.example"]
            assert await reaches(again, "http://api.example/resumed")
            assert not await reaches(again, "http://other.example/resumed")
        finally:
            await again.close()

    with_sandbox(server, use_server_proxy, scenario, network_policy=allowing("api.example"))


# --- the credential vault -------------------------------------------------------------------------


def inline(name, value):
    return {"name": name, "source": {"type": "inline", "value": value}}


def bearer(name, host, credential, **match):
    return {"name": name, "match": {"hosts": [host], **match},
            "auth": {"type": "bearer", "credential": credential}}


def with_vault(server, use_server_proxy, scenario):
    with_sandbox(server, use_server_proxy, scenario,
                 network_policy=allowing("api.example", "other.example"),
                 credential_proxy=CredentialProxyConfig(enabled=True))


def test_a_secret_reaches_its_service_and_nobody_else(egress_place, use_server_proxy):
    server, world = egress_place
    secret = f"secret-{uuid.uuid4().hex}"
    bound, unbound, plain, echoed = path(), path(), path(), path() + "/echo"

    async def scenario(sandbox):
        state = await sandbox.credential_vault.create(
            credentials=[inline("key", secret)], bindings=[bearer("api", "api.example", "key")])
        assert state.revision == 1 and secret not in repr(state)
        # Injected where the binding says, whatever the program itself had in mind.
        assert await reaches(sandbox, f"https://api.example{bound}")
        assert (await fetch(sandbox, f"https://api.example{bound}", "Authorization=Bearer mine")).startswith("200")
        seen = world.requests(bound)
        assert [fields_of(r).get("authorization") for r in seen] == [f"Bearer {secret}"] * 2
        assert all(r["tls"] for r in seen)
        # Neither for another host, nor without TLS.
        assert await reaches(sandbox, f"https://other.example{unbound}")
        assert await reaches(sandbox, f"http://api.example{plain}")
        for request in world.requests(unbound) + world.requests(plain):
            assert "authorization" not in fields_of(request), request
        assert len(world.requests(unbound)) == len(world.requests(plain)) == 1
        # By the name of one in the address of the other.
        forged = await fetch(sandbox, f"https://other.example{path()}", "Host=api.example")
        assert not forged.startswith("200"), forged
        # A service that tells it in a field of its answer: the sandbox does not hear it. Bodies
        # are passed on as they come (network contract 1.9).
        echo = await fetch(sandbox, f"https://api.example{echoed}")
        assert echo.startswith("200") and "[REDACTED]" in echo and secret not in echo
        assert fields_of(world.requests(echoed)[0])["authorization"] == f"Bearer {secret}"
        searched = await sandbox.commands.run(["python3", "-c", SEARCH, secret[::-1]])
        assert searched.text.strip() == "nothing", searched
        for part in (await sandbox.get_info(), await sandbox.get_egress_policy()):
            assert secret not in repr(part)
        assert secret not in server.log.read_text(errors="replace")

    with_vault(server, use_server_proxy, scenario)


def test_the_vault_is_shown_without_secrets_and_changed(egress_place, use_server_proxy):
    server, world = egress_place
    first, second = f"first-{uuid.uuid4().hex}", f"second-{uuid.uuid4().hex}"

    async def scenario(sandbox):
        vault, where = sandbox.credential_vault, path()

        async def injected():
            assert await reaches(sandbox, f"https://api.example{where}")
            return fields_of(world.requests(where)[-1]).get("authorization")

        with pytest.raises(SandboxException):
            await vault.get()
        await vault.create(credentials=[inline("key", first)], bindings=[bearer("api", "api.example", "key")])
        with pytest.raises(SandboxException):
            await vault.create(credentials=[inline("key", first)], bindings=[])
        assert await injected() == f"Bearer {first}"
        state = await vault.get()
        assert [(c.name, c.source_type, c.revision) for c in state.credentials] == [("key", "inline", 1)]
        assert state.bindings[0].auth.type == "bearer" and state.bindings[0].match.hosts == ["api.example"]
        state = await vault.patch(expected_revision=1, credentials={"replace": [inline("key", second)]})
        assert state.revision == 2 and await injected() == f"Bearer {second}"
        with pytest.raises(SandboxException):
            await vault.patch(expected_revision=1, credentials={"delete": ["key"]})
        state = await vault.patch(
            credentials={"add": [inline("other", first)]},
            bindings={"add": [{"name": "custom", "match": {"hosts": ["other.example"], "paths": ["/v1/*"]},
                               "auth": {"type": "apiKey", "name": "x-api-key", "credential": "other"}}]})
        assert state.revision == 3
        assert [c.name for c in await vault.list_credentials()] == ["key", "other"]
        assert (await vault.get_credential("other")).name == "other"
        assert [b.name for b in await vault.list_bindings()] == ["api", "custom"]
        assert (await vault.get_binding("custom")).auth.type == "apiKey"
        v1 = "/v1" + path()
        assert await reaches(sandbox, f"https://other.example{v1}")
        assert fields_of(world.requests(v1)[0])["x-api-key"] == first
        for leak in (state, await vault.get(), await vault.list_credentials(), await vault.list_bindings()):
            assert first not in repr(leak) and second not in repr(leak)
        # A policy that no longer covers a binding is refused as long as the binding is there.
        with pytest.raises(SandboxApiException):
            await sandbox.delete_egress_rules(["api.example"])
        await vault.delete()
        assert await injected() is None
        with pytest.raises(SandboxException):
            await vault.get()

    with_vault(server, use_server_proxy, scenario)


def test_a_placeholder_is_replaced_on_the_way(egress_place):
    server, world = egress_place
    secret = f"secret-{uuid.uuid4().hex}"

    async def scenario(sandbox):
        await sandbox.credential_vault.create(
            credentials=[inline("key", secret)],
            bindings=[{"name": "api", "match": {"hosts": ["api.example"]}, "auth": {
                "type": "passthrough", "substitutions": [
                    {"credential": "key", "placeholder": "__KEY__", "in": ["query", "header"]}]}}])
        where = path()
        assert (await fetch(sandbox, f"https://api.example{where}?token=__KEY__", "X-Token=a __KEY__")).startswith("200")
        [request] = world.requests(f"{where}?token={secret}")
        assert fields_of(request)["x-token"] == f"a {secret}" and "authorization" not in fields_of(request)

    with_vault(server, False, scenario)


def test_what_a_vault_refuses(egress_place):
    server, _ = egress_place

    async def scenario(sandbox):
        async def refused(binding, status=400):
            with pytest.raises(SandboxApiException) as failed:
                await sandbox.credential_vault.create(credentials=[inline("key", "value")], bindings=[binding])
            assert failed.value.status_code == status

        await refused(bearer("x", "denied.example", "key"))  # no rule allows it
        await refused(bearer("x", "api.example", "nobody"))
        await refused(bearer("x", "203.0.113.10", "key"))
        await refused(bearer("x", "api.example", "key", ports=[8443]))

    with_vault(server, False, scenario)

    async def without(sandbox):
        with pytest.raises(SandboxApiException) as failed:
            await sandbox.credential_vault.create(credentials=[inline("key", "value")], bindings=[])
        assert failed.value.status_code == 412

    with_sandbox(server, False, without, network_policy=allowing("api.example"))


def test_the_vault_by_the_synchronous_client(egress_place, use_server_proxy):
    server, world = egress_place
    secret, where = f"secret-{uuid.uuid4().hex}", path()
    sandbox = SandboxSync.create(
        server.image, network_policy=allowing("api.example"), credential_proxy=CredentialProxyConfig(enabled=True),
        connection_config=config_for(server, use_server_proxy, ConnectionConfigSync))
    try:
        state = sandbox.credential_vault.create(
            credentials=[inline("key", secret)], bindings=[bearer("api", "api.example", "key")])
        assert state.revision == 1
        done = sandbox.commands.run(["python3", "-c", FETCH, f"https://api.example{where}"])
        assert done.text.startswith("200")
        assert fields_of(world.requests(where)[0])["authorization"] == f"Bearer {secret}"
        assert sandbox.credential_vault.get().bindings[0].name == "api"
        sandbox.credential_vault.delete()
    finally:
        sandbox.kill()
        sandbox.close()

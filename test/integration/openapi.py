"""specs/ and what is served agree: the documents are valid, every reply is checked against them by
the harness, and here every operation is called at least once."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from support import contract, rootfs
from support.agent import StandaloneAgent
from support.shell import eventually


#: What the sandboxes of a pool are made of.
POOLED = {"image": {"uri": "host"}, "entrypoint": ["tail", "-f", "/dev/null"], "resourceLimits": {}}


@pytest.mark.parametrize("surface", contract.SURFACES)
def test_the_documents_are_valid(surface):
    validate(contract.document(surface))


def test_the_check_finds_what_is_wrong():
    class Reply:
        status, body, headers = 200, b'{"status":"ill"}', []

        @staticmethod
        def header(name):
            return "application/json"

    with pytest.raises(AssertionError, match="healthy"):
        contract.check_reply("lifecycle", "GET", "/health", Reply)
    Reply.status = 299
    with pytest.raises(AssertionError, match="only"):
        contract.check_reply("lifecycle", "GET", "/health", Reply)


def test_every_operation_of_the_server_answers_as_documented(server, sandbox):
    api, bare = server.api(), server.api(prefix="")
    in_an_hour = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()
    before = set(contract.exercised)
    contract.exercised.clear()
    assert api.post("/sandboxes", {}).status == 422
    assert api.get("/sandboxes").status == 200
    assert api.get(sandbox.path()).status == 200
    assert api.patch(sandbox.path("/metadata"), {"a": "b"}).status == 200
    assert api.post(sandbox.path("/renew-expiration"), {"expiresAt": in_an_hour}).status == 200
    assert api.get(sandbox.path("/endpoints/80")).status == 200
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        assert api.request(method, sandbox.path("/proxy/1/x")).status == 502
    assert api.get("/images").status == 200
    layer = rootfs.tar_of([("etc/x", b"y")])
    reply = api.post("/images", layer, query={"reference": "documented:1"},
                     headers={"Content-Type": "application/octet-stream"})
    assert reply.status in (200, 201), reply
    assert api.get("/images/inspect", query={"reference": "documented:1"}).status == 200
    assert api.get("/images/export", query={"reference": "documented:1"}).status == 200
    # Nobody listens there; registry.py has the rest.
    nowhere = {"reference": "127.0.0.1:1/documented:1"}
    assert api.post("/images/pull", nowhere).status == 502
    assert api.post("/images/push", nowhere).status == 404
    assert api.post("/images/prune").status == 200
    tag = {"source": "documented:1", "reference": "documented:2", "config": {"cmd": ["x"]}}
    assert api.post("/images/tag", tag).status == 201
    for tag in ("1", "2"):
        assert api.delete(f"/images/documented:{tag}").status == 204
    for path in ("/health", "/version", "/metrics", "/openapi.json", "/docs", "/redoc"):
        assert bare.get(path).status == 200
    for page in ("logs", "events", "inspect", "summary"):
        assert api.get(sandbox.path(f"/diagnostics/{page}")).status == 200
    snapshots_pools_and_policies(api, sandbox)
    assert api.post("/metrics/events", {
        "eventType": "sandbox.create", "createDurationMs": 5, "success": True}).status == 204
    assert api.delete(sandbox.path()).status == 204
    done = {(m, t) for s, m, t in contract.exercised if s == "lifecycle"}
    contract.exercised |= before
    assert contract.operations("lifecycle") - done == set()


def snapshots_pools_and_policies(api, sandbox):
    assert api.post(sandbox.path("/pause")).status == 202
    assert api.post(sandbox.path("/resume")).status == 202
    made = api.post(sandbox.path("/snapshots"), {"name": "documented"})
    assert made.status == 202, made
    snapshot = f"/snapshots/{made.json['id']}"
    eventually(lambda: api.get(snapshot).json["status"]["state"] == "Ready", 60, 0.05, "the snapshot")
    assert len(api.get("/snapshots", query={"sandboxId": sandbox.id}).json["items"]) == 1
    # Of the built-in image none can be made.
    assert api.post(snapshot + "/image", {"reference": "documented:3"}).status == 409
    forked = api.post(sandbox.path("/fork"), {"count": 2, "timeout": 60})
    assert forked.status == 201, forked
    for child in forked.json["items"]:
        assert api.delete(f"/sandboxes/{child['id']}").status == 204
    assert api.delete(snapshot).status == 204
    for method, body in (("GET", None), ("PUT", {}), ("PATCH", []), ("DELETE", [])):
        reply = api.request(method, sandbox.path("/networkpolicy"), body=body)
        assert reply.status in (501, 502), reply
    capacity = {"bufferMin": 0, "bufferMax": 1, "poolMin": 0, "poolMax": 1}
    made = api.post("/pools", {"name": "documented", "template": POOLED, "capacitySpec": capacity})
    assert made.status == 201, made
    assert api.get("/pools").status == api.get("/pools/documented").status == 200
    assert api.put("/pools/documented", {"capacitySpec": {**capacity, "poolMax": 2}}).status == 200
    assert api.delete("/pools/documented").status == 204
    for method, path in (("GET", ""), ("POST", ""), ("GET", "/t"), ("DELETE", "/t")):
        assert api.request(method, "/templates" + path).status == 501


def test_every_operation_of_the_agent_answers_as_documented(sandbox):
    agent = sandbox.agent
    contract.exercised.clear()
    assert agent.get("/ping").status == 200
    assert agent.post("/command", {}).status == 400
    events = list(agent.events({"command": "echo 1; sleep 1000", "background": True}))
    id = events[0]["text"]
    assert agent.get(f"/command/status/{id}").json["running"] is True
    assert [c["session"] for c in agent.get("/command", query={"running": "true"}).json["commands"]] == [id]
    assert agent.get("/command", query={"limit": "0"}).status == 400
    streamed = agent.run("echo seen").id
    assert agent.get(f"/command/{streamed}/stream", query={"offset": 0}).status == 200
    logs = agent.get(f"/command/{id}/logs", query={"cursor": 0})
    assert logs.status == 200
    assert agent.delete("/command", query={"id": id}).status == 200
    context = agent.post("/code/context", {"language": "bash", "cwd": "/tmp/o"}).json
    request = {"code": "pwd; exit 3", "context": {"id": context["id"]}}
    events = list(agent.events(request, path="/code"))
    assert [e["type"] for e in events] == ["init", "ping", "stdout", "status", "error"]
    assert agent.post("/code", {"code": ""}).status == 400
    assert agent.delete("/code", query={"id": context["id"]}).status == 200
    assert len(agent.get("/code/contexts").json) == 1
    assert agent.get(f"/code/contexts/{context['id']}").status == 200
    assert agent.delete(f"/code/contexts/{context['id']}").status == 200
    assert agent.delete("/code/contexts", query={"language": "bash"}).status == 200
    session = agent.post("/session", {"cwd": "/tmp/o"}).json["session_id"]
    assert agent.post(f"/session/{session}/run", {"command": "true"}).status == 200
    assert agent.delete(f"/session/{session}").status == 200
    assert agent.delete(f"/session/{session}").status == 404
    assert agent.write("/tmp/o/a.txt", "one two one\n").status == 200
    assert agent.get("/files/info", query={"path": ["/tmp/o/a.txt", "/tmp/o"]}).status == 200
    assert agent.post("/files/permissions", {"/tmp/o/a.txt": {"mode": 600}}).status == 200
    replaced = agent.post("/files/replace", {"/tmp/o/a.txt": {"old": "one", "new": "1"}},
                          query={"verbose": "true"})
    assert replaced.json == {"/tmp/o/a.txt": {"replacedCount": 2}}
    assert agent.get("/files/search", query={"path": "/tmp/o", "pattern": "*.txt"}).status == 200
    assert agent.read("/tmp/o/a.txt").body == b"1 two 1\n"
    part = agent.get("/files/download", query={"path": "/tmp/o/a.txt"}, headers={"Range": "bytes=2-4"})
    assert (part.status, part.body) == (206, b"two")
    assert agent.post("/files/mv", [{"src": "/tmp/o/a.txt", "dest": "/tmp/o/d/b.txt"}]).status == 200
    assert agent.post("/directories", {"/tmp/o/e/f": {"mode": 755}}).status == 200
    listing = agent.get("/directories/list", query={"path": "/tmp/o", "depth": 2}).json
    assert [f["path"] for f in listing] == ["/tmp/o/d", "/tmp/o/d/b.txt", "/tmp/o/e", "/tmp/o/e/f"]
    assert agent.delete("/files", query={"path": "/tmp/o/d/b.txt"}).status == 200
    packed = agent.get("/files/archive", query={"path": "/tmp/o"})
    assert packed.status == 200
    unpacked = agent.post("/files/archive", packed.body, query={"path": "/tmp/o/again"},
                          headers={"Content-Type": "application/x-tar"})
    assert unpacked.status == 200
    assert agent.get("/files/info", query={"path": "/tmp/o/again/e/f"}).status == 200
    assert agent.delete("/directories", query={"path": "/tmp/o"}).status == 200
    pty = agent.post("/pty", {"cwd": "/tmp/terminal"})
    assert pty.status == 201
    pty = "/pty/" + pty.json["session_id"]
    assert agent.get(pty).json["running"] is False
    assert agent.get(pty + "/ws").status == 400
    assert agent.delete(pty).status == 200
    assert agent.get(pty).status == 404
    assert agent.get("/metrics").status == 200
    watch = sandbox.connect()
    response = watch.open("GET", "/metrics/watch")
    sample = json.loads(response.readline())
    contract._validate("execd", "/components/schemas/Metrics", sample, "a sample")
    watch.close()
    contract.exercised.add(("execd", "get", "/metrics/watch"))
    watch = sandbox.connect()
    event = json.loads(watch.open("GET", "/files/watch?path=/tmp").readline())
    contract._validate("execd", "/components/schemas/FileEvent", event, "an event")
    watch.close()
    contract.exercised.add(("execd", "get", "/files/watch"))
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        assert agent.request(method, "/proxy/1/x").status == 502
    done = {(m, t) for s, m, t in contract.exercised if s == "execd"}
    missing = {(m, t) for m, t in contract.operations("execd") - done if not t.startswith("/v1/isolated/")}
    assert missing == set()


def test_every_operation_of_isolated_sessions_answers_as_documented(tmp_path, scratch):
    work = scratch / "documented"
    work.mkdir()
    config = tmp_path / "isolation.toml"
    config.write_text(f'upper_root = "{scratch}/documented-uppers"\nallowed_writable = ["{scratch}"]\n')
    contract.exercised.clear()
    with StandaloneAgent(tmp_path, "t" * 32, environment={"EXECD_ISOLATION_CONFIG": str(config)}) as agent:
        isolated_operations(agent.api, str(work))
    done = {(m, t) for s, m, t in contract.exercised if s == "execd"}
    documented = {(m, t) for m, t in contract.operations("execd") if t.startswith("/v1/isolated/")}
    assert documented - done == set()


def isolated_operations(api, work):
    assert api.get("/v1/isolated/capabilities").json["available"] is True
    assert api.post("/v1/isolated/session", {}).status == 400
    made = api.post("/v1/isolated/session", {"workspace": {"path": work, "mode": "overlay"}})
    assert made.status in (200, 201), made
    base = "/v1/isolated/session/" + made.json["session_id"]
    assert len(api.get("/v1/isolated/sessions").json["sessions"]) == 1
    assert api.get(base).json["status"] == "active"
    events = list(api.events({"code": f"echo one two >{work}/a.txt; exit 3"}, path=base + "/run"))
    assert events[-1]["error"]["evalue"] == "3"
    started = api.post(base + "/run", {"code": "echo behind", "background": True})
    assert started.status == 202, started
    run = f"{base}/runs/{started.json['run_id']}"
    eventually(lambda: not api.get(run).json["running"])
    assert api.get(run + "/logs", query={"cursor": 0}).text == "behind\n"
    file = f"{work}/a.txt"
    assert api.get(base + "/files/info", query={"path": file}).json[file]["size"] == 8
    assert api.post(base + "/files/permissions", {file: {"mode": 600}}).status == 200
    replaced = api.post(base + "/files/replace", {file: {"old": "one", "new": "1"}}, query={"verbose": "true"})
    assert replaced.json == {file: {"replacedCount": 1}}
    assert len(api.get(base + "/files/search", query={"path": work, "pattern": "*.txt"}).json) == 1
    assert api.get(base + "/files/download", query={"path": file}).body == b"1 two\n"
    assert api.upload(base + "/files/upload", f"{work}/b.txt", "b").status == 200
    assert api.post(base + "/files/mv", [{"src": f"{work}/b.txt", "dest": f"{work}/c.txt"}]).status == 200
    assert api.post(base + "/directories", {f"{work}/d": {"mode": 755}}).status == 200
    assert len(api.get(base + "/directories/list", query={"path": work}).json) == 3
    assert api.delete(base + "/files", query={"path": f"{work}/c.txt"}).status == 200
    assert api.delete(base + "/directories", query={"path": f"{work}/d"}).status == 200
    assert api.get(base + "/diff").status == 200
    assert api.post(base + "/commit", {}).status == 200
    assert Path(file).read_text() == "1 two\n"
    assert api.delete(base).status in (200, 204)
    assert api.get(base).status == 404

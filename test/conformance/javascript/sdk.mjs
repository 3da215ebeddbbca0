import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConnectionConfig, Sandbox, SandboxApiException, SandboxManager,
} from "@alibaba-group/opensandbox";

const connectionConfig = new ConnectionConfig({
  domain: process.env.OPEN_SANDBOX_DOMAIN,
  apiKey: process.env.OPEN_SANDBOX_API_KEY,
  protocol: "http",
  useServerProxy: process.env.BY === "proxy",
});

async function withSandbox(scenario, options = {}) {
  const sandbox = await Sandbox.create({
    connectionConfig, image: process.env.IMAGE, timeoutSeconds: 600, ...options,
  });
  try {
    await scenario(sandbox);
  } finally {
    await sandbox.kill();
    await sandbox.close();
  }
}

const text = (messages) => messages.map((m) => m.text).join("\n");

test("lifecycle", async () => {
  await withSandbox(async (sandbox) => {
    assert.equal(await sandbox.isHealthy(), true);
    const info = await sandbox.getInfo();
    assert.equal(info.id, sandbox.id);
    assert.equal(info.status.state, "Running");
    assert.deepEqual(info.metadata, { by: "javascript" });
    await sandbox.renew(1200);
    assert.ok((await sandbox.getInfo()).expiresAt > info.expiresAt);
    const metrics = await sandbox.getMetrics();
    assert.ok(metrics.memoryTotalMiB > 0 && metrics.cpuCount > 0);
    assert.ok((await sandbox.getEndpoint(8080)).endpoint);
    const manager = SandboxManager.create({ connectionConfig });
    const listed = await manager.listSandboxInfos({ metadata: { by: "javascript" } });
    assert.deepEqual(listed.items.map((i) => i.id), [sandbox.id]);
    await manager.close();
    const other = await Sandbox.connect({ connectionConfig, sandboxId: sandbox.id });
    assert.equal(text((await other.commands.run("echo again")).logs.stdout), "again");
    await other.close();
  }, { metadata: { by: "javascript" } });
});

test("commands", async () => {
  await withSandbox(async (sandbox) => {
    const seen = [];
    const done = await sandbox.commands.run(
      "echo one; echo two; echo bad >&2", { envs: { A: "b" } },
      { onStdout: (m) => seen.push(m.text) },
    );
    assert.equal(done.exitCode, 0);
    // This SDK is older than 1.1: one line an event, without its end.
    assert.deepEqual(seen, ["one", "two"]);
    assert.equal(text(done.logs.stderr), "bad");
    const failed = await sandbox.commands.run("exit 7");
    assert.equal(failed.exitCode, 7);
    const inDirectory = await sandbox.commands.run("pwd; echo $A", {
      workingDirectory: "/usr", envs: { A: "b" },
    });
    assert.equal(text(inDirectory.logs.stdout), "/usr\nb");
    const late = await sandbox.commands.run("sleep 30", { timeoutSeconds: 1 });
    assert.notEqual(late.exitCode, 0);
  }, { env: { GREETING: "hi" } });
});

test("background commands", async () => {
  await withSandbox(async (sandbox) => {
    const started = await sandbox.commands.run("echo begun; sleep 1000", { background: true });
    let logs;
    do {
      logs = await sandbox.commands.getBackgroundCommandLogs(started.id);
    } while (!logs.content.includes("begun"));
    assert.equal((await sandbox.commands.getCommandStatus(started.id)).running, true);
    const rest = await sandbox.commands.getBackgroundCommandLogs(started.id, logs.cursor);
    assert.equal(rest.content, "");
    await sandbox.commands.interrupt(started.id);
    assert.equal((await sandbox.commands.getCommandStatus(started.id)).running, false);
  });
});

test("sessions", async () => {
  await withSandbox(async (sandbox) => {
    const id = await sandbox.commands.createSession({ workingDirectory: "/tmp/js/session" });
    const first = await sandbox.commands.runInSession(id, "export A='x\ny'; f() { echo f:$1; }; cd /usr");
    assert.equal(first.exitCode, 0);
    const second = await sandbox.commands.runInSession(id, 'echo "$A"; f 1; pwd; echo bad >&2');
    assert.equal(text(second.logs.stdout), "x\ny\nf:1\n/usr");
    assert.equal(text(second.logs.stderr), "bad");
    const failed = await sandbox.commands.runInSession(id, "exit 3");
    assert.equal(failed.exitCode, 3);
    assert.equal(text((await sandbox.commands.runInSession(id, "pwd")).logs.stdout), "/usr");
    await sandbox.commands.deleteSession(id);
    await assert.rejects(sandbox.commands.runInSession(id, "true"));
  });
});

test("files", async () => {
  await withSandbox(async (sandbox) => {
    const { files } = sandbox;
    await files.createDirectories([{ path: "/tmp/js", mode: 755 }]);
    await files.writeFiles([
      { path: "/tmp/js/a.txt", data: "grüße\nzwei\n", mode: 640 },
      { path: "/tmp/js/deep/b.bin", data: new Uint8Array([0, 1, 254, 255]) },
    ]);
    assert.equal(await files.readFile("/tmp/js/a.txt"), "grüße\nzwei\n");
    assert.equal(await files.readFile("/tmp/js/a.txt", { offset: 2, limit: 1 }), "zwei");
    assert.deepEqual([...(await files.readBytes("/tmp/js/deep/b.bin"))], [0, 1, 254, 255]);
    assert.deepEqual([...(await files.readBytes("/tmp/js/deep/b.bin", { range: "bytes=1-2" }))], [1, 254]);
    const info = (await files.getFileInfo(["/tmp/js/a.txt"]))["/tmp/js/a.txt"];
    assert.equal(info.mode, 640);
    assert.equal(info.size, 13);
    const found = await files.search({ path: "/tmp/js", pattern: "*.txt" });
    assert.deepEqual(found.map((f) => f.path), ["/tmp/js/a.txt"]);
    const listed = await files.listDirectory({ path: "/tmp/js", depth: 2 });
    assert.deepEqual(listed.map((f) => f.path), ["/tmp/js/a.txt", "/tmp/js/deep", "/tmp/js/deep/b.bin"]);
    await files.replaceContents([{ path: "/tmp/js/a.txt", oldContent: "zwei", newContent: "drei" }]);
    await files.setPermissions([{ path: "/tmp/js/a.txt", mode: 600 }]);
    await files.moveFiles([{ src: "/tmp/js/a.txt", dest: "/tmp/js/c.txt" }]);
    assert.equal(await files.readFile("/tmp/js/c.txt"), "grüße\ndrei\n");
    await files.deleteFiles(["/tmp/js/c.txt"]);
    await files.deleteDirectories(["/tmp/js"]);
    await assert.rejects(files.readFile("/tmp/js/c.txt"));
  });
});

test("pause and resume", async () => {
  await withSandbox(async (sandbox) => {
    await sandbox.commands.run("echo kept > /tmp/kept");
    await sandbox.pause();
    assert.equal((await sandbox.getInfo()).status.state, "Paused");
    await assert.rejects(sandbox.pause(), SandboxApiException);
    // It shares the connections of the former, which closes them.
    const resumed = await sandbox.resume();
    assert.equal(text((await resumed.commands.run("cat /tmp/kept")).logs.stdout), "kept");
  });
});

test("snapshots", async () => {
  await withSandbox(async (sandbox) => {
    const manager = SandboxManager.create({ connectionConfig });
    await sandbox.commands.run("echo kept > /root/kept");
    const snapshot = await manager.createSnapshot(sandbox.id, { name: "by-javascript" });
    try {
      let info;
      do {
        info = await manager.getSnapshot(snapshot.id);
      } while (info.status.state === "Creating");
      assert.equal(info.status.state, "Ready");
      const listed = await manager.listSnapshots({ sandboxId: sandbox.id });
      assert.deepEqual(listed.items.map((i) => i.id), [snapshot.id]);
      const restored = await Sandbox.create({ connectionConfig, snapshotId: snapshot.id });
      try {
        assert.equal(text((await restored.commands.run("cat /root/kept")).logs.stdout), "kept");
      } finally {
        await restored.kill();
        await restored.close();
      }
    } finally {
      await manager.deleteSnapshot(snapshot.id);
      await manager.close();
    }
  });
});

test("errors", async () => {
  await assert.rejects(
    Sandbox.connect({ connectionConfig, sandboxId: "none" }), SandboxApiException,
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionConfig, Sandbox, SandboxApiException } from "@alibaba-group/opensandbox";

const connectionConfig = new ConnectionConfig({
  domain: process.env.OPEN_SANDBOX_DOMAIN,
  apiKey: process.env.OPEN_SANDBOX_API_KEY,
  protocol: "http",
  useServerProxy: process.env.BY === "proxy",
});

async function withSandbox(scenario, options = {}) {
  const sandbox = await Sandbox.create({
    connectionConfig, image: process.env.IMAGE, timeoutSeconds: 600,
    networkPolicy: { defaultAction: "deny", egress: [{ action: "allow", target: "api.example" }] },
    ...options,
  });
  try {
    await scenario(sandbox);
  } finally {
    await sandbox.kill();
    await sandbox.close();
  }
}

async function fetched(sandbox, url) {
  const done = await sandbox.commands.run(`python3 -c "$FETCH" ${url}`, { envs: { FETCH: process.env.FETCH } });
  return done.logs.stdout.map((m) => m.text).join("\n");
}

const targets = (policy) => policy.egress.map((r) => `${r.action} ${r.target}`);

test("egress rules", async () => {
  await withSandbox(async (sandbox) => {
    const policy = await sandbox.getEgressPolicy();
    assert.equal(policy.defaultAction, "deny");
    assert.deepEqual(targets(policy), ["allow api.example"]);
    assert.match(await fetched(sandbox, "http://api.example/js"), /^200/);
    assert.doesNotMatch(await fetched(sandbox, "http://other.example/js"), /^200/);
    await sandbox.patchEgressRules([{ action: "allow", target: "other.example" }]);
    assert.match(await fetched(sandbox, "http://other.example/js"), /^200/);
    await sandbox.deleteEgressRules(["api.example"]);
    assert.deepEqual(targets(await sandbox.getEgressPolicy()), ["allow other.example"]);
    assert.doesNotMatch(await fetched(sandbox, "http://api.example/js"), /^200/);
    await assert.rejects(sandbox.patchEgressRules([{ action: "allow", target: "http://x/" }]), SandboxApiException);
  });
});

test("credential vault", async () => {
  await withSandbox(async (sandbox) => {
    const vault = sandbox.credentialVault;
    const made = await vault.create({
      credentials: [{ name: "key", source: { type: "inline", value: process.env.SECRET } }],
      bindings: [{
        name: "api", match: { hosts: ["api.example"] }, auth: { type: "bearer", credential: "key" },
      }],
    });
    assert.equal(made.revision, 1);
    assert.match(await fetched(sandbox, `https://api.example${process.env.WHERE}`), /^200/);
    assert.deepEqual((await vault.listCredentials()).map((c) => c.name), ["key"]);
    assert.equal((await vault.getBinding("api")).auth.type, "bearer");
    const changed = await vault.patch({
      expectedRevision: 1, bindings: { delete: ["api"] }, credentials: { delete: ["key"] },
    });
    assert.equal(changed.revision, 2);
    assert.deepEqual((await vault.get()).bindings, []);
    await vault.delete();
    await assert.rejects(vault.get());
  }, { credentialProxy: { enabled: true } });
});

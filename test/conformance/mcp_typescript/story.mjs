// The official TypeScript client plays the story: node story.mjs STORY stdio EXECUTABLE, or
// node story.mjs STORY http URL. Variables STORY_* are the story's first names.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [file, kind, target] = process.argv.slice(2);
const names = { image: process.env.STORY_IMAGE, story: process.env.STORY_NAME };

function filled(value) {
  if (typeof value === "string" && value.startsWith("$")) {
    assert(value.slice(1) in names, value);
    return names[value.slice(1)];
  }
  if (Array.isArray(value)) return value.map(filled);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item)]));
}

const at = (document, path) => path.split(".").reduce((value, name) => value[name], document);

async function play(client, step) {
  const result = await client.callTool({ name: step.tool, arguments: filled(step.arguments) });
  const said = `${step.tool}: ${JSON.stringify(result.content)}`;
  assert.equal(result.isError, "refused" in step, said);
  if ("refused" in step) assert(result.content[0].text.startsWith(step.refused), said);
  for (const [path, wanted] of Object.entries(step.expect ?? {})) {
    assert.deepEqual(at(result.structuredContent, path), filled(wanted), `${path} of ${said}`);
  }
  for (const [name, path] of Object.entries(step.keep ?? {})) {
    names[name] = at(result.structuredContent, path);
    assert.notEqual(names[name], undefined, `${path} of ${said}`);
  }
}

const transport = kind === "stdio"
  ? new StdioClientTransport({ command: target, args: ["mcp"], env: { ...process.env } })
  : new StreamableHTTPClientTransport(new URL(target));
const client = new Client({ name: "story", version: "1" });
await client.connect(transport);
try {
  // From here on the client holds every answer against the tool's output schema.
  const listed = (await client.listTools()).tools.map((tool) => tool.name);
  const steps = JSON.parse(readFileSync(file, "utf8"));
  for (const step of steps) await play(client, step);
  const called = new Set(steps.map((step) => step.tool));
  assert.deepEqual(listed.filter((name) => !called.has(name)), [], "tools that nobody called");
  console.log(`called ${called.size} tools`);
} finally {
  await client.close();
}

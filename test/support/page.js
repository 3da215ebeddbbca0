// node page.js ADDRESS PATH KEY: loads a page of the server into a small document of our own, presses
// things as a reader would, and prints what there is to read.
"use strict";

class Element {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], listeners: {}, value: "", parent: null });
  }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name]; }
  removeAttribute(name) { delete this.attributes[name]; }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  append(...children) {
    for (const child of children) {
      if (child instanceof Element) child.parent = this;
      this.children.push(child);
    }
  }
  remove() { this.parent.children = this.parent.children.filter((child) => child !== this); }
  set textContent(text) { this.children = text === "" ? [] : [text]; }
  get textContent() { return this.children.map((c) => (c instanceof Element ? c.textContent : c)).join(""); }
  find(test) {
    const inner = this.children.filter((c) => c instanceof Element).flatMap((c) => c.find(test));
    return test(this) ? [this, ...inner] : inner;
  }
}

const [address, path, key] = process.argv.slice(2);
const parts = {};
global.document = {
  title: "",
  createElement: (tag) => new Element(tag),
  getElementById: (id) => (parts[id] ||= new Element(id)),
};
global.location = { pathname: path };
const asked = fetch;
global.fetch = (target, options) => asked(new URL(target, `http://${address}`), options);
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

async function until(test) {
  for (let i = 0; i < 2000; i++) {
    if (test()) return;
    await settled();
  }
  throw new Error("nothing came: " + parts.operations.textContent.slice(0, 500));
}

async function main() {
  const html = await (await fetch(path)).text();
  const script = html.match(/<script>([\s\S]*)<\/script>/)[1];
  new Function(script)();
  await until(() => parts.contents && parts.contents.children.length > 0);
  const articles = parts.operations.find((e) => e.tag === "article");
  const folded = parts.operations.textContent.length;
  const result = { title: document.title, ids: articles.map((e) => e.attributes.id) };
  if (path === "/docs") {
    for (const article of articles) article.children[0].listeners.click();
    document.getElementById("key").value = key;
    const list = articles.find((e) => e.attributes.id === "listSandboxes");
    list.find((e) => e.tag === "button")[0].listeners.click();
    const output = list.find((e) => e.tag === "pre").at(-1);
    await until(() => output.textContent.length > 1);
    result.reply = output.textContent;
    result.body = articles.find((e) => e.attributes.id === "createSandbox")
      .find((e) => e.tag === "textarea")[0].value;
  }
  result.unfolds = path === "/docs" && parts.operations.textContent.length > folded;
  result.text = parts.operations.textContent;
  console.log(JSON.stringify(result));
}

main().catch((problem) => { console.error(problem); process.exit(1); });

// Runs the cells of one context as a console does: declarations stay and may be made again, await
// works at the top level. Descriptor 3 is the channel to the agent. Called with node's `require`.

const fs = require('fs');
const inspector = require('inspector');
const modules = require('module');
const net = require('net');
const path = require('path');
const util = require('util');
const vm = require('vm');

const language = process.argv[1];
const session = new inspector.Session();
session.connect();
const userRequire = modules.createRequire(path.join(process.cwd(), 'cell.js'));
const MAX = 16 << 20;
let count = 0;
let interrupt = null; // rejects the run in flight
let strip = null; // typescript to javascript

// The socket does not block, so what does not fit is tried again. Standard output is written by
// the time that a frame is.
function send(message) {
  let body = Buffer.from(JSON.stringify(message));
  if (body.length > MAX) {
    throw new Error(`the result is too large: ${body.length} bytes`);
  }
  let rest = Buffer.concat([Buffer.from(`j${body.length}\n`), body]);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(fs.writeSync(3, rest));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
}

function describe(value) {
  if (typeof value === 'string') return util.inspect(value);
  return util.inspect(value, { depth: 4, maxArrayLength: 200, maxStringLength: 1 << 20 });
}

function text(value) {
  return typeof value === 'string' ? value : describe(value);
}

// Values may say how they look, as Deno's and other notebooks let them.
function mime(value) {
  const data = { 'text/plain': describe(value) };
  const own = value !== null && typeof value === 'object' && value[Symbol.for('Jupyter.display')];
  if (typeof own === 'function') Object.assign(data, own.call(value));
  return data;
}

function display(...values) {
  for (const value of values) send({ type: 'display', data: mime(value) });
}

// --- typescript ---

function load(name) {
  const roots = [path.resolve(process.execPath, '../../lib/node_modules'),
    '/usr/local/lib/node_modules', '/usr/lib/node_modules', '/usr/share/nodejs'];
  for (const target of [name, ...roots.map((root) => path.join(root, name))]) {
    try {
      return userRequire(target);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  return null;
}

function findStripper() {
  if (typeof modules.stripTypeScriptTypes === 'function') {
    process.removeAllListeners('warning');
    return (code) => modules.stripTypeScriptTypes(code, { mode: 'transform' });
  }
  const typescript = load('typescript');
  if (typescript) {
    const options = {
      target: typescript.ScriptTarget.ES2022,
      module: typescript.ModuleKind.ESNext,
      // Later cells may use what this one imports.
      [parseInt(typescript.version, 10) < 5 ? 'preserveValueImports' : 'verbatimModuleSyntax']: true,
    };
    return (code) => {
      const out = typescript.transpileModule(code, {
        compilerOptions: options, reportDiagnostics: true, fileName: 'cell.ts',
      });
      const wrong = (out.diagnostics || []).find((item) => item.category === 1);
      if (wrong) {
        throw new SyntaxError(typescript.flattenDiagnosticMessageText(wrong.messageText, '\n'));
      }
      return out.outputText.replace(/^export \{\};\s*$/m, '');
    };
  }
  const esbuild = load('esbuild');
  if (esbuild) {
    return (code) => esbuild.transformSync(code, {
      loader: 'ts', target: 'es2022',
      tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
    }).code;
  }
  return null;
}

// --- cells ---

// A cell is a script: import declarations become awaited imports, exports plain declarations, and
// import() goes through the driver, which has what the engine wants for it. Strings and comments
// are passed over.
const PARTS = new RegExp([
  /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\/)/,
  /(?<![.\w$])import\s*(\()/,
  /(?<=^|;)[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*)?(\{[^}]*\})?\s*(?:from\s*)?(["'][^"'\n]+["'])[ \t]*;?/,
  /(?<=^|;)([ \t]*export\s+)(?=(?:const|let|var|function|class|async)\b)/,
].map((part) => part.source).join('|'), 'gm');

function importDeclaration(first, all, names, from) {
  const loaded = `await __import(${from})`;
  const out = [];
  if (all) out.push(`const ${all} = ${loaded}`);
  if (first) out.push(`const { default: ${first} } = ${loaded}`);
  if (names) out.push(`const ${names.replace(/\b([\w$]+)\s+as\s+/g, '$1: ')} = ${loaded}`);
  return (out.length > 0 ? out.join('; ') : loaded) + ';';
}

function script(code) {
  return code.replace(PARTS, (whole, passed, call, first, all, names, from, exported) => {
    if (passed !== undefined) return whole;
    if (exported !== undefined) return '';
    if (call) return '__import(';
    return importDeclaration(first, all, names, from);
  });
}

async function loadModule(name) {
  const target = String(name);
  if (/^\.{0,2}\//.test(target)) {
    return import(require('url').pathToFileURL(path.resolve(target)).href);
  }
  if (modules.builtinModules.includes(target.replace(/^node:/, '')) || /^\w+:/.test(target)) {
    return import(target);
  }
  try {
    return await import(require('url').pathToFileURL(userRequire.resolve(target)).href);
  } catch (error) {
    if (error.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error;
    return import(target);
  }
}

// The inspector's evaluation gives a handle of the result; a call through it brings the value here.
function fetch(remote, id) {
  if (!('objectId' in remote)) {
    if ('unserializableValue' in remote) {
      return vm.runInThisContext(`(${remote.unserializableValue})`);
    }
    return remote.value;
  }
  let value;
  globalThis.__take = (given) => { value = given; };
  session.post('Runtime.callFunctionOn', {
    objectId: remote.objectId, functionDeclaration: 'function() { globalThis.__take(this); }',
  });
  delete globalThis.__take;
  if (remote.type !== 'object' && remote.type !== 'function' && Object(value) === value) {
    return value.valueOf();
  }
  return value;
}

function evaluate(expression) {
  return new Promise((resolve, reject) => {
    session.post('Runtime.evaluate', { expression, replMode: true, awaitPromise: true },
      (failure, outcome) => {
        if (failure) return reject(new Error(failure.message || 'the cell was ended'));
        if (outcome.exceptionDetails) {
          const thrown = outcome.exceptionDetails.exception;
          return reject(new Thrown(thrown === undefined ? undefined : fetch(thrown)));
        }
        return resolve(fetch(outcome.result));
      });
  });
}

class Thrown {
  constructor(value) { this.value = value; }
}

class Interrupted extends Error {
  constructor() { super('the run was interrupted'); this.name = 'KeyboardInterrupt'; }
}

async function execute(source) {
  const code = script(language === 'typescript' ? strip(source) : source);
  const expression = `${code}\n//# sourceURL=cell_${count}.${language === 'typescript' ? 'ts' : 'js'}`;
  const interrupted = new Promise((resolve, reject) => {
    interrupt = () => reject(new Interrupted());
  });
  interrupted.catch(() => {});
  // A loop without a pause does not see the signal: the agent then ends this process.
  const running = evaluate(expression);
  running.catch(() => {});
  return Promise.race([running, interrupted]);
}

// Lines of the trace up to the first one of this driver.
function trace(error) {
  const lines = String(error.stack || error).split('\n');
  const end = lines.findIndex((line) => /^\s+at .*(node:inspector|opensandbox-driver)/.test(line));
  return end < 0 ? lines : lines.slice(0, end);
}

function failure(thrown) {
  const error = thrown instanceof Thrown ? thrown.value : thrown;
  if (error !== null && typeof error === 'object' && 'message' in error) {
    const cut = error instanceof Interrupted ? [`${error.name}: ${error.message}`] : trace(error);
    return {
      type: 'error', ename: String(error.name || 'Error'), evalue: String(error.message),
      traceback: cut,
    };
  }
  const value = text(error);
  return { type: 'error', ename: 'Error', evalue: value, traceback: [`Uncaught ${value}`] };
}

async function run(source) {
  count += 1;
  try {
    const value = await execute(source);
    if (value !== undefined) {
      globalThis._ = value;
      send({ type: 'result', count, data: mime(value) });
    }
  } catch (error) {
    let message;
    try {
      message = failure(error);
    } catch (unprintable) {
      message = { type: 'error', ename: 'Error', evalue: 'the error cannot be shown', traceback: [] };
    }
    send(message);
  }
  interrupt = null;
  send({ type: 'done' });
}

// --- the channel ---

let received = Buffer.alloc(0);
let queue = Promise.resolve();

function take(piece) {
  received = received.length > 0 ? Buffer.concat([received, piece]) : piece;
  while (true) {
    const end = received.indexOf(10);
    if (end < 0) return;
    const size = Number(received.subarray(1, end).toString());
    if (received.length < end + 1 + size) return;
    const code = received.subarray(end + 1, end + 1 + size).toString();
    received = received.subarray(end + 1 + size);
    queue = queue.then(() => run(code));
  }
}

Object.assign(globalThis, { require: userRequire, display });
globalThis.module = { exports: {} };
globalThis.exports = globalThis.module.exports;
Object.defineProperty(globalThis, '__import', { value: loadModule, enumerable: false });
process.on('SIGINT', () => { if (interrupt) interrupt(); });
// What a cell started and nobody waits for must not end the context.
process.on('uncaughtException', (error) => process.stderr.write(`Uncaught ${text(error)}\n`));
process.on('unhandledRejection', (error) => {
  process.stderr.write(`Unhandled rejection: ${text(error)}\n`);
});

if (language === 'typescript') strip = findStripper();
if (language === 'typescript' && !strip) {
  send({
    type: 'error', ename: 'NotFound', traceback: [],
    evalue: `typescript is not available here: node ${process.version} does not strip types `
      + '(22.13 and newer do), and neither typescript nor esbuild was found in the node_modules '
      + `of ${process.cwd()}, of node, /usr/local/lib, /usr/lib and /usr/share/nodejs`,
  });
} else {
  send({ type: 'ready' });
}
const channel = new net.Socket({ fd: 3 });
channel.on('data', take);
channel.on('close', () => process.exit(0));
//# sourceURL=opensandbox-driver

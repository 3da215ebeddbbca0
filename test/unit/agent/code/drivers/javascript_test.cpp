#include "unit/agent/code/code_run.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

TEST_CASE("A javascript cell gives its last value and keeps its declarations") {
    AgentProcess agent;
    std::string id = make_context(agent, "javascript");
    CHECK(run_code(agent, id, "const x = 1; let y = 2; x + y").text == "3");
    CodeRun again =
        run_code(agent, id, "const x = 10; console.log('hi'); console.error('e'); x + y");
    CHECK(again.text == "12");
    CHECK(again.count == 2);
    CHECK(again.output == "hi\n");
    CHECK(again.errors == "e\n");
    CHECK(run_code(agent, id, "function f() { return { a: [x, { b: y }] } }").results.empty());
    CHECK(run_code(agent, id, "f()").text == "{ a: [ 10, { b: 2 } ] }");
    CHECK(run_code(agent, id, "'s'").text == "'s'");
    CHECK(run_code(agent, id, "10n").text == "10n");
    CHECK(run_code(agent, id, "class A {}; new A()").text == "A {}");
    CHECK(run_code(agent, id, "display({ a: 1 }); 5").results.size() == 2);
}

TEST_CASE("javascript awaits, requires and imports at the top level") {
    AgentProcess agent;
    Scratch scratch;
    scratch.file("local.js", "exports.value = 4;");
    std::string id = make_context(agent, "javascript", scratch.path());
    CHECK(run_code(agent, id, "await new Promise(r => setTimeout(() => r(7), 20))").text == "7");
    CHECK(run_code(agent, id, "require('./local').value").text == "4");
    CHECK(run_code(agent, id, "process.cwd()").text == "'" + scratch.path() + "'");
    CHECK(run_code(agent, id, "(await import('fs')).existsSync('/')").text == "true");
    CHECK(run_code(agent, id,
                   "import fs, { readFileSync as r } from 'fs'; import * as p from 'node:path';\n"
                   "[typeof r, fs.existsSync('/'), p.join('a', 'b')]")
              .text == "[ 'function', true, 'a/b' ]");
    CHECK(run_code(agent, id, "'import(x)'").text == "'import(x)'");
}

TEST_CASE("javascript errors have their stack without the driver's") {
    AgentProcess agent;
    std::string id = make_context(agent, "javascript");
    CodeRun thrown = run_code(agent, id, "function f() { throw new TypeError('bad') }\nf()");
    CHECK(thrown.name == "TypeError");
    CHECK(thrown.value == "bad");
    CHECK(thrown.traced() == "TypeError: bad\n    at f (cell_1.js:1:22)\n    at cell_1.js:2:1\n");
    CHECK(run_code(agent, id, "let = = 3").name == "SyntaxError");
    CHECK(run_code(agent, id, "throw 'text'").value == "text");
    CodeRun late = run_code(agent, id,
                            "setTimeout(() => { throw new Error('late') }, 1);\n"
                            "await new Promise(r => setTimeout(r, 50)); 1");
    CHECK(late.errors.find("late") != std::string::npos);
    CHECK(late.text == "1");
}

TEST_CASE("An interrupt ends javascript that waits, and the interpreter when it loops") {
    AgentProcess agent;
    std::string id = make_context(agent, "javascript");
    run_code(agent, id, "let kept = 3");
    RunningCode waiting(agent, id, "console.log('up'); await new Promise(() => {})", "up\\n");
    CHECK(agent.call("DELETE", "/code?id=" + id).status == 200);
    CHECK(waiting.finish().name == "KeyboardInterrupt");
    CHECK(run_code(agent, id, "kept").text == "3");
    RunningCode looping(agent, id, "console.log('up'); while (true) {}", "up\\n");
    CHECK(agent.call("DELETE", "/code?id=" + id).status == 200);
    CHECK(looping.finish().name == "InterpreterDied");
    CodeRun left = run_code(agent, id, "process.exit(3)");
    CHECK(left.name == "InterpreterDied");
    CHECK(left.value.find("exit status 3") != std::string::npos);
    CHECK(run_code(agent, id, "typeof kept").text == "'undefined'");
}

TEST_CASE("typescript cells are stripped of their types") {
    AgentProcess agent;
    std::string id = make_context(agent, "typescript");
    CHECK(run_code(agent, id, "interface P { a: number }\nconst x: P = { a: 5 };\nx.a as number")
              .text == "5");
    CHECK(run_code(agent, id, "enum E { A, B }\nE.B").text == "1");
    CHECK(run_code(agent, id,
                   "import * as fs from 'fs';\n"
                   "export function g(q: string): string { return q + x.a }")
              .complete());
    CHECK(run_code(agent, id, "g(String(fs.existsSync('/')))").text == "'true5'");
    CHECK(run_code(agent, id, "let w: number = ;").name == "SyntaxError");
}

#include "agent/code/drivers/go_cell.hpp"
#include "unit/agent/code/code_run.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

TEST_CASE("java cells are snippets of JShell") {
    AgentProcess agent;
    Scratch scratch;
    std::string id = make_context(agent, "java", scratch.path());
    CHECK(run_code(agent, id, "2 + 2").text == "4");
    CHECK(run_code(agent, id, "int x = 5;\nint f(int a) { return a * 2; }\nf(x)").text == "10");
    CodeRun out = run_code(agent, id, "System.out.println(\"hi\"); System.err.println(\"e\");");
    CHECK(out.output == "hi\n");
    CHECK(out.errors == "e\n");
    CHECK(out.results.empty());
    CHECK(run_code(agent, id, "class A { int v = 3; }\nvar a = new A();\na.v").text == "3");
    CHECK(run_code(agent, id, "List.of(1, 2).stream().map(q -> q * 2).collect(Collectors.toList())")
              .text == "[2, 4]");
    CHECK(run_code(agent, id, "new File(\".\").getCanonicalPath()").text ==
          "\"" + scratch.path() + "\"");
    CodeRun thrown = run_code(agent, id, "int g(int q) { return 1 / q; }\ng(0)");
    CHECK(thrown.name == "EvalException");
    CHECK(thrown.value == "java.lang.ArithmeticException: / by zero");
    CHECK(thrown.traced().find("at g(") != std::string::npos);
    CodeRun wrong = run_code(agent, id, "int y = \"s\";");
    CHECK(wrong.name == "CompilationException");
    CHECK(wrong.value.find("incompatible types") != std::string::npos);
    CHECK(run_code(agent, id, "if (true) {").last == "error");
    RunningCode run(agent, id, "System.out.println(\"up\"); Thread.sleep(60000);", "up\\n");
    CHECK(agent.call("DELETE", "/code?id=" + id).status == 200);
    CHECK(run.finish().name == "KeyboardInterrupt");
    CHECK(run_code(agent, id, "x").text == "5");
    CHECK(run_code(agent, id, "System.exit(4)").name == "InterpreterDied");
}

TEST_CASE("go cells keep their declarations and run their statements once") {
    AgentProcess agent(with_own_environment());
    std::string id = make_context(agent, "go");
    CHECK(run_code(agent, id, "2 + 2").text == "4");
    CHECK(
        run_code(agent, id, "package main\nimport \"fmt\"\nfunc main() {\n\tfmt.Print(\"a\", 2)\n}")
            .output == "a2");
    CHECK(run_code(agent, id,
                   "func add(a, b int) int { return a + b }\nvar base = 10\nx := 5\n"
                   "type P struct{ X, Y int }\nfunc (p P) Sum() int { return p.X + p.Y }\n"
                   "fmt.Println(\"once\")")
              .output == "once\n");
    CodeRun sum = run_code(agent, id, "add(base, x)");
    CHECK(sum.text == "15");
    CHECK(sum.output.empty());
    CHECK(run_code(agent, id, "func add(a, b int) int { return a * b }\nP{3, 4}.Sum()").text ==
          "7");
    CHECK(run_code(agent, id, "add(3, 4)").text == "12");
    CodeRun wrong = run_code(agent, id, "\nmissing(1)");
    CHECK(wrong.name == "CompilationError");
    CHECK(wrong.value.starts_with("cell_7.go:2"));
    CHECK(wrong.value.find("undefined: missing") != std::string::npos);
    CodeRun failed = run_code(agent, id, "panic(\"boom\")");
    CHECK(failed.value == "2");
    CHECK(failed.errors.find("panic: boom") != std::string::npos);
    RunningCode run(agent, id, "fmt.Println(\"up\"); time.Sleep(time.Minute)", "up\\n");
    CHECK(agent.call("DELETE", "/code?id=" + id).status == 200);
    CHECK(run.finish().name == "KeyboardInterrupt");
    CHECK(agent.call("DELETE", "/code/contexts/" + id).status == 200);
}

TEST_CASE("A go cell is cut into its pieces") {
    using Kind = GoPiece::Kind;
    auto pieces = split_go_cell(
        "package main\n\nimport (\n\t\"fmt\"\n\tm \"math\"\n)\n// note }\n"
        "var a, b = 1, \"}\\\"\"\nfunc (p *P) Go() string {\n\treturn `{\n`\n}\n"
        "func() { }()\nx := '{'; y := f()\nfor i := 0; i < 3;\ni++ {\n}\nfunc main() {}\n"
        "z := []int{\n1,\n}");
    std::vector<Kind> kinds;
    for (const GoPiece& piece : pieces)
        kinds.push_back(piece.kind);
    REQUIRE(kinds.size() >= 9);
    CHECK(kinds[0] == Kind::package);
    CHECK(pieces[1].text == "import \"fmt\"");
    CHECK(pieces[1].line == 4);
    CHECK(pieces[2].text == "import m \"math\"");
    CHECK(pieces[3].names == std::vector<std::string>{"a", "b"});
    CHECK(pieces[4].names == std::vector<std::string>{"P.Go"});
    CHECK(pieces[4].line == 9);
    CHECK(kinds[5] == Kind::statement);
    CHECK(pieces[6].text == "var x = '{'");
    CHECK(pieces[7].text == "y := f()");
    CHECK(kinds[7] == Kind::statement);
    CHECK(pieces[pieces.size() - 2].kind == Kind::entry);
    CHECK(pieces.back().names == std::vector<std::string>{"z"});
}

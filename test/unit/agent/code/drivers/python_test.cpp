#include "unit/agent/code/code_run.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace {

std::string read_text(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("A python cell gives the value of its last expression and keeps its names") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    CodeRun sum = run_code(agent, id, "2 + 2");
    CHECK(sum.id == id);
    CHECK(sum.text == "4");
    CHECK(sum.count == 1);
    CHECK(sum.complete());
    CHECK(run_code(agent, id, "x = [1, 'b']\ndef f(): return x").results.empty());
    CHECK(run_code(agent, id, "f()").text == "[1, 'b']");
    CHECK(run_code(agent, id, "_").text == "[1, 'b']");
    CHECK(run_code(agent, id, "None").results.empty());
    CHECK(run_code(agent, id, "x;").results.empty());
    CHECK(run_code(agent, id, "# nothing").complete());
    // Nothing of the driver is among the names of a cell.
    CHECK(run_code(agent, id, "sorted(n for n in globals() if not n.startswith('_'))").text ==
          "['display', 'f', 'x']");
}

TEST_CASE("Output of python comes before the result, both streams apart") {
    AgentProcess agent;
    CodeRun run = run_default(agent, "python",
                              "import sys\nprint('out'); print('err', file=sys.stderr)\n"
                              "print('{\"type\":\"done\"}\\nj15\\n{\"type\":\"done\"}')\n"
                              "sys.stdout.write('rest')\n7");
    CHECK(run.output == "out\n{\"type\":\"done\"}\nj15\n{\"type\":\"done\"}\nrest");
    CHECK(run.errors == "err\n");
    CHECK(run.text == "7");
    CodeRun large = run_default(agent, "python", "print('x' * 3_000_000)\n'y' * 1_000_000");
    CHECK(large.output.size() == 3'000'001);
    CHECK(large.text.size() == 1'000'002);
}

TEST_CASE("A python error has the traceback of the cell") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    CodeRun run = run_code(agent, id, "def f():\n    return 1 / 0\n\nf()");
    CHECK(run.last == "error");
    CHECK(run.name == "ZeroDivisionError");
    CHECK(run.value == "division by zero");
    REQUIRE(run.trace.size() > 2);
    CHECK(run.trace.front() == "Traceback (most recent call last):");
    CHECK(run.trace.back() == "ZeroDivisionError: division by zero");
    CHECK(run.traced().find("return 1 / 0") != std::string::npos);
    CHECK(run.traced().find("driver") == std::string::npos);
    CodeRun syntax = run_code(agent, id, "let x = 1");
    CHECK(syntax.name == "SyntaxError");
    CHECK(syntax.traced().find("let x = 1") != std::string::npos);
    CHECK(run_code(agent, id, "class E(Exception):\n  def __str__(self): raise ValueError\nraise E")
              .name == "E");
    CHECK(run_code(agent, id, "f").text.starts_with("<function f"));
}

TEST_CASE("sys.exit, awaiting, empty input and forks are fit for a python cell") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    CodeRun left = run_code(agent, id, "x = 1\nimport sys\nsys.exit(3)");
    CHECK(left.name == "SystemExit");
    CHECK(left.value == "3");
    CHECK(run_code(agent, id, "x").text == "1");
    CHECK(run_code(agent, id, "import asyncio\nawait asyncio.sleep(0.01)\nx + 1").text == "2");
    CHECK(run_code(agent, id, "async def g(): return 5\nawait g()").text == "5");
    CHECK(run_code(agent, id, "input()").name == "EOFError");
    CodeRun forked = run_code(agent, id,
                              "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
                              "print('once' if pid else 'child')\npid > 0");
    CHECK(forked.output == "child\nonce\n");
    CHECK(forked.results.size() == 1);
    CHECK(run_code(agent, id, "!echo from $((1 + 1))\n%matplotlib inline\ny = 3").output ==
          "from 2\n");
    CHECK(run_code(agent, id, "y").text == "3");
}

TEST_CASE("Classes of a python cell can be pickled, inspected and sent to other processes") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    CHECK(run_code(agent, id, "import pickle\nclass Q:\n  v = 3\npickle.loads(pickle.dumps(Q())).v")
              .text == "3");
    CHECK(run_code(agent, id,
                   "import multiprocessing as m\ndef square(v): return v * v\n"
                   "with m.get_context('fork').Pool(2) as pool: r = pool.map(square, [1, 2, 3])\nr")
              .text == "[1, 4, 9]");
    CHECK(run_code(agent, id, "import inspect\ninspect.getsource(square)").text ==
          "'def square(v): return v * v\\n'");
    CHECK(run_code(agent, id, "__name__").text == "'__main__'");
}

TEST_CASE("Rich python values come in all their forms") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    run_code(agent, id,
             "class H:\n  def _repr_html_(self): return '<b>é</b>'\n"
             "  def _repr_png_(self): return b'\\x89PNG'\n  def __repr__(self): return 'H'");
    CodeRun rich = run_code(agent, id, "H()");
    REQUIRE(rich.results.size() == 1);
    CHECK(rich.results[0] == R"({"text":"H","text/html":"<b>é</b>","image/png":"iVBORw=="})");
    CodeRun shown = run_code(agent, id, "display(H(), 5)\nprint('after')\n6");
    REQUIRE(shown.results.size() == 3);
    CHECK(shown.results[0] == rich.results[0]);
    CHECK(shown.results[1] == R"({"text":"5"})");
    CHECK(shown.results[2] == R"({"text":"6"})");
    CHECK(run_code(agent, id,
                   "class B:\n  def _repr_mimebundle_(self): return {'a/b': {'k': 1}}\n"
                   "  def __repr__(self): return 'B'\nB()")
              .results.front() == R"({"text":"B","a/b":{"k":1}})");
}

TEST_CASE("Figures of matplotlib are shown at plt.show() and at the end of the cell") {
    AgentProcess agent;
    Scratch scratch;
    // The interface of pyplot that the driver uses.
    std::filesystem::create_directories(scratch.at("matplotlib"));
    scratch.file("matplotlib/__init__.py", "");
    scratch.file("matplotlib/figure.py",
                 "class Figure:\n"
                 "    def savefig(self, out, format, bbox_inches): out.write(b'picture')\n"
                 "    def __repr__(self): return 'Figure'\n");
    scratch.file("matplotlib/pyplot.py",
                 "import os\nfrom matplotlib.figure import Figure\n"
                 "assert os.environ['MPLBACKEND'] == 'Agg'\nfigures = {}\n"
                 "def get_fignums(): return sorted(figures)\n"
                 "def figure(n=None): return figures.setdefault(n or len(figures) + 1, Figure())\n"
                 "def close(which):\n"
                 "    for n in list(figures):\n"
                 "        if which == 'all' or figures[n] is which: del figures[n]\n"
                 "def show(): raise RuntimeError('not taken over')\n");
    std::string id = make_context(agent, "python", scratch.path());
    CodeRun shown = run_code(agent, id,
                             "import matplotlib.pyplot as plt\nplt.figure()\nplt.show()\n"
                             "plt.figure()\nplt.figure()\nprint(len(plt.get_fignums()))");
    CHECK(shown.output == "2\n");
    REQUIRE(shown.results.size() == 3);
    CHECK(shown.results[0] == R"({"text":"Figure","image/png":"cGljdHVyZQ=="})");
    CHECK(run_code(agent, id, "plt.figure()").results.size() == 1);
    CHECK(run_code(agent, id, "plt.get_fignums()").text == "[]");
}

TEST_CASE("An interrupt is KeyboardInterrupt in python and the context lives on") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    RunningCode run(agent, id,
                    "import time\nk = 0\nprint('up')\nfor k in range(600): time.sleep(0.1)",
                    "up\\n");
    CHECK(agent.call("DELETE", "/code?id=" + id).status == 200);
    CodeRun end = run.finish();
    CHECK(end.name == "KeyboardInterrupt");
    CHECK(run_code(agent, id, "k < 600").text == "True");
    RunningCode loop(agent, id, "import asyncio\nprint('up')\nawait asyncio.sleep(60)", "up\\n");
    CHECK(agent.call("DELETE", "/command?id=" + id).status == 200);
    CHECK(loop.finish().name == "KeyboardInterrupt");
    CHECK(run_code(agent, id, "await asyncio.sleep(0, 5)").text == "5");
    // Nothing runs: nothing happens.
    CHECK(agent.call("DELETE", "/code?id=" + id).status == 200);
    CHECK(run_code(agent, id, "k < 600").text == "True");
}

TEST_CASE("A python that ignores the interrupt is killed and started again") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    RunningCode run(agent, id,
                    "import signal, time\nsignal.signal(2, signal.SIG_IGN)\nprint('up')\n"
                    "while True: time.sleep(1)",
                    "up\\n");
    CHECK(agent.call("DELETE", "/code?id=" + id).status == 200);
    CodeRun end = run.finish();
    CHECK(end.name == "InterpreterDied");
    CHECK(end.value.find("interrupt did not end") != std::string::npos);
    CHECK(run_code(agent, id, "1").text == "1");
}

TEST_CASE("The end of the interpreter ends the run, and the next run says that it is a fresh one") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    for (const char* code : {"import os; os._exit(7)", "import os; os.kill(os.getpid(), 9)",
                             "import os; os.closerange(3, 20)"}) {
        run_code(agent, id, "x = 1");
        CodeRun end = run_code(agent, id, code);
        CHECK(end.name == "InterpreterDied");
        CodeRun next = run_code(agent, id, "print('y'); 'x' in globals()");
        CHECK(next.errors.find("fresh") != std::string::npos);
        CHECK(next.text == "False");
        CHECK(run_code(agent, id, "1").errors.empty());
    }
    // Also when it ended between two runs.
    CodeRun running = run_code(agent, id, "import os; os.getpid()");
    ::kill(std::stoi(running.text), SIGKILL);
    // Gone for the kernel means that the agent knows.
    CHECK(eventually([&] { return ::kill(std::stoi(running.text), 0) != 0; }));
    CodeRun fresh = run_code(agent, id, "5");
    CHECK(fresh.text == "5");
    CHECK(fresh.errors.find("signal: killed") != std::string::npos);
}

TEST_CASE("A python context has its directory, made when missing") {
    AgentProcess agent;
    Scratch scratch;
    std::string id = make_context(agent, "python", scratch.at("a/b"));
    CHECK(run_code(agent, id, "import os; os.getcwd()").text == "'" + scratch.at("a/b") + "'");
    scratch.file("a/b/local_module.py", "value = 9");
    CHECK(run_code(agent, id, "import local_module; local_module.value").text == "9");
    CHECK(run_default(agent, "python", "import os; os.getcwd()").text == "'/'");
}

TEST_CASE("A warm python interpreter is taken by the next context and shares nothing") {
    AgentOptions options;
    options.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                           {"HOME", "/root"},
                           {"OPENSANDBOX_WARM_PYTHON", "1"}};
    AgentProcess agent(std::move(options));
    Scratch scratch;
    std::string processes = "/proc/" + std::to_string(agent.pid()) + "/task/" +
                            std::to_string(agent.pid()) + "/children";
    // The interpreter of a warm context was there before the context.
    std::string id;
    std::string pid;
    REQUIRE(eventually([&] {
        std::string before = " " + read_text(processes);
        id = make_context(agent, "python", scratch.path());
        pid = run_code(agent, id, "import os\nos.getpid()").text;
        return before.find(" " + pid + " ") != std::string::npos;
    }));
    CHECK(run_code(agent, id, "os.getcwd()").text == "'" + scratch.path() + "'");
    run_code(agent, id, "secret = 5\nimport builtins\nbuiltins.leak = 1");
    std::string other = make_context(agent, "python");
    CHECK(run_code(agent, other, "'secret' in globals(), hasattr(__builtins__, 'leak')").text ==
          "(False, False)");
    CHECK(run_code(agent, other, "import os\nos.getpid()").text != pid);
}

TEST_CASE("An agent without python contexts starts no python") {
    AgentProcess agent;
    agent.command(shell_request("true"));
    run_default(agent, "bash", "true");
    std::string processes = "/proc/" + std::to_string(agent.pid()) + "/task/" +
                            std::to_string(agent.pid()) + "/children";
    std::istringstream children(read_text(processes));
    int seen = 0;
    for (std::string pid; children >> pid; ++seen)
        CHECK(read_text("/proc/" + pid + "/comm") == "bash\n");
    CHECK(seen == 1);
}

#include "agent/code/drivers/driver.hpp"

#include <algorithm>

namespace opensandbox::agent {
namespace {

using Path = std::optional<std::string_view>;

/// Reads the first frame from descriptor 3 and runs it.
constexpr std::string_view kPythonStart =
    "import io\n"
    "c = io.open(3, 'rb', closefd=False)\n"
    "exec(compile(c.read(int(c.readline()[1:])), '<driver>', 'exec'), {'control': c})\n";

constexpr std::string_view kNodeStart =
    "{ const s = require('fs'), o = Buffer.alloc(1); let h = '', n = 0;"
    "while (s.readSync(3, o, 0, 1) && o[0] !== 10) h += o.toString();"
    "const p = Buffer.alloc(Number(h.slice(1)));"
    "while (n < p.length) n += s.readSync(3, p, n, p.length - n);"
    "new Function('require', p.toString())(require); }";

std::vector<Program> programs_of(const std::vector<std::string>& names,
                                 const std::vector<std::string>& arguments, Path path) {
    std::vector<Program> out;
    for (const std::string& name : names) {
        std::vector<std::string> argv{name};
        argv.insert(argv.end(), arguments.begin(), arguments.end());
        out.push_back(program_of(std::move(argv), path));
    }
    return out;
}

std::vector<Program> python(Path path) {
    return programs_of({"python3", "python"}, {"-u", "-c", std::string(kPythonStart)}, path);
}
std::vector<Program> javascript(Path path) {
    return programs_of({"node", "nodejs"}, {"-e", std::string(kNodeStart), "javascript"}, path);
}
std::vector<Program> typescript(Path path) {
    return programs_of({"node", "nodejs"}, {"-e", std::string(kNodeStart), "typescript"}, path);
}
std::vector<Program> bash(Path path) {
    return programs_of({"bash"},
                       {"--noprofile", "--norc", "-c", std::string(program::kBash), "bash"}, path);
}

std::vector<Program> java(Path path) {
    return programs_of(
        {"java"},
        {"-XX:+UseSerialGC", "-Xshare:auto", "--add-opens", "java.base/java.io=ALL-UNNAMED",
         "--add-modules", "jdk.jshell", "--source", "11", "/proc/self/fd/4"},
        path);
}

}  // namespace

const Driver* find_driver(std::string_view language) {
    static const Driver drivers[] = {
        {"python", "python3 and python in PATH", python, program::kPython, program::kPythonRich},
        {"javascript", "node and nodejs in PATH", javascript, program::kJavaScript},
        {"typescript", "node and nodejs in PATH", typescript, program::kJavaScript},
        {"bash", "bash in PATH", bash, {}, {}, {}, true},
        {"java", "java (of a JDK, 11 or newer) in PATH", java, {}, {}, program::kJava},
    };
    const auto* found = std::ranges::find(drivers, language, &Driver::language);
    return found == std::end(drivers) ? nullptr : found;
}

}  // namespace opensandbox::agent

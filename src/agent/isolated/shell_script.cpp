#include "agent/isolated/namespace_plan.hpp"
#include "agent/isolated/run.hpp"
#include "agent/session/shell_state.hpp"

namespace opensandbox::agent {
namespace {

// clang-format off
// A state that was cut off lacks its last line and is not taken up. Read-only variables of the
// shell itself cannot be set again: what it says about that is dropped.
constexpr std::string_view kBashLoad = R"sh(
if [ -r "$f" ]; then
  __s=$(<"$f")
  case $__s in *$'\n: whole') eval "$__s" 2>/dev/null ;; esac
  unset __s
fi
)sh";
constexpr std::string_view kBashSave = R"sh(
trap '{ declare -p; declare -f; printf "umask %s\ncd -- %q\n: whole\n" "$(umask)" "$PWD"; } >"$f" 2>/dev/null' EXIT
)sh";
constexpr std::string_view kShLoad = R"sh(
if [ -r "$f" ]; then
  __s=$(cat "$f")
  case $__s in *'
: whole') eval "$__s" 2>/dev/null ;; esac
  unset __s
fi
)sh";
// The directory goes as a variable: export quotes it.
constexpr std::string_view kShSave = R"sh(
trap '__d=$PWD; export __d; { export -p; echo "umask $(umask)"; echo "cd -- \"\$__d\""; echo "unset __d"; echo ": whole"; } >"$f" 2>/dev/null' EXIT
)sh";
// clang-format on

std::string script(const RunRequest& request, std::string_view load, std::string_view save) {
    std::string out = "f=";
    out += kStateDirectory;
    out += "/state\n";
    out += load;
    for (const auto& [name, value] : request.envs)
        out += "export " + name + "=" + quote_for_shell(value) + "\n";
    if (!request.background) out += save;
    // Evaluated at the outermost level: what it declares lasts.
    out += "eval \"$1\"\n";
    return out;
}

bool is_shell_name(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    for (char c : name) {
        bool good =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!good) return false;
    }
    return true;
}

}  // namespace

std::vector<Program> session_shells(const RunRequest& request,
                                    std::optional<std::string_view> path) {
    RunRequest named = request;
    // Others get to the program through the environment alone.
    std::erase_if(named.envs, [](const auto& pair) { return !is_shell_name(pair.first); });
    std::vector<Program> out;
    out.emplace_back(std::vector<std::string>{"bash", "-c", script(named, kBashLoad, kBashSave),
                                              "bash", request.code},
                     search_path("bash", path));
    out.emplace_back(
        std::vector<std::string>{"sh", "-c", script(named, kShLoad, kShSave), "sh", request.code},
        search_path("sh", path));
    return out;
}

}  // namespace opensandbox::agent

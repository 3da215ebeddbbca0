#include "agent/session/shell_program.hpp"

namespace opensandbox::agent {
namespace {

// Both parts are run from one line of the arguments, so that error messages count the lines of the
// user's text from 1. Bash before 4.4 has no such mapfile and reads byte by byte.
constexpr std::string_view kBashStart =
    R"(builtin mapfile -d '' -t -u 3 __opensandbox 2>/dev/null || { )"
    R"(IFS= builtin read -r -d '' -u 3 '__opensandbox[0]'; )"
    R"(IFS= builtin read -r -d '' -u 3 '__opensandbox[1]'; }; exec 3<&-; )"
    R"(builtin eval "${__opensandbox[0]}"; builtin eval "${__opensandbox[1]}" 4>&-; )"
    R"({ __opensandbox_save; } >/dev/null 2>&1)";

constexpr std::string_view kPosixStart =
    R"(if command -v cat >/dev/null 2>&1; then __opensandbox=$(cat <&3); )"
    R"(else while IFS= read -r __opensandbox_line; do )"
    R"(__opensandbox=$__opensandbox$__opensandbox_line'
'; done <&3; fi; exec 3<&-; eval "$__opensandbox")";

// `exit` in a function leaves two things behind. Descriptor 4 is still away, where bash puts what
// it will bring back: at 10. And the function's own variables hide those of the session: every
// global one is marked with an attribute that means nothing, and what hides it is taken away.
//
// The options come first, as a command that fails or is traced would spoil the rest. Variables that
// the next shell must have of its own are dropped.
constexpr std::string_view kBashSave = R"sh(__opensandbox_save() {
builtin set -- "$?" "$SHELLOPTS" 4
builtin local -
builtin set +euvx
builtin unset -f __opensandbox_save
{ builtin : >&4; } 2>/dev/null || builtin set -- "$1" "$2" 10
if ((${#FUNCNAME[@]} > 1)); then
while IFS= builtin read -r __opensandbox_name; do builtin set -- "$@" "$__opensandbox_name"; done < <(builtin compgen -v)
builtin unset -v __opensandbox_name
while (($# > 3)); do
builtin set -- "$1" "$2" "$3" "$4" "${#FUNCNAME[@]}" "${@:5}"
if builtin declare -gt "$4"; then
while [[ ${!4@a} != *t* && $5 -gt 0 ]]; do
builtin unset -v "$4"
builtin set -- "$1" "$2" "$3" "$4" $(($5 - 1)) "${@:6}"
done
builtin declare -g +t "$4"
[[ -v $4 || ${!4@a} ]] || builtin unset -v "$4"
fi
builtin set -- "$1" "$2" "$3" "${@:6}"
done
fi
{
builtin printf '%s\0' @MARK@
builtin pwd
builtin printf '\0'
case :$2: in *:errexit:*) builtin printf e ;; esac
case :$2: in *:nounset:*) builtin printf u ;; esac
case :$2: in *:verbose:*) builtin printf v ;; esac
case :$2: in *:xtrace:*) builtin printf x ;; esac
builtin printf '\0'
case :$2: in *:posix:*) builtin declare -p POSIXLY_CORRECT ;; esac
builtin set +o posix
builtin printf 'builtin set +o braceexpand +o hashall +o interactive-comments -o %s +euvx\n' "${2//:/ -o }"
builtin printf 'builtin '
builtin shopt -p expand_aliases
builtin printf '\0'
builtin umask -p
builtin shopt -p
builtin printf 'shopt -u expand_aliases\n'
builtin unset -v RANDOM SRANDOM LINENO SECONDS EPOCHREALTIME EPOCHSECONDS HISTCMD COMP_WORDBREAKS
builtin unset -v BASHPID BASH_ARGV0 BASH_COMMAND BASH_EXECUTION_STRING BASH_SUBSHELL BASH_XTRACEFD
builtin declare -p
builtin alias -p
builtin printf '\0'
builtin declare -f
builtin declare -Fx
builtin printf '\0%s\0' @MARK@
} >&"$3"
builtin return "$1"
}
)sh";

constexpr std::string_view kPosixSave = R"sh(__opensandbox_save() {
set -- "$?" "$-"
set +euvx
{
printf '%s\000' @MARK@
pwd
printf '\000'
case $2 in *e*) printf e ;; esac
case $2 in *u*) printf u ;; esac
case $2 in *v*) printf v ;; esac
case $2 in *x*) printf x ;; esac
printf '\000'
case $2 in *a*) printf 'set -a\n' ;; esac
case $2 in *b*) printf 'set -b\n' ;; esac
case $2 in *C*) printf 'set -C\n' ;; esac
case $2 in *f*) printf 'set -f\n' ;; esac
printf '\000umask %s\n' "$(umask)"
if [ -z "${BASH_VERSION-}${KSH_VERSION-}${ZSH_VERSION-}" ]; then
command unset -v PPID LINENO RANDOM SECONDS EPOCHREALTIME EPOCHSECONDS FUNCNAME
set
fi
export -p
if [ -z "${BASH_VERSION-}${KSH_VERSION-}${ZSH_VERSION-}" ]; then readonly -p; fi
printf '\000\000%s\000' @MARK@
} >&4
unset -f __opensandbox_save
return "$1"
}
)sh";

/// What the two kinds say differently. A user's function or alias may bear the name of a builtin.
struct Dialect {
    std::string_view start;
    std::string_view save;
    std::string_view prefix;    ///< before the name of a builtin
    std::string_view fresh;     ///< in a session's first run
    std::string_view defaults;  ///< takes away what a shell sets by itself
};

constexpr Dialect kBash{
    kBashStart, kBashSave, "builtin ", "builtin shopt -s expand_aliases\n",
    "builtin unset -v PATH HOME TERM SHELL SHLVL OLDPWD HOSTNAME HOSTTYPE MACHTYPE OSTYPE OPTERR "
    "PS4 BASH_LOADABLES_PATH IFS\n"};

constexpr Dialect kPosix{kPosixStart, kPosixSave, "command ", "",
                         "command unset -v PATH HOME SHLVL OLDPWD HOSTNAME PS1 PS2 PS4 IFS\n"};

const Dialect& dialect(ShellKind kind) {
    return kind == ShellKind::bash ? kBash : kPosix;
}

/// Goes to the run's directory, with OLDPWD as it was.
std::string change_directory(const std::string& builtin, const ShellProgram& program) {
    std::string to;
    if (!program.directory.empty()) {
        to = builtin + "cd -P -- " + quote_for_shell(program.directory) + " || " + builtin +
             "exit 1\n";
    } else if (program.state) {
        std::string quoted = quote_for_shell(program.state->directory);
        to = builtin + "cd -- " + quoted + " 2>/dev/null || { " + builtin + "cd -P .; " + builtin +
             "printf 'opensandbox: %s is gone, going on in %s\\n' " + quoted + " \"$PWD\" >&2; }\n";
    }
    if (to.empty()) return to;
    return builtin + "set -- \"${OLDPWD+set}\" \"${OLDPWD-}\"\n" + to +
           "if [ \"$1\" ]; then OLDPWD=$2; else " + builtin + "unset -v OLDPWD; fi\n" + builtin +
           "set --\n";
}

std::string with_mark(std::string_view text, std::string_view mark) {
    constexpr std::string_view kPlace = "@MARK@";
    std::string out(text);
    for (std::size_t at = 0; (at = out.find(kPlace, at)) != std::string::npos; at += mark.size()) {
        out.replace(at, kPlace.size(), mark);
    }
    return out;
}

}  // namespace

std::string ShellProgram::text_for_shell() const {
    const Dialect& words = dialect(kind);
    const std::string builtin(words.prefix);
    auto quietly = [&](const std::string& commands) {
        return builtin + "eval " + quote_for_shell(commands) + " >/dev/null 2>&1\n";
    };
    std::string out = kind == ShellKind::posix ? "unset -v __opensandbox __opensandbox_line\n" : "";
    out += with_mark(words.save, mark);
    if (state) {
        out += words.defaults;
        out += quietly(state->variables);
    } else {
        out += words.fresh;
    }
    out += change_directory(builtin, *this);
    for (const auto& [name, value] : exports) {
        out += "command export " + name + "=" + quote_for_shell(value) + " 2>/dev/null\n";
    }
    if (state) out += quietly(state->functions) + quietly(state->last);
    out += builtin + "trap '{ __opensandbox_save; } >/dev/null 2>&1' EXIT\n";
    std::string body;
    if (state && !state->flags.empty()) {
        body = "{ " + builtin + "set -" + state->flags + "; } 2>/dev/null; ";
    }
    body += text;
    if (kind == ShellKind::bash) {
        out += '\0' + builtin + "unset -v __opensandbox; " + body;
    } else {
        out += builtin + "eval " + quote_for_shell(body) +
               " 4>&-; { __opensandbox_save; } >/dev/null 2>&1\n";
    }
    return out;
}

std::vector<std::string> shell_arguments(ShellKind kind) {
    std::string start(dialect(kind).start);
    if (kind == ShellKind::bash) return {"bash", "--noprofile", "--norc", "-c", std::move(start)};
    return {"sh", "-c", std::move(start)};
}

bool is_identifier(std::string_view name) {
    auto letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    if (name.empty() || !letter(name.front())) return false;
    for (char c : name) {
        if (!letter(c) && (c < '0' || c > '9')) return false;
    }
    return true;
}

}  // namespace opensandbox::agent

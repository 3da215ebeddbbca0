#include "cli/completion.hpp"

namespace opensandbox::cli {

namespace {

// The answer to `complete` has one candidate a line; the line ":files" asks for local paths.

constexpr std::string_view kBash =
    R"SCRIPT(# bash completion of PROGRAM:  source <(PROGRAM completion bash)
_FUNCTION_complete() {
    local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} i
    local -a words answer
    # bash splits words at '=' and ':'; the program wants them as they were typed.
    read -r -a words <<<"$line"
    [[ $line == *[[:blank:]] ]] && words+=("")
    local IFS=$'\n'
    answer=($("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null))
    COMPREPLY=()
    local typed=${words[${#words[@]}-1]}
    local cut=${typed%"$current"}
    [[ $current == [=:] ]] && cut=$typed current=""
    for i in "${answer[@]}"; do
        if [[ $i == :files ]]; then
            compopt -o filenames 2>/dev/null
            COMPREPLY+=($(compgen -f -- "$current"))
        else
            COMPREPLY+=("${i#"$cut"}")
        fi
    done
}
complete -F _FUNCTION_complete PROGRAM
)SCRIPT";

constexpr std::string_view kZsh = R"SCRIPT(#compdef PROGRAM
# zsh completion of PROGRAM:  source <(PROGRAM completion zsh)
_FUNCTION_complete() {
    local -a answer candidates
    local line
    answer=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${answer[@]}"; do
        [[ -z $line || $line == :files ]] || candidates+=("$line")
    done
    (( ${#candidates} )) && compadd -- "${candidates[@]}"
    (( ${answer[(Ie):files]} )) && _files
    return 0
}
compdef _FUNCTION_complete PROGRAM
)SCRIPT";

constexpr std::string_view kFish =
    R"SCRIPT(# fish completion of PROGRAM:  PROGRAM completion fish | source
function __FUNCTION_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] complete -- $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c PROGRAM -f -a "(__FUNCTION_complete)"
)SCRIPT";

std::string filled(std::string_view text, std::string_view program) {
    std::string function;
    for (char c : program) {
        const bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        function += letter ? c : '_';
    }
    std::string out(text);
    auto replace = [&](std::string_view what, std::string_view by) {
        for (auto at = out.find(what); at != std::string::npos; at = out.find(what, at + by.size()))
            out.replace(at, what.size(), by);
    };
    replace("PROGRAM", program);
    replace("FUNCTION", function);
    return out;
}

}  // namespace

std::string completion_script(std::string_view shell, std::string_view program) {
    if (shell == "bash") return filled(kBash, program);
    if (shell == "zsh") return filled(kZsh, program);
    if (shell == "fish") return filled(kFish, program);
    return {};
}

}  // namespace opensandbox::cli

#include "imagebuild/dockerfile.hpp"
#include "imagebuild/words.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::imagebuild {
namespace {

Error refused_instruction(std::string rule) {
    return {ErrorCode::invalid_argument, std::move(rule)};
}

constexpr std::array kVerbs{
    Verb::add,    Verb::arg,   Verb::cmd, Verb::copy,  Verb::entrypoint, Verb::env,
    Verb::expose, Verb::label, Verb::run, Verb::shell, Verb::user,       Verb::workdir,
};
/// Known to others, and not done here.
constexpr std::array<std::string_view, 5> kUnsupported{"HEALTHCHECK", "MAINTAINER", "ONBUILD",
                                                       "STOPSIGNAL", "VOLUME"};

Result<Verb> verb_of(std::string_view text) {
    for (Verb verb : kVerbs) {
        if (equal_ignoring_case(to_string(verb), text)) return verb;
    }
    for (std::string_view name : kUnsupported) {
        if (equal_ignoring_case(name, text))
            return refused_instruction("this instruction is not supported");
    }
    return refused_instruction("there is no such instruction");
}

/// What stands after the instruction's name is needed by all of them.
Status need(std::string_view rest, std::string_view what) {
    return rest.empty() ? Status(refused_instruction("needs " + std::string(what))) : Status();
}

Status refuse_flags(std::string_view rest) {
    const Flags flags = take_flags(rest);
    if (flags.values.empty()) return {};
    return refused_instruction("--" + flags.values.front().first + " is not supported");
}

Status take_copy_flags(Instruction& out, Verb verb, std::string_view& rest) {
    const Flags flags = take_flags(rest);
    for (const auto& [name, value] : flags.values) {
        std::optional<std::string>* into = nullptr;
        if (name == "chown") into = &out.chown;
        if (name == "chmod") into = &out.chmod;
        if (name == "from" && verb == Verb::copy) into = &out.from;
        if (!into) return refused_instruction("--" + name + " is not supported");
        if (value.empty())
            return refused_instruction("--" + name + " needs a value: --" + name + "=…");
        if (*into) return refused_instruction("--" + name + " stands here twice");
        *into = value;
    }
    rest = flags.rest;
    return {};
}

Status parse_copy(Instruction& out, std::string_view rest, const LogicalLine& line, char escape) {
    if (!line.documents.empty())
        return refused_instruction("here-documents are supported with RUN only");
    if (Status taken = take_copy_flags(out, out.verb, rest); !taken) return taken;
    auto exec = parse_exec_form(rest);
    if (!exec) return exec.error();
    out.exec_form = exec->has_value();
    out.words = *exec ? std::move(**exec) : split_words(rest, escape);
    if (out.words.size() < 2)
        return refused_instruction("needs at least one source and a destination");
    return {};
}

/// RUN with here-documents: their script alone, or the command with them as the shell takes them.
Result<std::string> with_documents(std::string_view rest, const LogicalLine& line, char escape) {
    const bool alone = split_words(rest, escape).size() == 1;
    if (!alone) {
        std::string text(rest);
        for (const HereDocument& document : line.documents)
            text += "\n" + document.content + document.name;
        return text + "\n";
    }
    const HereDocument& document = line.documents.front();
    std::string script;
    bool at_start = true;
    for (char c : document.content) {
        if (document.strip_tabs && at_start && c == '\t') continue;
        at_start = c == '\n';
        script += c;
    }
    if (script.starts_with("#!")) {
        return refused_instruction(
            "a here-document with #! is not supported: it is run by the SHELL");
    }
    return script;
}

Status parse_run(Instruction& out, std::string_view rest, const LogicalLine& line, char escape) {
    if (Status ok = refuse_flags(rest); !ok) return ok;
    if (Status ok = need(rest, "a command"); !ok) return ok;
    if (!line.documents.empty()) {
        auto script = with_documents(rest, line, escape);
        if (!script) return script.error();
        out.words = {std::move(*script)};
        return {};
    }
    auto exec = parse_exec_form(rest);
    if (!exec) return exec.error();
    out.exec_form = exec->has_value();
    if (*exec && (*exec)->empty()) return refused_instruction("the JSON array is empty");
    out.words = *exec ? std::move(**exec) : std::vector<std::string>{std::string(rest)};
    return {};
}

/// CMD and ENTRYPOINT: an empty JSON array takes away what is inherited.
Status parse_command(Instruction& out, std::string_view rest) {
    if (Status ok = need(rest, "a command"); !ok) return ok;
    auto exec = parse_exec_form(rest);
    if (!exec) return exec.error();
    out.exec_form = exec->has_value();
    out.words = *exec ? std::move(**exec) : std::vector<std::string>{std::string(rest)};
    return {};
}

Status parse_shell(Instruction& out, std::string_view rest) {
    auto exec = parse_exec_form(rest);
    if (!exec) return exec.error();
    if (!*exec || (*exec)->empty()) {
        return refused_instruction("must be a JSON array, such as [\"/bin/sh\", \"-c\"]");
    }
    out.exec_form = true;
    out.words = std::move(**exec);
    return {};
}

/// NAME=value …, or the old form of one name and the rest of the line.
Status parse_pairs(Instruction& out, std::string_view rest, char escape) {
    if (Status ok = need(rest, "NAME=value"); !ok) return ok;
    const std::vector<std::string> words = split_words(rest, escape);
    if (words.front().find('=') == std::string::npos) {
        const auto blank = rest.find_first_of(" \t");
        if (blank == std::string_view::npos)
            return refused_instruction("'" + words.front() + "': needs a value");
        out.pairs.emplace_back(std::string(rest.substr(0, blank)),
                               std::string(trim(rest.substr(blank))));
        return {};
    }
    for (const std::string& word : words) {
        const auto equals = word.find('=');
        if (equals == std::string::npos) {
            return refused_instruction("'" + word +
                                       "': must be NAME=value (values with blanks in quotes)");
        }
        if (equals == 0) return refused_instruction("'" + word + "': has no name");
        out.pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    return {};
}

Status parse_arguments(Instruction& out, std::string_view rest, char escape) {
    if (Status ok = need(rest, "NAME or NAME=default"); !ok) return ok;
    for (const std::string& word : split_words(rest, escape)) {
        const auto equals = word.find('=');
        const std::string name = word.substr(0, equals);
        if (name.empty()) return refused_instruction("'" + word + "': has no name");
        std::optional<std::string> value;
        if (equals != std::string::npos) value = word.substr(equals + 1);
        out.pairs.emplace_back(name, std::move(value));
    }
    return {};
}

/// USER and WORKDIR: one value, which may hold blanks only in quotes or, for WORKDIR, as it stands.
Status parse_one(Instruction& out, std::string_view rest, char escape) {
    if (Status ok = need(rest, out.verb == Verb::user ? "a user" : "a directory"); !ok) return ok;
    if (out.verb == Verb::user && split_words(rest, escape).size() != 1) {
        return refused_instruction("must be USER NAME[:GROUP] or UID[:GID]");
    }
    out.words = {std::string(rest)};
    return {};
}

std::string shown_text(Verb verb, std::string_view rest) {
    std::string text(to_string(verb));
    text += ' ';
    for (char c : rest)
        text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    return text;
}

}  // namespace

Flags take_flags(std::string_view text) {
    Flags flags;
    flags.rest = trim(text);
    while (flags.rest.starts_with("--")) {
        const auto blank = flags.rest.find_first_of(" \t");
        const std::string_view word = flags.rest.substr(
            2, blank == std::string_view::npos ? std::string_view::npos : blank - 2);
        flags.rest =
            blank == std::string_view::npos ? std::string_view() : trim(flags.rest.substr(blank));
        if (word.empty()) break;  // "--" alone ends them
        const auto equals = word.find('=');
        const std::string_view value =
            equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
        flags.values.emplace_back(std::string(word.substr(0, equals)), std::string(value));
    }
    return flags;
}

Result<Instruction> parse_instruction(std::string_view name, std::string_view rest,
                                      const LogicalLine& line, char escape) {
    auto verb = verb_of(name);
    if (!verb) return verb.error();
    Instruction out;
    out.verb = *verb;
    out.line = line.number;
    out.text = shown_text(*verb, rest);
    Status parsed;
    switch (*verb) {
        case Verb::add:
        case Verb::copy: parsed = parse_copy(out, rest, line, escape); break;
        case Verb::run: parsed = parse_run(out, rest, line, escape); break;
        case Verb::cmd:
        case Verb::entrypoint: parsed = parse_command(out, rest); break;
        case Verb::shell: parsed = parse_shell(out, rest); break;
        case Verb::env:
        case Verb::label: parsed = parse_pairs(out, rest, escape); break;
        case Verb::arg: parsed = parse_arguments(out, rest, escape); break;
        case Verb::expose:
            parsed = need(rest, "a port");
            out.words = split_words(rest, escape);
            break;
        case Verb::user:
        case Verb::workdir: parsed = parse_one(out, rest, escape); break;
    }
    if (!parsed) return parsed.error();
    return out;
}

}  // namespace opensandbox::imagebuild

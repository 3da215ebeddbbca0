#include "imagebuild/dockerfile.hpp"

#include "imagebuild/words.hpp"

#include <algorithm>
#include <cctype>

namespace opensandbox::imagebuild {
namespace {

/// Lower-case letter first, then letters, digits, "_", "-" and ".".
bool is_stage_name(std::string_view name) {
    auto is_part = [](unsigned char c) {
        return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_' || c == '-' || c == '.';
    };
    return !name.empty() && std::islower(static_cast<unsigned char>(name.front())) != 0 &&
           std::ranges::all_of(name, is_part);
}

Result<Stage> parse_from(std::string_view rest, const LogicalLine& line, char escape) {
    auto refused = [](std::string rule) {
        return Error(ErrorCode::invalid_argument, std::move(rule));
    };
    const Flags flags = take_flags(rest);
    if (!flags.values.empty()) {
        return refused("--" + flags.values.front().first +
                       " is not supported: images are built for the server's platform");
    }
    const std::vector<std::string> words = split_words(flags.rest, escape);
    if (words.size() != 1 && words.size() != 3) {
        return refused("must be FROM IMAGE or FROM IMAGE AS NAME");
    }
    Stage stage;
    stage.line = line.number;
    stage.base = words[0];
    if (words.size() == 3) {
        if (!equal_ignoring_case(words[1], "as")) {
            return refused("must be FROM IMAGE AS NAME, not '" + words[1] + "'");
        }
        stage.name = to_lower(words[2]);
        if (!is_stage_name(stage.name) || stage.name == "scratch") {
            return refused("'" + words[2] +
                           "' cannot name a stage: a letter, then letters, digits, _ - .");
        }
    }
    return stage;
}

Status add_stage(Dockerfile& out, Stage stage) {
    auto same = [&](const Stage& other) { return !other.name.empty() && other.name == stage.name; };
    if (std::ranges::any_of(out.stages, same)) {
        return Error(ErrorCode::invalid_argument, "there is a stage '" + stage.name + "' already");
    }
    out.stages.push_back(std::move(stage));
    return {};
}

Status add_line(Dockerfile& out, const LogicalLine& line) {
    const std::string_view text = line.text;
    const auto blank = text.find_first_of(" \t");
    const std::string_view verb = text.substr(0, blank);
    const std::string_view rest =
        blank == std::string_view::npos ? std::string_view() : trim(text.substr(blank));
    if (equal_ignoring_case(verb, "from")) {
        auto stage = parse_from(rest, line, out.escape);
        return stage ? add_stage(out, std::move(*stage)) : Status(stage.error());
    }
    auto instruction = parse_instruction(verb, rest, line, out.escape);
    if (!instruction) return instruction.error();
    if (!out.stages.empty()) {
        out.stages.back().instructions.push_back(std::move(*instruction));
    } else if (instruction->verb == Verb::arg) {
        out.global_arguments.push_back(std::move(*instruction));
    } else {
        return Error(ErrorCode::invalid_argument, "only ARG may stand before the first FROM");
    }
    return {};
}

/// The instruction's name in the way of the documentation, cut when it is none.
std::string shown_verb(std::string_view text) {
    std::string verb(text.substr(0, text.find_first_of(" \t")));
    if (verb.size() > 32) verb = verb.substr(0, 32) + "…";
    std::ranges::transform(verb, verb.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return verb;
}

}  // namespace

std::string_view to_string(Verb verb) {
    switch (verb) {
        case Verb::add: return "ADD";
        case Verb::arg: return "ARG";
        case Verb::cmd: return "CMD";
        case Verb::copy: return "COPY";
        case Verb::entrypoint: return "ENTRYPOINT";
        case Verb::env: return "ENV";
        case Verb::expose: return "EXPOSE";
        case Verb::label: return "LABEL";
        case Verb::run: return "RUN";
        case Verb::shell: return "SHELL";
        case Verb::user: return "USER";
        case Verb::workdir: return "WORKDIR";
    }
    return "RUN";
}

Result<Dockerfile> parse_dockerfile(std::string_view text, std::string file) {
    auto lines = split_dockerfile(text, std::move(file));
    if (!lines) return lines.error();
    Dockerfile out;
    out.file = lines->file;
    out.escape = lines->escape;
    for (const LogicalLine& line : lines->lines) {
        if (Status added = add_line(out, line); !added) {
            return dockerfile_error(out.file, line.number,
                                    shown_verb(line.text) + ": " + added.error().message());
        }
    }
    if (out.stages.empty()) {
        return Error(ErrorCode::invalid_argument, out.file + ": there is no FROM in it");
    }
    return out;
}

}  // namespace opensandbox::imagebuild

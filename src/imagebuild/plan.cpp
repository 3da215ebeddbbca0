#include "imagebuild/plan.hpp"

#include "imagebuild/words.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::imagebuild {
namespace {

std::optional<std::size_t> number_of(std::string_view text) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return number;
}

/// The stage of that name among the first `before`.
std::optional<std::size_t> find_stage(const Dockerfile& from, std::string_view name,
                                      std::size_t before) {
    const std::string wanted = to_lower(name);
    for (std::size_t i = std::min(before, from.stages.size()); i-- > 0;) {
        if (!from.stages[i].name.empty() && from.stages[i].name == wanted) return i;
    }
    return std::nullopt;
}

Result<Variables> global_variables(const Dockerfile& from, const Variables& build_arguments) {
    Variables globals;
    for (const Instruction& argument : from.global_arguments) {
        for (const auto& [name, fallback] : argument.pairs) {
            if (auto given = build_arguments.find(name); given != build_arguments.end()) {
                globals[name] = given->second;
            } else if (fallback) {
                auto value = expand(*fallback, globals, from.escape);
                if (!value) {
                    return dockerfile_error(from.file, argument.line,
                                            "ARG: " + value.error().message());
                }
                globals[name] = std::move(*value);
            }
        }
    }
    return globals;
}

Result<Source> base_of(const Dockerfile& from, std::size_t index, const Variables& globals) {
    const Stage& stage = from.stages[index];
    auto base = expand(stage.base, globals, from.escape);
    if (!base) {
        return dockerfile_error(from.file, stage.line, "FROM: " + base.error().message());
    }
    if (base->empty()) {
        return dockerfile_error(from.file, stage.line,
                                "FROM: '" + stage.base + "' is empty; give it with --build-arg");
    }
    if (auto earlier = find_stage(from, *base, index)) return Source(StageSource(*earlier));
    return Source(ImageSource(std::move(*base)));
}

/// Marks the stages that the target stands on or copies from.
Status mark_needed(const Dockerfile& from, const std::vector<Source>& bases, std::size_t target,
                   std::vector<bool>& needed) {
    needed[target] = true;
    for (std::size_t i = target + 1; i-- > 0;) {
        if (!needed[i]) continue;
        if (const auto* stage = std::get_if<StageSource>(&bases[i])) needed[stage->index] = true;
        for (const Instruction& instruction : from.stages[i].instructions) {
            if (!instruction.from) continue;
            auto source = resolve_source(from, *instruction.from, i);
            if (!source) {
                return dockerfile_error(from.file, instruction.line,
                                        "COPY: " + source.error().message());
            }
            if (const auto* stage = std::get_if<StageSource>(&*source)) needed[stage->index] = true;
        }
    }
    return {};
}

Result<std::size_t> target_of(const Dockerfile& from, std::string_view target) {
    if (target.empty()) return from.stages.size() - 1;
    if (auto found = find_stage(from, target, from.stages.size())) return *found;
    if (auto number = number_of(target); number && *number < from.stages.size()) return *number;
    std::string names;
    for (const Stage& stage : from.stages) {
        if (!stage.name.empty()) names += (names.empty() ? "" : ", ") + stage.name;
    }
    return Error(ErrorCode::invalid_argument,
                 from.file + ": there is no stage '" + std::string(target) + "'" +
                     (names.empty() ? std::string() : "; there are " + names));
}

}  // namespace

Result<Source> resolve_source(const Dockerfile& from, std::string_view name, std::size_t user) {
    auto refused = [&](std::string_view rule) {
        return Error(ErrorCode::invalid_argument,
                     "--from=" + std::string(name) + ": " + std::string(rule));
    };
    if (name.find('$') != std::string_view::npos) return refused("variables are not replaced here");
    if (auto stage = find_stage(from, name, user)) return Source(StageSource(*stage));
    if (auto number = number_of(name)) {
        if (*number < user) return Source(StageSource(*number));
        return refused("must be the number of an earlier stage");
    }
    if (find_stage(from, name, from.stages.size())) return refused("must be an earlier stage");
    if (name == kScratch) return refused("there is nothing in it");
    return Source(ImageSource(std::string(name)));
}

Result<Plan> make_plan(const Dockerfile& from, const Variables& build_arguments,
                       std::string_view target) {
    auto globals = global_variables(from, build_arguments);
    if (!globals) return globals.error();
    auto last = target_of(from, target);
    if (!last) return last.error();
    std::vector<Source> bases;
    for (std::size_t i = 0; i <= *last; ++i) {
        auto base = base_of(from, i, *globals);
        if (!base) return base.error();
        bases.push_back(std::move(*base));
    }
    std::vector<bool> needed(bases.size());
    if (Status marked = mark_needed(from, bases, *last, needed); !marked) return marked.error();
    Plan plan;
    plan.globals = std::move(*globals);
    for (std::size_t i = 0; i < bases.size(); ++i) {
        if (!needed[i]) continue;
        PlannedStage stage;
        stage.index = i;
        stage.base = std::move(bases[i]);
        plan.stages.push_back(std::move(stage));
    }
    return plan;
}

}  // namespace opensandbox::imagebuild

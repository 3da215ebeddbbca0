#include "imagebuild/builder.hpp"

#include "imagebuild/cache_key.hpp"
#include "imagebuild/step_runner.hpp"
#include "imagebuild/workshop.hpp"
#include "net/task.hpp"
#include "sdk/transport.hpp"

#include <algorithm>
#include <optional>

namespace opensandbox::imagebuild {
namespace {

/// What a stage has become so far.
struct StageImage {
    StageImage(std::string r, std::string d, const StageState& s)
        : reference(std::move(r)), digest(std::move(d)), state(s) {}
    std::string reference;
    std::string digest;
    StageState state;
};

/// A COPY from the context with what its sources come to.
struct Sources {
    Selection selection;
    std::string digest;
};

void add_variables(CacheKey& key, const Variables& variables) {
    key.add(std::to_string(variables.size()));
    for (const auto& [name, value] : variables)
        key.add(name).add(value);
}

void add_list(CacheKey& key, const std::vector<std::string>& list) {
    key.add(std::to_string(list.size()));
    for (const std::string& item : list)
        key.add(item);
}

std::string key_of(const std::string& parent, const RunStep& step) {
    CacheKey key;
    key.add("run").add(parent).add(step.user).add(step.directory);
    add_list(key, step.arguments);
    add_variables(key, step.environment);
    return key.digest();
}

std::string key_of(const std::string& parent, const DirectoryStep& step) {
    CacheKey key;
    key.add("directory").add(parent).add(step.path).add(step.owner).add(step.group);
    return key.digest();
}

/// `content` is what the sources hold: the digest of the files, or of the image they are in.
std::string key_of(const std::string& parent, const CopyStep& step, const std::string& content) {
    CacheKey key;
    key.add(step.unpack ? "add" : "copy").add(parent).add(content);
    key.add(step.from ? "image" : "context").add(step.destination);
    key.add(step.into_directory ? "/" : "").add(step.owner).add(step.group);
    key.add(step.mode ? std::to_string(*step.mode) : "");
    // Files are known by their content; of an image, which of them are taken is not.
    if (step.from) add_list(key, step.sources);
    return key.digest();
}

Result<Sources> find_sources(Context& context, const CopyStep& step) {
    auto selection = select(context.entries(), step.sources);
    if (!selection) return selection.error();
    if (selection->several && !step.into_directory) {
        return Error(ErrorCode::invalid_argument,
                     "several things match: the destination must end with /");
    }
    CacheKey key;
    for (const Member& member : selection->members) {
        const ContextEntry& entry = context.entries().find(member.source)->second;
        key.add(member.name).add(member.named ? "1" : "0").add(std::to_string(entry.mode));
        if (entry.kind == EntryKind::directory) {
            key.add("directory");
        } else if (entry.kind == EntryKind::link) {
            key.add("link").add(entry.target);
        } else {
            auto digest = context.digest_of(member.source);
            if (!digest) return digest.error();
            key.add("file").add(*digest);
        }
    }
    Sources out;
    out.selection = std::move(*selection);
    out.digest = key.digest();
    return out;
}

/// One build from its start to its end.
class Build {
  public:
    Build(sdk::Connection connection, BuildRequest request, BuildObserver observer,
          Cancellation& cancellation)
        : request_(std::move(request)),
          observer_(std::move(observer)),
          cancellation_(cancellation),
          workshop_(std::move(connection), request_.resource_limits),
          runner_(cancellation, files_, observer_.on_output) {}

    Awaitable<sdk::Result<BuildResult>> run() {
        auto image = co_await build();
        auto left = co_await workshop_.clean_up();
        for (std::string& what : left)
            result_.notes.push_back("could not be removed: " + what);
        if (cancellation_.requested()) co_return with_notes(Cancellation::error());
        if (!image) co_return with_notes(image.error());
        result_.image = std::move(*image);
        note_unused_arguments();
        co_return std::move(result_);
    }

  private:
    const Dockerfile& file() const { return request_.dockerfile; }

    sdk::Error with_notes(const sdk::Error& error) const {
        if (result_.notes.empty()) return error;
        std::string all = error.message();
        for (const std::string& note : result_.notes)
            all += "; " + note;
        return {error.code(), error.status(), error.wire_code(), all, error.request_id()};
    }

    sdk::Error at(std::size_t line, std::string_view verb, const sdk::Error& error) const {
        return error.within(file().file + ":" + std::to_string(line) + ": " + std::string(verb));
    }

    Awaitable<sdk::Result<sdk::ImageInfo>> build() {
        auto plan = make_plan(file(), request_.arguments, request_.target);
        if (!plan) co_return sdk::to_public(plan.error());
        plan_ = std::move(*plan);
        auto known = co_await workshop_.look_around();
        if (!known) co_return known.error();
        for (const PlannedStage& stage : plan_.stages) {
            auto built = co_await build_stage(stage);
            if (!built) co_return built.error();
        }
        co_return co_await finish(images_.at(plan_.stages.back().index));
    }

    /// Names the result.
    Awaitable<sdk::Result<sdk::ImageInfo>> finish(StageImage last) {
        std::vector<std::string> references = request_.references;
        const ImageSettings& settings = last.state.settings();
        if (references.empty()) {
            CacheKey key;
            key.add("result").add(last.digest).add(settings.user).add(settings.working_directory);
            add_variables(key, settings.environment);
            add_list(key, settings.entrypoint);
            add_list(key, settings.cmd);
            for (const auto& [name, value] : settings.labels)
                key.add(name).add(value);
            add_list(key, settings.exposed_ports);
            references.push_back(cache_reference(key.digest()));
        }
        std::optional<sdk::ImageInfo> first;
        for (const std::string& reference : references) {
            auto image = co_await workshop_.tag(last.reference, reference, settings);
            if (!image) co_return image.error();
            if (!first) first = std::move(*image);
        }
        co_return std::move(*first);
    }

    /// An image that FROM or --from names; the same one for the whole build.
    Awaitable<sdk::Result<BaseImage>> base_image(std::string reference) {
        auto known = bases_.find(reference);
        if (known != bases_.end()) co_return known->second;
        auto base = reference == kScratch ? co_await workshop_.scratch()
                                          : co_await workshop_.base(reference);
        if (base) bases_[reference] = *base;
        co_return base;
    }

    Awaitable<sdk::Status> build_stage(PlannedStage planned) {
        const Stage& stage = file().stages[planned.index];
        stage_name_ = stage.name.empty() ? std::to_string(planned.index) : stage.name;
        if (const auto* image = std::get_if<ImageSource>(&planned.base)) {
            if (image->reference == "host") {
                co_return at(stage.line, "FROM",
                             sdk::Error(sdk::ErrorCode::invalid_argument,
                                        "'host' is this machine's own /usr: no image can be built "
                                        "on it"));
            }
            auto base = co_await base_image(image->reference);
            if (!base) co_return at(stage.line, "FROM", base.error());
            const StageState state(base->settings, plan_.globals, request_.arguments,
                                   file().escape);
            images_.emplace(planned.index, StageImage(base->reference, base->digest, state));
        } else {
            StageImage below = images_.at(std::get<StageSource>(planned.base).index);
            below.state.begin();
            images_.emplace(planned.index, std::move(below));
        }
        StageImage& current = images_.at(planned.index);
        for (const Instruction& instruction : stage.instructions) {
            if (cancellation_.requested()) co_return Cancellation::error();
            auto step = current.state.apply(instruction);
            if (!step) {
                co_return at(instruction.line, to_string(instruction.verb),
                             sdk::to_public(step.error()));
            }
            auto done = co_await take_step(current, planned.index, instruction, std::move(*step));
            if (!done) co_return at(instruction.line, to_string(instruction.verb), done.error());
        }
        for (const std::string& name : current.state.used_arguments())
            used_.push_back(name);
        co_return sdk::Status();
    }

    Awaitable<sdk::Status> take_step(StageImage& current, std::size_t stage,
                                     Instruction instruction, Step step) {
        if (auto* run = std::get_if<RunStep>(&step)) {
            const std::string key = key_of(current.digest, *run);
            if (take_cached(current, key, instruction)) co_return sdk::Status();
            auto work = [&](sdk::Sandbox sandbox) {
                return runner_.run(std::move(sandbox), std::move(*run));
            };
            co_return co_await make(current, key, std::move(work));
        }
        if (auto* directory = std::get_if<DirectoryStep>(&step)) {
            const std::string key = key_of(current.digest, *directory);
            if (take_cached(current, key, instruction)) co_return sdk::Status();
            auto work = [&](sdk::Sandbox sandbox) {
                return runner_.make_directory(std::move(sandbox), std::move(*directory));
            };
            co_return co_await make(current, key, std::move(work));
        }
        if (auto* copy = std::get_if<CopyStep>(&step)) {
            if (copy->from) {
                co_return co_await copy_from(current, stage, std::move(instruction), *copy);
            }
            co_return co_await copy_context(current, std::move(instruction), *copy);
        }
        co_return sdk::Status();
    }

    Awaitable<sdk::Status> copy_context(StageImage& current, Instruction instruction,
                                        CopyStep& copy) {
        std::function<Result<Sources>()> find = [this, &copy]() -> Result<Sources> {
            if (!context_) {
                auto context = Context::open(request_.context, request_.ignore);
                if (!context) return context.error();
                context_ = std::move(*context);
            }
            return find_sources(*context_, copy);
        };
        auto sources = co_await net::run_blocking<Result<Sources>>(files_, std::move(find));
        if (!sources) co_return sdk::to_public(sources.error());
        const std::string key = key_of(current.digest, copy, sources->digest);
        if (take_cached(current, key, instruction)) co_return sdk::Status();
        auto work = [&](sdk::Sandbox sandbox) {
            return runner_.copy(std::move(sandbox), std::move(copy), *context_,
                                std::move(sources->selection));
        };
        co_return co_await make(current, key, std::move(work));
    }

    Awaitable<sdk::Status> copy_from(StageImage& current, std::size_t stage,
                                     Instruction instruction, CopyStep& copy) {
        auto source = resolve_source(file(), *copy.from, stage);
        if (!source) co_return sdk::to_public(source.error());
        std::string reference, digest;
        if (const auto* image = std::get_if<ImageSource>(&*source)) {
            auto base = co_await base_image(image->reference);
            if (!base) co_return base.error().within("--from");
            reference = base->reference;
            digest = base->digest;
        } else {
            const StageImage& other = images_.at(std::get<StageSource>(*source).index);
            reference = other.reference;
            digest = other.digest;
        }
        const std::string key = key_of(current.digest, copy, digest);
        if (take_cached(current, key, instruction)) co_return sdk::Status();
        auto from = co_await workshop_.open(reference);
        if (!from) co_return from.error();
        auto work = [&](sdk::Sandbox sandbox) {
            return runner_.copy(std::move(sandbox), std::move(copy), *from);
        };
        auto made = co_await make(current, key, std::move(work));
        if (!made) co_return made;
        co_return co_await workshop_.close(*from);
    }

    /// Whether an earlier build has done this already.
    bool take_cached(StageImage& current, const std::string& key, const Instruction& instruction) {
        ++result_.steps;
        const std::string reference = cache_reference(key);
        const sdk::ImageInfo* found =
            request_.use_cache || made_.contains(reference) ? workshop_.find(reference) : nullptr;
        if (observer_.on_step) observer_.on_step(stage_name_, instruction.text, found != nullptr);
        if (!found) return false;
        ++result_.cached;
        current.reference = reference;
        current.digest = found->digest;
        return true;
    }

    /// Does a step in a sandbox of its own and keeps what comes of it.
    Awaitable<sdk::Status> make(StageImage& current, std::string key,
                                std::function<Awaitable<sdk::Status>(sdk::Sandbox)> work) {
        if (cancellation_.requested()) co_return Cancellation::error();
        auto sandbox = co_await workshop_.open(current.reference);
        if (!sandbox) co_return sandbox.error();
        if (cancellation_.requested()) co_return Cancellation::error();
        auto done = co_await work(*sandbox);
        if (!done) co_return done;
        if (cancellation_.requested()) co_return Cancellation::error();
        const std::string reference = cache_reference(key);
        ImageSettings settings = current.state.settings();
        auto image = co_await workshop_.keep(*sandbox, reference, std::move(settings));
        if (!image) co_return image.error();
        made_[reference] = true;
        current.reference = reference;
        current.digest = image->digest;
        co_return sdk::Status();
    }

    void note_unused_arguments() {
        for (const Instruction& argument : file().global_arguments) {
            for (const auto& [name, value] : argument.pairs)
                used_.push_back(name);
        }
        for (const auto& [name, value] : request_.arguments) {
            if (is_proxy_argument(name) || std::ranges::find(used_, name) != used_.end()) continue;
            result_.notes.push_back("--build-arg " + name + ": no ARG takes it");
        }
    }

    BuildRequest request_;
    BuildObserver observer_;
    Cancellation& cancellation_;
    asio::thread_pool files_{1};
    Workshop workshop_;
    StepRunner runner_;
    Plan plan_;
    std::optional<Context> context_;
    std::map<std::size_t, StageImage> images_;
    std::map<std::string, BaseImage> bases_;
    std::map<std::string, bool> made_;  ///< by this build
    std::vector<std::string> used_;
    std::string stage_name_;
    BuildResult result_;
};

}  // namespace

Awaitable<sdk::Result<BuildResult>> build_image(sdk::Connection connection, BuildRequest request,
                                                BuildObserver observer,
                                                Cancellation& cancellation) {
    Build build(std::move(connection), std::move(request), std::move(observer), cancellation);
    co_return co_await build.run();
}

}  // namespace opensandbox::imagebuild

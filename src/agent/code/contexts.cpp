#include "agent/code/contexts.hpp"

#include "base/json_string.hpp"
#include "base/log.hpp"

#include <algorithm>

namespace opensandbox::agent {

std::string CodeContext::json() const {
    std::string out = "{\"id\":";
    append_json_string(out, id);
    out += ",\"language\":";
    append_json_string(out, language);
    out += '}';
    return out;
}

CodeContexts::CodeContexts(asio::any_io_executor executor, KernelProvider& drivers,
                           std::unique_ptr<KernelProvider> jupyter)
    : executor_(std::move(executor)), jupyter_(std::move(jupyter)), drivers_(drivers) {}

bool CodeContexts::knows(std::string_view language) {
    constexpr std::string_view kLanguages[] = {"python", "java",       "bash",
                                               "go",     "javascript", "typescript"};
    return std::ranges::find(kLanguages, language) != std::end(kLanguages);
}

CodeContexts::ContextPtr CodeContexts::add(std::string id, std::string language, std::string cwd,
                                           std::shared_ptr<Kernel> kernel) {
    auto context = std::make_shared<CodeContext>();
    context->id = std::move(id);
    context->language = std::move(language);
    context->cwd = std::move(cwd);
    context->kernel = std::move(kernel);
    context->queue = std::make_shared<RunQueue>(executor_);
    contexts_.push_back(context);
    return context;
}

Awaitable<Result<KernelProvider::Started>> CodeContexts::start(std::string language,
                                                               std::string cwd) {
    if (jupyter_) {
        auto started = co_await jupyter_->start(language, cwd);
        if (started || started.error().code() != ErrorCode::not_found) co_return started;
    }
    co_return co_await drivers_.start(language, cwd);
}

Awaitable<Result<CodeContexts::ContextPtr>> CodeContexts::create(std::string language,
                                                                 std::string cwd) {
    if (contexts_.size() + starting_ >= kMax) {
        co_return Error(ErrorCode::resource_exhausted,
                        "there are " + std::to_string(kMax) +
                            " code contexts, the most that one agent has: delete some");
    }
    struct Count {
        explicit Count(std::size_t& n) : number(n) { ++number; }
        Count(const Count&) = delete;
        Count& operator=(const Count&) = delete;
        ~Count() { --number; }
        std::size_t& number;
    };
    Count count(starting_);
    auto started = co_await start(language, cwd);
    if (!started) co_return started.error();
    co_return add(std::move(started->id), std::move(language), std::move(cwd),
                  std::move(started->kernel));
}

Awaitable<Result<CodeContexts::ContextPtr>> CodeContexts::default_for(std::string language) {
    auto& turns = default_turns_[language];
    if (!turns) turns = std::make_shared<RunQueue>(executor_);
    auto turn = co_await turns->take();
    auto former = defaults_[language].lock();
    if (former && !former->removed && former->kernel->alive()) co_return former;
    auto made = co_await create(language, "");
    if (made) defaults_[language] = *made;
    co_return made;
}

Awaitable<void> CodeContexts::recover() {
    if (!jupyter_ || recovered_) co_return;
    auto found = co_await jupyter_->recover();
    if (!found || recovered_) co_return;
    recovered_ = true;
    for (KernelProvider::Found& item : *found) {
        if (!known(item.id)) add(item.id, item.language, "", item.kernel);
    }
}

CodeContexts::ContextPtr CodeContexts::known(std::string_view id) const {
    auto at = std::ranges::find(contexts_, id, &CodeContext::id);
    return at == contexts_.end() ? nullptr : *at;
}

Awaitable<CodeContexts::ContextPtr> CodeContexts::find(std::string id) {
    if (ContextPtr context = known(id)) co_return context;
    co_await recover();
    co_return known(id);
}

Awaitable<std::vector<CodeContexts::ContextPtr>> CodeContexts::list(std::string language) {
    co_await recover();
    std::vector<ContextPtr> out;
    for (const ContextPtr& context : contexts_) {
        if (language.empty() || context->language == language) out.push_back(context);
    }
    co_return out;
}

Awaitable<Status> CodeContexts::remove(ContextPtr context) {
    if (context->removed) {
        co_return Error(ErrorCode::not_found, "no such code context: " + context->id);
    }
    context->removed = true;
    std::erase(contexts_, context);
    co_return co_await context->kernel->shut_down();
}

}  // namespace opensandbox::agent

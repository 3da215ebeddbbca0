#pragma once

#include "agent/code/kernel.hpp"
#include "agent/code/run_queue.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// A place where code of one language is run, piece after piece (execd contract 5).
struct CodeContext {
    std::string id;
    std::string language;
    std::string cwd;  ///< absolute; empty for the agent's own
    std::shared_ptr<Kernel> kernel;
    std::shared_ptr<RunQueue> queue;
    bool removed = false;

    /// `{"id","language"}`.
    [[nodiscard]] std::string json() const;
};

/// The contexts of one agent. There is no end to their life but DELETE and the agent's.
class CodeContexts {
  public:
    static constexpr std::size_t kMax = 64;

    using ContextPtr = std::shared_ptr<CodeContext>;

    /// `drivers` is borrowed; `jupyter` comes first for what it can run, and may be null.
    CodeContexts(asio::any_io_executor executor, KernelProvider& drivers,
                 std::unique_ptr<KernelProvider> jupyter);
    CodeContexts(const CodeContexts&) = delete;
    CodeContexts& operator=(const CodeContexts&) = delete;

    /// Whether code of this language can have a context somewhere.
    static bool knows(std::string_view language);

    /// `not_found` when nothing here runs the language, naming what was looked for;
    /// `resource_exhausted` with kMax contexts.
    Awaitable<Result<ContextPtr>> create(std::string language, std::string cwd);
    /// The one for runs without an id, made when it is first wanted.
    Awaitable<Result<ContextPtr>> default_for(std::string language);
    /// Null when this agent has none of this id.
    [[nodiscard]] ContextPtr known(std::string_view id) const;
    /// The same, and also what a former agent left at the Jupyter server.
    Awaitable<ContextPtr> find(std::string id);
    /// Of one language, or all when it is empty; in the order of their making.
    Awaitable<std::vector<ContextPtr>> list(std::string language);
    /// Ends it and what it runs.
    Awaitable<Status> remove(ContextPtr context);

  private:
    Awaitable<Result<KernelProvider::Started>> start(std::string language, std::string cwd);
    /// Once: what a former agent left at the Jupyter server.
    Awaitable<void> recover();
    ContextPtr add(std::string id, std::string language, std::string cwd,
                   std::shared_ptr<Kernel> kernel);

    asio::any_io_executor executor_;
    std::unique_ptr<KernelProvider> jupyter_;  ///< null when none is configured
    KernelProvider& drivers_;
    std::vector<ContextPtr> contexts_;
    std::map<std::string, std::weak_ptr<CodeContext>, std::less<>> defaults_;
    std::map<std::string, std::shared_ptr<RunQueue>, std::less<>> default_turns_;
    std::size_t starting_ = 0;
    bool recovered_ = false;
};

}  // namespace opensandbox::agent

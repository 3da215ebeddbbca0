#include "agent/code/jupyter/provider.hpp"

#include "agent/code/jupyter/kernel.hpp"
#include "base/identifier.hpp"

#include <algorithm>
#include <set>

namespace opensandbox::agent {
namespace {

using jupyter::JupyterKernel;
using jupyter::KernelSpec;
using jupyter::Session;

constexpr std::string_view kNotebook = ".ipynb";
constexpr std::size_t kIdSize = 32;

std::string notebook_path(const std::string& cwd) {
    std::string path = cwd;
    if (!path.empty() && !path.ends_with('/')) path += '/';
    path += new_hex_id();
    return path += kNotebook;
}

/// Whether an agent made the session: its notebook is named by 32 hex digits.
bool is_ours(std::string_view path) {
    path = path.substr(path.rfind('/') + 1);
    return path.size() == kIdSize + kNotebook.size() && path.ends_with(kNotebook) &&
           std::ranges::all_of(path.substr(0, kIdSize), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

Error not_installed(const std::string& language, const std::vector<KernelSpec>& specs) {
    std::set<std::string> languages;
    for (const KernelSpec& spec : specs)
        languages.insert(spec.language);
    std::string text = "no Jupyter kernel for language " + language + "; the server has ";
    if (languages.empty()) text += "none";
    bool first = true;
    for (const std::string& name : languages) {
        text += (first ? "" : ", ") + name;
        first = false;
    }
    return {ErrorCode::not_found, std::move(text)};
}

class JupyterProvider final : public KernelProvider {
  public:
    explicit JupyterProvider(std::shared_ptr<jupyter::Server> server)
        : server_(std::move(server)) {}

    Awaitable<Result<Started>> start(std::string language, std::string cwd) override {
        auto server = server_;
        Result<std::string> kernel = co_await kernel_for(server, language);
        if (!kernel) co_return kernel.error();
        auto session = co_await server->create_session(notebook_path(cwd), *kernel);
        if (!session) co_return session.error();
        std::string id = session->id;
        auto made = std::make_shared<JupyterKernel>(server, std::move(*session));
        co_return Started(std::move(id), std::move(made));
    }

    Awaitable<Result<std::vector<Found>>> recover() override {
        auto server = server_;
        auto sessions = co_await server->sessions();
        if (!sessions) co_return sessions.error();
        std::erase_if(*sessions, [](const Session& session) { return !is_ours(session.path); });
        std::vector<Found> found;
        if (sessions->empty()) co_return found;
        auto specs = co_await server->kernel_specs(false);
        if (!specs) co_return specs.error();
        for (Session& session : *sessions) {
            auto spec = std::ranges::find(*specs, session.kernel_name, &KernelSpec::name);
            if (spec == specs->end()) continue;
            std::string id = session.id;
            auto kernel = std::make_shared<JupyterKernel>(server, std::move(session));
            found.emplace_back(std::move(id), spec->language, std::move(kernel));
        }
        co_return found;
    }

  private:
    /// The name of the kernel to start. What is not in the list kept may have been installed since.
    static Awaitable<Result<std::string>> kernel_for(std::shared_ptr<jupyter::Server> server,
                                                     std::string language) {
        auto specs = co_await server->kernel_specs(false);
        const KernelSpec* spec = specs ? jupyter::choose_kernel(*specs, language) : nullptr;
        if (specs && !spec) {
            specs = co_await server->kernel_specs(true);
            spec = specs ? jupyter::choose_kernel(*specs, language) : nullptr;
        }
        if (!specs) co_return specs.error();
        if (!spec) co_return not_installed(language, *specs);
        co_return spec->name;
    }

    std::shared_ptr<jupyter::Server> server_;
};

/// Says why the server cannot be used.
class RefusingProvider final : public KernelProvider {
  public:
    explicit RefusingProvider(Error reason) : reason_(std::move(reason)) {}
    Awaitable<Result<Started>> start(std::string language, std::string cwd) override {
        co_return reason_;
    }
    Awaitable<Result<std::vector<Found>>> recover() override { co_return reason_; }

  private:
    Error reason_;
};

}  // namespace

std::unique_ptr<KernelProvider> make_jupyter_provider(asio::any_io_executor executor,
                                                      http::Client& client,
                                                      const std::string& host_url,
                                                      std::string token, jupyter::Limits limits) {
    Result<http::Url> url = http::parse_url(host_url);
    if (!url) return std::make_unique<RefusingProvider>(url.error().within("Jupyter host"));
    while (url->path.ends_with('/'))
        url->path.pop_back();
    auto server = std::make_shared<jupyter::Server>(std::move(executor), client, std::move(*url),
                                                    std::move(token), limits);
    return std::make_unique<JupyterProvider>(std::move(server));
}

}  // namespace opensandbox::agent

#include "kube/access/credentials.hpp"

#include "base/base64.hpp"
#include "base/log.hpp"
#include "base/program_answer.hpp"
#include "base/scope_exit.hpp"
#include "kube/access/bearer_token.hpp"
#include "kube/access/small_file.hpp"

namespace opensandbox::kube {
namespace {

constexpr std::chrono::minutes kReadAgain{1};
constexpr std::chrono::minutes kBeforeExpiry{1};
constexpr std::chrono::seconds kBetweenQuestions{10};
constexpr std::chrono::seconds kPluginPatience{60};

/// What a plugin is told of the cluster contains the authorities, wherever they stand. Blocks.
Result<std::string> answer_of(const CredentialPlugin& plugin, Cluster cluster) {
    if (plugin.wants_cluster && cluster.tls.ca_pem.empty() && !cluster.tls.ca_file.empty()) {
        auto authorities = read_small_file(cluster.tls.ca_file);
        if (!authorities) return authorities;
        cluster.tls.ca_pem = std::move(*authorities);
    }
    ProgramCall call;
    call.program = plugin.command;
    call.arguments = plugin.arguments;
    call.environment = plugin.environment;
    call.environment.emplace_back("KUBERNETES_EXEC_INFO", plugin_question(plugin, cluster));
    call.limit = kPluginPatience;
    auto answer = ask_program(call);
    const bool missing = !answer && answer.error().code() == ErrorCode::not_found;
    if (!missing || plugin.install_hint.empty()) return answer;
    return Error(ErrorCode::not_found, answer.error().message() + "; " + plugin.install_hint);
}

}  // namespace

Credentials::Credentials(asio::any_io_executor executor, Cluster cluster,
                         std::function<Timestamp()> clock)
    : executor_(std::move(executor)),
      cluster_(std::move(cluster)),
      clock_(std::move(clock)),
      token_(cluster_.token) {
    if (cluster_.server.starts_with("https://"))
        tls_ = std::make_shared<net::TlsClient>(cluster_.tls);
    if (cluster_.token_file.empty() && !cluster_.plugin) return;
    // Nothing is known yet.
    due_ = expires_at_ = Timestamp::min();
}

Awaitable<Result<Access>> Credentials::current() {
    // What somebody else is renewing is waited for, and judged anew.
    while (renewing_) {
        auto renewing = renewing_;
        co_await renewing->wait();
    }
    if (is_due()) {
        renewing_ = std::make_shared<net::Latch>(executor_);
        const ScopeExit done([this] { std::exchange(renewing_, nullptr)->open(); });
        if (!thread_) thread_.emplace(1);
        auto renewal = cluster_.plugin ? ask_plugin() : read_token();
        outcome_ = co_await std::move(renewal);
        if (!outcome_ && !has_expired())
            log::warn("credentials could not be renewed", {{"error", outcome_.error().message()}});
    }
    if (!outcome_ && has_expired()) co_return outcome_.error();
    Access access;
    access.tls = tls_;
    if (!token_.empty()) {
        access.authorization = "Bearer " + token_;
    } else if (!cluster_.username.empty()) {
        access.authorization = "Basic " + to_base64(cluster_.username + ":" + cluster_.password);
    }
    co_return access;
}

bool Credentials::refused() {
    if (cluster_.token_file.empty() && !cluster_.plugin) return false;
    const Timestamp soonest = cluster_.plugin ? renewed_ + kBetweenQuestions : Timestamp::min();
    due_ = std::min(due_.value_or(soonest), soonest);
    return is_due();
}

Awaitable<Status> Credentials::read_token() {
    using Text = Result<std::string>;
    std::function<Text()> read = [path = cluster_.token_file] { return read_small_word(path); };
    auto text = co_await net::run_blocking<Text>(*thread_, std::move(read));
    renewed_ = clock_();
    if (text && !is_bearer_token(*text)) text = invalid(cluster_.token_file + ": " + kTokenRule);
    if (text) {
        token_ = std::move(*text);
        expires_at_.reset();
    }
    // One that never was there is looked for at every use.
    if (!has_expired()) due_ = renewed_ + kReadAgain;
    if (!text) co_return text.error();
    co_return Status();
}

Awaitable<Status> Credentials::ask_plugin() {
    using Text = Result<std::string>;
    std::function<Text()> ask = [cluster = cluster_] {
        return answer_of(*cluster.plugin, cluster);
    };
    auto text = co_await net::run_blocking<Text>(*thread_, std::move(ask));
    renewed_ = clock_();
    // One that fails is not asked at every use.
    due_ = renewed_ + kBetweenQuestions;
    const std::string where = "credential plugin " + cluster_.plugin->command;
    if (!text) co_return text.error().within(where);
    auto answer = read_plugin_answer(*text, *cluster_.plugin);
    if (!answer) co_return answer.error().within(where);
    present(std::move(*answer));
    co_return Status();
}

void Credentials::present(PluginAnswer answer) {
    token_ = std::move(answer.token);
    expires_at_ = answer.expires_at;
    due_.reset();
    if (expires_at_) {
        const Timestamp early = *expires_at_ - kBeforeExpiry;
        due_ = std::max(early > renewed_ ? early : *expires_at_, renewed_ + kBetweenQuestions);
    }
    net::TlsSettings settings = cluster_.tls;
    if (!answer.cert_pem.empty()) {
        settings.cert_file.clear();
        settings.key_file.clear();
        settings.cert_pem = std::move(answer.cert_pem);
        settings.key_pem = std::move(answer.key_pem);
    }
    if (tls_ && tls_->settings() != settings)
        tls_ = std::make_shared<net::TlsClient>(std::move(settings));
}

}  // namespace opensandbox::kube

#pragma once

#include "egress/intercept/interceptor.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"
#include "tls_peers.hpp"

#include <boost/asio/io_context.hpp>

#include <future>
#include <map>
#include <set>
#include <thread>

namespace opensandbox::egress::test {

using Action = TargetVerdict::Action;

/// A policy of tables. Set before connections are made.
class TableGate final : public InterceptGate {
  public:
    TargetVerdict judge_name(ClientId client, std::string_view host, std::uint16_t) override {
        if (client != expected_client) return {Action::deny, "wrong client"};
        auto found = names.find(std::string(host));
        if (found == names.end()) return {Action::deny, "default deny"};
        return {found->second, "rule for " + std::string(host)};
    }
    TargetVerdict judge_address(ClientId, const Endpoint&) override {
        return {addresses, "rule for addresses"};
    }
    bool leads_to(ClientId, std::string_view host, const Endpoint&) override {
        return misplaced.count(std::string(host)) == 0;
    }

    Interest interest(ClientId, std::string_view host, std::uint16_t) override {
        auto found = interests.find(std::string(host));
        return found == interests.end() ? interest_of_others : found->second;
    }

    ClientId expected_client = 7;
    std::map<std::string, Interest> interests;
    Interest interest_of_others = Interest::any;
    std::map<std::string, Action> names;
    std::set<std::string> misplaced;
    Action addresses = Action::deny;
};

/// Writes down what it is told.
class ListAudit final : public InterceptAudit {
  public:
    void on_connection(const ConnectionRecord& record) override {
        std::lock_guard lock(mutex_);
        lines_.push_back("connection " + std::string(record.host) + " " + name(record.outcome) +
                         " " + std::string(record.reason));
    }
    void on_request(const RequestRecord& record) override {
        std::lock_guard lock(mutex_);
        lines_.push_back("request " + std::string(record.method) + " " + std::string(record.host) +
                         std::string(record.path) + " " + name(record.outcome) + " " +
                         std::to_string(record.status));
    }
    bool has(const std::string& part) {
        std::lock_guard lock(mutex_);
        for (const std::string& line : lines_) {
            if (line.find(part) != std::string::npos) return true;
        }
        return false;
    }

  private:
    static std::string name(Outcome outcome) {
        switch (outcome) {
            case Outcome::intercepted: return "intercepted";
            case Outcome::passed_through: return "passed";
            case Outcome::denied: return "denied";
            case Outcome::failed: return "failed";
        }
        return "?";
    }
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// A hook made of a function.
class FunctionHook final : public RequestHook {
  public:
    RequestTreatment on_request(const OutgoingRequest& request) override {
        return body ? body(request) : RequestTreatment();
    }
    std::function<RequestTreatment(const OutgoingRequest&)> body;
};

inline UniqueFd listen_loopback(std::uint16_t& port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    demand(::bind(fd.get(), generic, size) == 0, "bind");
    demand(::listen(fd.get(), 64) == 0, "listen");
    demand(::getsockname(fd.get(), generic, &size) == 0, "getsockname");
    port = ntohs(address.sin_port);
    return fd;
}

/// An interceptor on an event loop of its own, an authority for origins, and a policy.
class World {
  public:
    World() : origin_authority(issue("origin authority", "", nullptr)) {
        origin_authority.write_certificate(scratch.path / "origins.pem");
        settings.upstream.extra_ca_file = (scratch.path / "origins.pem").string();
        gate.names = {{"api.example.com", Action::allow}, {"other.example.com", Action::allow}};
    }
    ~World() { stop(); }
    void stop() {
        if (!thread_.joinable()) return;
        asio::post(context_, [this] { interceptor.reset(); });
        for (int i = 0; i < 200 && !idle_; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        context_.stop();
        thread_.join();
    }

    Identity origin(const std::string& names = "DNS:api.example.com") const {
        return issue("origin", names, &origin_authority);
    }
    /// Starts the interceptor in front of a server on a port of loopback.
    void start(std::uint16_t target_port) {
        InterceptorParties parties;
        parties.gate = &gate;
        parties.hook = &hook;
        parties.audit = &audit;
        parties.client_of = [](int) -> Result<ClientId> { return ClientId(7); };
        parties.original_destination = [target_port](int) -> Result<Endpoint> {
            return Endpoint(asio::ip::address_v4::loopback(), target_port);
        };
        auto authority = CertificateAuthority::make();
        REQUIRE(authority);
        auto made = Interceptor::make(context_.get_executor(), settings, std::move(*authority),
                                      std::move(parties));
        REQUIRE(made);
        interceptor = std::move(*made);
        authority_pem = interceptor->authority_pem();
        REQUIRE(interceptor->serve(listen_loopback(port)));
        thread_ = std::thread([this] {
            context_.run();
            idle_ = true;
        });
    }
    SecureClient client(const std::string& name = "api.example.com",
                        const std::vector<std::string>& protocols = {"http/1.1"}) const {
        return SecureClient(port, authority_pem, name, protocols);
    }

    /// Runs on the interceptor's own thread.
    void on_loop(std::function<void()> body) {
        std::promise<void> done;
        asio::post(context_, [&] {
            body();
            done.set_value();
        });
        done.get_future().get();
    }
    /// Waits until so many connections are open; false when that does not come about.
    bool settles_at(std::size_t connections) {
        for (int i = 0; i < 2000; ++i) {
            std::promise<std::size_t> answer;
            asio::post(context_, [&] { answer.set_value(interceptor->open_connections()); });
            if (answer.get_future().get() == connections) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return false;
    }

    test_support::ScratchDirectory scratch;
    Identity origin_authority;
    TableGate gate;
    FunctionHook hook;
    ListAudit audit;
    InterceptorSettings settings;
    std::unique_ptr<Interceptor> interceptor;
    std::string authority_pem;
    std::uint16_t port = 0;

  private:
    asio::io_context context_{1};
    std::thread thread_;
    std::atomic<bool> idle_{false};
};

/// A server that answers every request with a text that repeats it.
inline TlsServer::Script answer_http(std::function<std::string(const std::string& head)> answer) {
    return [answer](SSL* session) {
        while (true) {
            std::string head = hear(session, "\r\n\r\n");
            if (head.find("\r\n\r\n") == std::string::npos) return;
            if (!say(session, answer(head))) return;
        }
    };
}

inline std::string ok(const std::string& body, const std::string& fields = "") {
    return "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

inline std::string get(const std::string& host = "api.example.com",
                       const std::string& fields = "") {
    return "GET /things?x=1 HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n";
}

}  // namespace opensandbox::egress::test

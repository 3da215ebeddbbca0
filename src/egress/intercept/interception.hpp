#pragma once

#include "egress/intercept/core/request_guard.hpp"
#include "egress/intercept/interceptor.hpp"
#include "egress/intercept/tls/client_hello.hpp"
#include "egress/intercept/tls/client_tls.hpp"

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace opensandbox::egress {

/// What all connections of an interceptor share.
struct Interception {
    Interception(InterceptorSettings s, CertificateAuthority a, InterceptorParties p)
        : settings(std::move(s)),
          authority(std::move(a)),
          parties(std::move(p)),
          rules(*parties.gate, parties.hook, parties.audit, settings.allow_other_hosts),
          dialer(settings.dial) {}

    InterceptorSettings settings;
    CertificateAuthority authority;
    InterceptorParties parties;
    RequestRules rules;
    Dialer dialer;
    std::unique_ptr<ClientTls> client_tls;
    std::unique_ptr<UpstreamTls> upstream_tls;
    IdleWatch watch;
    std::unordered_map<ClientId, ClientLoad> loads;
    bool closed = false;
};

/// The life of one client connection: its first bytes, the verdict, and what follows from it.
class InterceptedConnection {
  public:
    InterceptedConnection(Interception& all, net::StreamSocket socket)
        : all_(all), socket_(std::move(socket)) {}

    Awaitable<void> run();

  private:
    enum class Start : std::uint8_t { tls, http, neither };
    Awaitable<Start> read_start();
    Awaitable<void> run_tls();
    Awaitable<void> run_plain();
    Awaitable<void> run_pass_through();
    Awaitable<void> serve(UpstreamConnection upstream);
    Awaitable<void> relay(RequestGuard& guard, bool http2, std::unique_ptr<net::Stream> client,
                          ConnectUpstream connect);
    Awaitable<UpstreamConnection> open_upstream();
    TargetVerdict judge_hello();
    TargetVerdict select(TargetVerdict verdict, Interest interest);
    Awaitable<void> run_decrypted(std::string rule);
    std::optional<std::string> name_target();
    void deny(std::string_view reason, unsigned char alert);
    void reset();
    void record(Outcome outcome, std::string_view reason);

    Interception& all_;
    net::StreamSocket socket_;
    Site site_;
    ClientHelloParser parser_;
    std::string received_;
    std::string_view selection_;  ///< not told to the audit yet
    std::string name_;            ///< of the hello in normal form; empty when it has none
};

}  // namespace opensandbox::egress

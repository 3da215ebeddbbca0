#include "egress/intercept/core/request_guard.hpp"

#include "egress/intercept/core/host_name.hpp"

#include <openssl/x509v3.h>

#include <exception>

namespace opensandbox::egress {

/// The host of a request.
struct RequestGuard::Named {
    std::string host;
    bool is_address = false;
    std::uint16_t port = 0;
    bool with_port = false;  ///< the client wrote it
};

namespace {

RefusedRequest refuse(int status, std::string text) {
    return {status, std::move(text)};
}

bool is_origin_form(std::string_view target) {
    if (target != "*" && (target.empty() || target.front() != '/')) return false;
    for (char c : target) {
        if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') return false;
    }
    return true;
}

/// Whether the server's certificate holds for this name, too.
bool certificate_names(SSL* session, const std::string& host) {
    net::CertificateHandle certificate(SSL_get1_peer_certificate(session));
    if (!certificate) return false;
    return X509_check_host(certificate.get(), host.data(), host.size(),
                           X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, nullptr) == 1;
}

}  // namespace

std::optional<RefusedRequest> RequestGuard::find_host(std::string_view authority,
                                                      Named& out) const {
    out.port = site_.target.port();
    if (authority.empty()) {
        boost::system::error_code no_address;
        out.with_port = out.port != (site_.tls ? 443 : 80);
        out.host = site_.tls ? site_.host : site_.target.address().to_string();
        boost::asio::ip::make_address(out.host, no_address);
        out.is_address = !no_address;
        return std::nullopt;
    }
    auto parsed = parse_authority(authority);
    if (!parsed) return refuse(400, "the request names no valid host");
    std::uint16_t usual = site_.tls ? 443 : 80;
    // Clients leave the usual port out, and only that one.
    std::uint16_t port = parsed->port.value_or(usual);
    if (port != site_.target.port() && (parsed->port || site_.target.port() == usual)) {
        return refuse(421, "the request is for port " + std::to_string(port) +
                               ", the connection to " + std::to_string(site_.target.port()));
    }
    out.host = parsed->host;
    out.is_address = parsed->is_address;
    out.with_port = parsed->port.has_value();
    return std::nullopt;
}

/// No domain fronting: what the request names must be what the connection was made for.
std::optional<RefusedRequest> RequestGuard::check_connection(const Named& named) const {
    if (!site_.tls && named.is_address) {
        if (named.host == site_.target.address().to_string()) return std::nullopt;
        return refuse(421, "the request is for " + named.host + ", the connection is not");
    }
    if (site_.tls) {
        if (named.host == site_.host) return std::nullopt;
        bool possible = rules_.allow_other_hosts && !named.is_address && site_.upstream != nullptr;
        if (!possible || !certificate_names(site_.upstream, named.host)) {
            return refuse(421, "the request is for " + named.host +
                                   ", the connection was made for " + site_.host);
        }
    }
    if (rules_.gate.leads_to(site_.client, named.host, site_.target)) return std::nullopt;
    return refuse(403, "egress policy: " + named.host + " does not stand at " +
                           site_.target.address().to_string());
}

/// What was decrypted for a credential is not read on once that is gone.
std::optional<RefusedRequest> RequestGuard::check_interest(const Named& named) const {
    if (!site_.tls) return std::nullopt;
    const Interest interest = rules_.gate.interest(site_.client, named.host, named.port);
    if (interest == Interest::any || interest == Interest::bound) return std::nullopt;
    return refuse(421, "no credential is bound to " + named.host + " now; connect again");
}

std::optional<RefusedRequest> RequestGuard::judge(const Named& named, std::string& rule) const {
    TargetVerdict verdict = named.is_address
                                ? rules_.gate.judge_address(site_.client, site_.target)
                                : rules_.gate.judge_name(site_.client, named.host, named.port);
    rule = verdict.rule;
    if (verdict.action != TargetVerdict::Action::deny) return check_interest(named);
    return refuse(403, "egress policy denies " + host_and_port(named.host, named.port) + " (" +
                           verdict.rule + ")");
}

RequestTreatment RequestGuard::call_hook(const GuardedRequest& request, const Named& named) const {
    RequestTreatment treatment;
    if (rules_.hook == nullptr) return treatment;
    OutgoingRequest outgoing{site_.client,   site_.tls ? "https" : "http",
                             named.host,     named.port,
                             request.method, request.target,
                             request.fields};
    treatment = rules_.hook->on_request(outgoing);
    if (!treatment.refusal && !is_origin_form(request.target)) {
        treatment.refusal = refuse(502, "the request's target was made unusable");
    }
    return treatment;
}

RequestTreatment RequestGuard::admit(GuardedRequest request) {
    RequestTreatment treatment;
    Named named;
    std::string rule;
    std::string path = rules_.audit != nullptr ? request.target.substr(0, request.target.find('?'))
                                               : std::string();
    try {
        // CONNECT would be a way around all of this; TRACE shows a client what a hook has put in.
        bool barred = request.method == "CONNECT" || request.method == "TRACE";
        if (barred) treatment.refusal = refuse(405, "the method is not allowed here");
        if (!treatment.refusal) treatment.refusal = find_host(request.authority, named);
        if (!treatment.refusal) treatment.refusal = check_connection(named);
        if (!treatment.refusal) treatment.refusal = judge(named, rule);
        if (!treatment.refusal) treatment = call_hook(request, named);
    } catch (const std::exception&) {
        // Its words may hold what must not be told.
        treatment = RequestTreatment();
        treatment.refusal = refuse(502, "egress: the request could not be judged");
    }
    bool v6 = named.host.find(':') != std::string::npos;
    authority_ = named.with_port ? host_and_port(named.host, named.port)
                 : v6            ? "[" + named.host + "]"
                                 : named.host;
    host_ = named.host;
    host_name_ = named.is_address ? std::string() : named.host;
    record(request, path, named.host, treatment, rule);
    return treatment;
}

void RequestGuard::record(const GuardedRequest& request, std::string_view path,
                          std::string_view host, const RequestTreatment& treatment,
                          std::string_view rule) const {
    if (rules_.audit == nullptr) return;
    RequestRecord record;
    record.client = site_.client;
    record.target = site_.target;
    record.scheme = site_.tls ? "https" : "http";
    record.host = host;
    record.method = request.method;
    record.path = path;
    record.outcome = treatment.refusal ? Outcome::denied : Outcome::intercepted;
    record.status = treatment.refusal ? treatment.refusal->status : 0;
    record.reason = treatment.refusal ? std::string_view(treatment.refusal->text) : rule;
    rules_.audit->on_request(record);
}

void redact(const RequestTreatment& treatment, http::Fields& fields) {
    if (!treatment.redact) return;
    try {
        treatment.redact(fields);
    } catch (const std::exception&) {
        fields = http::Fields();
    }
}

}  // namespace opensandbox::egress

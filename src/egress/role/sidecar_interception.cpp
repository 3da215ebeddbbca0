#include "base/log.hpp"
#include "egress/role/interceptor_settings.hpp"
#include "egress/role/sidecar_parts.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace opensandbox::egress {

namespace fs = std::filesystem;

namespace {

/// A listening socket of the loopback address of a family.
Result<UniqueFd> listen_loopback(int family, std::uint16_t port) {
    UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return Error::from_errno(errno, "open a socket for interception");
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_storage storage{};
    socklen_t size = sizeof(sockaddr_in);
    if (family == AF_INET6) {
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
        v6->sin6_family = AF_INET6;
        v6->sin6_addr = in6addr_loopback;
        v6->sin6_port = htons(port);
        size = sizeof(sockaddr_in6);
    } else {
        auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
        v4->sin_family = AF_INET;
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        v4->sin_port = htons(port);
    }
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), size) != 0 ||
        ::listen(fd.get(), SOMAXCONN) != 0) {
        return Error::from_errno(errno, "listen on port " + std::to_string(port));
    }
    return fd;
}

/// Where all of a sandbox may read it; whole or not at all. The sandbox may write to the folder: a
/// link or a pipe that it put there must not lead this process elsewhere, or hold it up.
Status publish_authority(const std::string& pem, const fs::path& file) {
    std::error_code ignored;
    fs::create_directories(file.parent_path(), ignored);
    std::string aside = file.string() + ".XXXXXX";
    UniqueFd fd(::mkostemp(aside.data(), O_CLOEXEC));
    if (!fd) return Error::from_errno(errno, "write " + file.string());
    constexpr mode_t kReadable = 0644;
    const bool written =
        ::write(fd.get(), pem.data(), pem.size()) == static_cast<ssize_t>(pem.size()) &&
        ::fchmod(fd.get(), kReadable) == 0 && ::rename(aside.c_str(), file.c_str()) == 0;
    if (written) return {};
    Error failed = Error::from_errno(errno, "write " + file.string());
    ::unlink(aside.c_str());
    return failed;
}

Result<InterceptorSettings> own_settings(const SidecarOptions& options) {
    UpstreamOptions upstream;
    upstream.trust_directory = options.upstream_trust_directory;
    upstream.extra_ca = options.upstream_extra_ca;
    upstream.proxy = options.upstream_proxy;
    upstream.proxy_authorization = options.upstream_proxy_authorization;
    Result<InterceptorSettings> settings = interceptor_settings(upstream);
    if (!settings) return settings;
    settings->upstream.verify = !options.upstream_insecure;
    settings->dial.prepare_socket = [](int fd, ClientId) { return mark_own(fd); };
    return settings;
}

}  // namespace

Status Sidecar::Parts::start_interception() {
    if (!settings.options.intercept) return {};
    Result<InterceptorSettings> intercept = own_settings(settings.options);
    if (!intercept) return intercept.error();
    std::error_code ignored;
    fs::create_directories(settings.authority.key.parent_path(), ignored);
    Result<CertificateAuthority> authority = CertificateAuthority::load_or_make(settings.authority);
    if (!authority) return authority.error();
    InterceptorParties parties;
    parties.gate = guard->targets.get();
    parties.hook = &guard->hook;
    parties.audit = &guard->auditor;
    parties.client_of = [](int) { return Result<ClientId>(ClientId{0}); };
    auto made = Interceptor::make(executor, std::move(*intercept), std::move(*authority),
                                  std::move(parties));
    if (!made) return made.error();
    const std::uint16_t port = settings.options.intercept_port;
    Result<UniqueFd> v4 = listen_loopback(AF_INET, port);
    if (!v4) return v4.error();
    if (Status served = (*made)->serve(std::move(*v4)); !served) return served;
    if (Result<UniqueFd> v6 = listen_loopback(AF_INET6, port)) {
        if (Status served = (*made)->serve(std::move(*v6)); !served) return served;
    } else {
        log::info("no interception over IPv6", {{"reason", v6.error().message()}});
    }
    if (Status published =
            publish_authority((*made)->authority_pem(), settings.published_authority);
        !published) {
        return published;
    }
    interceptor = std::move(*made);
    return {};
}

}  // namespace opensandbox::egress

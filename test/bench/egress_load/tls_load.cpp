#include "base/unique_fd.hpp"
#include "figures.hpp"
#include "measures.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace opensandbox::bench {

namespace {

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Session = std::unique_ptr<SSL, decltype(&SSL_free)>;

[[noreturn]] void fail(const std::string& what) {
    std::array<char, 256> reason{};
    ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
    throw std::runtime_error(what + ": " + reason.data());
}

/// A client of one server that keeps no sessions: every handshake is a full one.
class Client {
  public:
    Client(std::string host, const std::string& address, const std::string& authority)
        : host_(std::move(host)), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
        SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION);
        SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);
        SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
        if (SSL_CTX_load_verify_file(context_.get(), authority.c_str()) != 1) fail(authority);
        address_.sin_family = AF_INET;
        address_.sin_port = htons(443);
        if (::inet_pton(AF_INET, address.c_str(), &address_.sin_addr) != 1) fail(address);
    }

    struct Connection {
        Connection(UniqueFd f, Session s) : fd(std::move(f)), session(std::move(s)) {}
        UniqueFd fd;
        Session session;
    };

    [[nodiscard]] Connection connect() const {
        UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int on = 1;
        ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_)) {
            throw std::system_error(errno, std::generic_category(), "connect");
        }
        Session session(SSL_new(context_.get()), SSL_free);
        SSL_set_tlsext_host_name(session.get(), host_.c_str());
        SSL_set1_host(session.get(), host_.c_str());
        SSL_set_fd(session.get(), fd.get());
        if (SSL_connect(session.get()) != 1) fail("handshake");
        if (SSL_session_reused(session.get()) != 0) throw std::runtime_error("a resumed session");
        return {std::move(fd), std::move(session)};
    }

    /// A request and its answer, which is short.
    void request(SSL* session, bool last) const {
        std::string text = "GET /small HTTP/1.1\r\nHost: " + host_ + "\r\n";
        text += last ? "Connection: close\r\n\r\n" : "\r\n";
        if (SSL_write(session, text.data(), static_cast<int>(text.size())) <= 0) fail("request");
        std::string answer;
        std::array<char, 8192> piece{};
        while (!complete(answer)) {
            const int count = SSL_read(session, piece.data(), piece.size());
            if (count <= 0) fail("answer");
            answer.append(piece.data(), static_cast<std::size_t>(count));
        }
        if (!answer.starts_with("HTTP/1.1 200")) throw std::runtime_error(answer.substr(0, 100));
    }

  private:
    static bool complete(const std::string& answer) {
        constexpr std::string_view kField = "ontent-length: ";
        const auto end = answer.find("\r\n\r\n");
        if (end == std::string::npos) return false;
        auto at = answer.find("ontent-Length: ");
        if (at == std::string::npos) at = answer.find(kField);
        if (at > end) throw std::runtime_error("an answer without a length");
        return answer.size() >= end + 4 + std::stoul(answer.substr(at + kField.size()));
    }

    std::string host_;
    sockaddr_in address_{};
    Context context_;
};

struct Shares {
    std::mutex mutex;
    std::size_t done = 0;
    std::size_t failed = 0;
    std::string failure;
    Times times;
};

void connect_until(const Client& client, Clock::time_point end, Shares& all) {
    Shares own;
    while (Clock::now() < end) {
        try {
            const auto begun = Clock::now();
            const Client::Connection connection = client.connect();
            client.request(connection.session.get(), true);
            SSL_shutdown(connection.session.get());
            own.times.add(seconds_since(begun));
            ++own.done;
        } catch (const std::exception& failure) {
            ++own.failed;
            own.failure = failure.what();
            ERR_clear_error();
        }
    }
    const std::lock_guard lock(all.mutex);
    all.done += own.done;
    all.failed += own.failed;
    if (!own.failure.empty()) all.failure = own.failure;
    all.times.add(own.times);
}

}  // namespace

void tls_connect(const Arguments& arguments) {
    const Client client(arguments[0], arguments[1], arguments[2]);
    const auto begun = Clock::now();
    const auto end = begun + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(std::stod(arguments[3])));
    Shares all;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::stoul(arguments[4]); ++i)
        threads.emplace_back([&] { connect_until(client, end, all); });
    threads.clear();
    const double took = seconds_since(begun);
    if (!all.failure.empty()) std::cerr << all.failure << '\n';
    Figures figures;
    figures.add("rate", static_cast<double>(all.done) / took);
    figures.add("failed", static_cast<double>(all.failed));
    figures.add("connection", all.times);
    figures.tell();
}

void tls_hold(const Arguments& arguments) {
    const Client client(arguments[0], arguments[1], arguments[2]);
    std::vector<Client::Connection> held;
    for (std::size_t i = 0; i < std::stoul(arguments[3]); ++i) {
        held.push_back(client.connect());
        client.request(held.back().session.get(), false);
    }
    Figures figures;
    figures.add("held", static_cast<double>(held.size()));
    figures.tell();
    while (std::cin.get() != std::char_traits<char>::eof()) {
    }
}

}  // namespace opensandbox::bench

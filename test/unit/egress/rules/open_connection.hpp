#pragma once

#include "support/ip_probe.hpp"

#include <chrono>
#include <string>
#include <thread>

namespace opensandbox::test {

/// The error of a connected socket once its peer or a router refused something; 0 when none came.
inline int refusal_on(const UniqueFd& client, const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (std::chrono::steady_clock::now() < end) {
        if (::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) {
            // The reset was told with an earlier call, then.
            return errno == EPIPE ? ECONNRESET : errno;
        }
        pollfd entry{client.get(), POLLIN, 0};
        if (checked(::poll(&entry, 1, 200), "poll") == 0) continue;
        int error = 0;
        socklen_t size = sizeof(error);
        checked(::getsockopt(client.get(), SOL_SOCKET, SO_ERROR, &error, &size), "SO_ERROR");
        if (error != 0) return error;
    }
    return 0;
}

/// A TCP connection out of one namespace into another, both ends at hand.
class OpenConnection {
  public:
    OpenConnection(const TestNamespace& from, const TestNamespace& to, const std::string& address,
                   int port)
        : listener_(to, address, port),
          client_(start_connect(from, address, port)),
          server_(listener_.accept()) {
        if (!wait_for(client_.get(), POLLOUT) || connect_state(client_) != 0)
            throw std::runtime_error("no connection");
    }

    [[nodiscard]] bool carries(const std::string& text) const {
        return echo(client_, server_, text) == text && echo(server_, client_, text) == text;
    }
    void send_back(const std::string& text) const {
        checked(static_cast<int>(::send(server_.get(), text.data(), text.size(), MSG_NOSIGNAL)),
                "send");
    }
    /// What its client sees once it sends.
    [[nodiscard]] int send_error(const std::string& text) const {
        return refusal_on(client_, text);
    }

  private:
    Listener listener_;
    UniqueFd client_;
    UniqueFd server_;
};

/// A connected UDP socket in one namespace, and one that receives in another.
class OpenDatagrams {
  public:
    OpenDatagrams(const TestNamespace& from, const TestNamespace& to, const std::string& address,
                  int port)
        : receiver_(to, address, port), client_(from.run([&] {
              const SocketAddress target(address, port);
              auto fd = open_socket(target, SOCK_DGRAM);
              checked(::connect(fd.get(), target.get(), target.size), "connect");
              return fd;
          })) {}

    [[nodiscard]] bool carries(const std::string& text) const {
        checked(static_cast<int>(::send(client_.get(), text.data(), text.size(), 0)), "send");
        return receiver_.next() == text;
    }
    [[nodiscard]] int send_error(const std::string& text) const {
        return refusal_on(client_, text);
    }

  private:
    Receiver receiver_;
    UniqueFd client_;
};

}  // namespace opensandbox::test

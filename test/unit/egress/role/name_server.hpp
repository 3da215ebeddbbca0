#pragma once

#include "net/task.hpp"
#include "support/ip_probe.hpp"
#include "unit/egress/dns/dns_messages.hpp"

#include <boost/asio/ip/udp.hpp>
#include <boost/asio/redirect_error.hpp>

#include <map>
#include <memory>

namespace opensandbox::test {

/// A resolver somewhere, which knows some names; others do not exist.
class NameServer {
  public:
    using Names = std::map<std::string, std::string>;

    NameServer(asio::any_io_executor executor, const TestNamespace& place,
               const std::string& address, int port, Names names)
        : socket_(std::make_shared<Socket>(executor)) {
        const bool v6 = address.find(':') != std::string::npos;
        auto fd = bind_socket(place, address, port, SOCK_DGRAM);
        socket_->assign(v6 ? boost::asio::ip::udp::v6() : boost::asio::ip::udp::v4(), fd.release());
        net::spawn(executor, serve(socket_, std::move(names)), "name server");
    }
    ~NameServer() { socket_->close(); }
    NameServer(const NameServer&) = delete;
    NameServer& operator=(const NameServer&) = delete;

  private:
    using Socket = boost::asio::ip::udp::socket;

    static std::string answer(std::string query, const Names& names) {
        std::size_t end = 12;
        std::string name;
        while (end < query.size() && query[end] != 0) {
            const auto length = static_cast<unsigned char>(query[end]);
            name += (name.empty() ? "" : ".") + query.substr(end + 1, length);
            end += length + 1U;
        }
        query.resize(std::min(query.size(), end + 5));
        const auto found = names.find(name);
        std::string data;
        if (found != names.end()) {
            const auto known = egress::dns::test::address_record(name, found->second, 60);
            if (query[end + 2] == static_cast<char>(known.type)) data = known.data;
        }
        query[2] = static_cast<char>(0x81);
        query[3] = static_cast<char>(found == names.end() ? 0x83 : 0x80);
        query.replace(6, 6, std::string(data.empty() ? "\0\0\0\0\0\0" : "\0\1\0\0\0\0", 6));
        if (data.empty()) return query;
        query += std::string("\xc0\x0c\0", 3) + query[end + 2] + std::string("\0\1\0\0\0\x3c\0", 7);
        return query + static_cast<char>(data.size()) + data;
    }

    static Awaitable<void> serve(std::shared_ptr<Socket> socket, Names names) {
        while (true) {
            std::string message(1500, '\0');
            boost::asio::ip::udp::endpoint peer;
            boost::system::error_code failed;
            const std::size_t size = co_await socket->async_receive_from(
                asio::buffer(message), peer, asio::redirect_error(asio::use_awaitable, failed));
            if (failed) co_return;
            message.resize(size);
            const std::string reply = answer(std::move(message), names);
            co_await socket->async_send_to(asio::buffer(reply), peer,
                                           asio::redirect_error(asio::use_awaitable, failed));
        }
    }

    std::shared_ptr<Socket> socket_;
};

}  // namespace opensandbox::test

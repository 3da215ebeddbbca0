#include "runtime/native/ground/message_socket.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

using ControlBuffer = std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)>;

void take_descriptors(msghdr& header, std::vector<UniqueFd>& into) {
    for (cmsghdr* item = CMSG_FIRSTHDR(&header); item; item = CMSG_NXTHDR(&header, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
            into.emplace_back(fd);
        }
    }
}

}  // namespace

Result<MessagePair> message_pair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
        return last_error("socketpair");
    }
    MessagePair pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
    widen_buffers(fds[0]);
    widen_buffers(fds[1]);
    return pair;
}

void widen_buffers(int socket) {
    const int size = 4 * static_cast<int>(kMaxMessage);
    if (::setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0) {
        ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    }
}

Status send_message(int socket, std::string_view bytes, std::span<const int> descriptors) {
    if (bytes.size() > kMaxMessage || descriptors.size() > kMaxDescriptors) {
        return Error(ErrorCode::too_large, "message of " + std::to_string(bytes.size()) +
                                               " bytes, at most " + std::to_string(kMaxMessage));
    }
    iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    alignas(cmsghdr) ControlBuffer control{};
    if (!descriptors.empty()) {
        header.msg_control = control.data();
        header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* item = CMSG_FIRSTHDR(&header);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size_bytes());
    }
    while (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR) return last_error("sendmsg");
    }
    return {};
}

Result<ReceivedMessage> receive_message(int socket) {
    // Its length first, so that a short message does not cost a long buffer.
    ssize_t length = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
    // Of a peer that ended with something unread this is told first, once; what it said is there.
    if (length < 0 && errno == ECONNRESET) {
        length = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
    }
    if (length < 0 && errno != ECONNRESET) return last_error("recv");
    if (length > static_cast<ssize_t>(kMaxMessage)) {
        ::recv(socket, nullptr, 0, 0);
        return Error(ErrorCode::too_large, "message longer than the receiver accepts");
    }
    ReceivedMessage message;
    message.bytes.resize(length > 0 ? static_cast<std::size_t>(length) : 1);
    iovec piece{message.bytes.data(), message.bytes.size()};
    alignas(cmsghdr) ControlBuffer control{};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    ssize_t got;
    do {
        got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        if (errno != ECONNRESET) return last_error("recvmsg");
        got = 0;
    }
    take_descriptors(header, message.descriptors);
    if ((header.msg_flags & MSG_CTRUNC) != 0) {
        return Error(ErrorCode::too_large, "message cut: more descriptors than accepted");
    }
    message.closed = got == 0;
    message.bytes.resize(static_cast<std::size_t>(got));
    return message;
}

namespace {

struct NamedSocket {
    UniqueFd fd;
    sockaddr_un address{};

    [[nodiscard]] const sockaddr* name() const {
        return reinterpret_cast<const sockaddr*>(&address);
    }
};

Result<NamedSocket> named_socket(const std::filesystem::path& path) {
    NamedSocket named;
    named.address.sun_family = AF_UNIX;
    if (path.string().size() >= sizeof named.address.sun_path) {
        return Error(ErrorCode::invalid_argument,
                     "state directory: its path is longer than a socket's may be");
    }
    path.native().copy(named.address.sun_path, sizeof named.address.sun_path - 1);
    named.fd = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!named.fd) return last_error("socket");
    return named;
}

}  // namespace

Result<UniqueFd> connect_message_socket(const std::filesystem::path& path) {
    auto named = named_socket(path);
    if (!named) return named.error();
    if (::connect(named->fd.get(), named->name(), sizeof named->address) < 0) {
        return Error(ErrorCode::unavailable,
                     "no spawner at " + path.string() + ": " + std::strerror(errno));
    }
    widen_buffers(named->fd.get());
    return std::move(named->fd);
}

Result<UniqueFd> listen_message_socket(const std::filesystem::path& path) {
    auto named = named_socket(path);
    if (!named) return named.error();
    ::unlink(path.c_str());
    const mode_t before = ::umask(0177);
    const int bound = ::bind(named->fd.get(), named->name(), sizeof named->address);
    ::umask(before);
    if (bound < 0) return last_error("bind " + path.string());
    if (::listen(named->fd.get(), 64) < 0) return last_error("listen " + path.string());
    return std::move(named->fd);
}

}  // namespace opensandbox::runtime::native

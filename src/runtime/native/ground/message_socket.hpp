#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Whole messages with descriptors over SOCK_SEQPACKET Unix sockets.
namespace opensandbox::runtime::native {

/// Longest message either side accepts, in bytes.
inline constexpr std::size_t kMaxMessage = 256 * 1024;
/// Most descriptors that go with one message.
inline constexpr std::size_t kMaxDescriptors = 64;

struct MessagePair {
    UniqueFd first;
    UniqueFd second;
};

/// A connected pair; both ends close on exec.
Result<MessagePair> message_pair();

/// Connects to the spawner that listens at `path`, without blocking later on. `unavailable` when
/// nobody does.
Result<UniqueFd> connect_message_socket(const std::filesystem::path& path);
/// Listens at `path`, in the place of whoever did before; only this user can connect.
Result<UniqueFd> listen_message_socket(const std::filesystem::path& path);

/// Lets a socket hold several messages of the longest kind.
void widen_buffers(int socket);

/// `resource_exhausted` when a non-blocking socket is full; descriptors are borrowed.
Status send_message(int socket, std::string_view bytes, std::span<const int> descriptors = {});

struct ReceivedMessage {
    bool closed = false;  ///< the peer is gone; nothing else is set
    std::string bytes;
    std::vector<UniqueFd> descriptors;
};

/// `resource_exhausted` when a non-blocking socket has nothing; `too_large` when cut.
Result<ReceivedMessage> receive_message(int socket);

}  // namespace opensandbox::runtime::native

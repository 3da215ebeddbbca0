#pragma once

#include "egress/intercept/core/relay.hpp"
#include "egress/intercept/core/request_guard.hpp"
#include "http/fields.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// Body bytes between the two sessions, counted against the client's share.
class Http2Pipe {
  public:
    explicit Http2Pipe(ClientLoad& load) : load_(load) {}
    ~Http2Pipe() { load_.bytes -= held(); }
    Http2Pipe(const Http2Pipe&) = delete;
    Http2Pipe& operator=(const Http2Pipe&) = delete;

    void put(std::string_view bytes) {
        bytes_.append(bytes);
        load_.bytes += bytes.size();
    }
    std::size_t take(char* into, std::size_t room) {
        std::size_t count = std::min(room, held());
        std::memcpy(into, bytes_.data() + taken_, count);
        drop(count);
        return count;
    }
    void drop(std::size_t count) {
        taken_ += count;
        load_.bytes -= count;
        if (taken_ == bytes_.size()) {
            // A large one is given back, a small one is used again.
            if (bytes_.capacity() > kKept) std::string().swap(bytes_);
            bytes_.clear();
            taken_ = 0;
        } else if (taken_ > bytes_.size() / 2 && taken_ > kKept) {
            bytes_.erase(0, taken_);
            taken_ = 0;
        }
    }
    [[nodiscard]] std::size_t held() const { return bytes_.size() - taken_; }
    [[nodiscard]] std::string_view view() const { return std::string_view(bytes_).substr(taken_); }

    bool ended = false;  ///< nothing more is put
    http::Fields trailers;

  private:
    static constexpr std::size_t kKept = 32 * 1024;
    ClientLoad& load_;
    std::string bytes_;
    std::size_t taken_ = 0;
};

/// Fields while they come in; beyond the limit they are counted on, not kept.
struct IncomingHeader {
    http::Fields fields;
    std::size_t bytes = 0;
    bool too_large = false;
};

/// One request and its answer in both sessions.
struct Http2Stream {
    explicit Http2Stream(std::int32_t c, ClientLoad& load)
        : client_id(c), to_upstream(load), to_client(load) {}

    std::int32_t client_id;
    std::int32_t upstream_id = -1;  ///< -1: not sent on
    IncomingHeader request;
    IncomingHeader response;
    std::string method;
    RequestTreatment treatment;
    Http2Pipe to_upstream;
    Http2Pipe to_client;
    std::optional<http::Fields> outgoing;  ///< a request that waits to be sent on, pseudo first
    bool judged = false;                   ///< the request's fields are complete
    bool collecting = false;               ///< its body is wanted whole
    bool answered = false;                 ///< a final answer went to the client
    bool end_sent = false;                 ///< the answer's end is on its way
    bool discarding = false;               ///< what the client still sends goes nowhere
    bool client_closed = false;
    bool upstream_closed = false;
    /// Bytes that pipes hold but that the sender's window has back already.
    bool request_is_ours = false;   ///< a rewritten body
    bool response_is_ours = false;  ///< a refusal
};

}  // namespace opensandbox::egress

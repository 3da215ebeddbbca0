#include "runtime/native/records/protocol.hpp"

#include "runtime/native/ground/message_socket.hpp"

#include <type_traits>

namespace opensandbox::runtime::native {

namespace {

constexpr std::size_t kMaxElements = 10'000;

void fields(auto& a, VolumeMount& m);
void fields(auto& a, CreateRequest& m);
void fields(auto& a, ResourceLimits& m);
void fields(auto& a, NetworkChoice& m);
void fields(auto& a, ImageOrigin& m);
void fields(auto& a, SandboxPlan& m);
void fields(auto& a, EgressTerms& m);
void fields(auto& a, sock_filter& m);

class Writer {
  public:
    template <class T>
        requires std::is_arithmetic_v<T>
    void put(T& value) {
        out_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void put(std::string& text) {
        auto size = static_cast<std::uint32_t>(text.size());
        put(size);
        out_ += text;
    }
    template <class A, class B>
    void put(std::pair<A, B>& pair) {
        put(pair.first);
        put(pair.second);
    }
    template <class T>
    void put(std::vector<T>& list) {
        auto size = static_cast<std::uint32_t>(list.size());
        put(size);
        for (T& item : list)
            put(item);
    }
    void put(Error& error) {
        auto code = static_cast<std::uint8_t>(error.code());
        std::string wire = error.wire();
        std::string message = error.message();
        put(code);
        put(wire);
        put(message);
    }
    void put(Timestamp& at) {
        std::int64_t ticks = at.time_since_epoch().count();
        put(ticks);
    }
    void put(VolumeMount& volume) { fields(*this, volume); }
    void put(CreateRequest& request) { fields(*this, request); }
    void put(ResourceLimits& limits) { fields(*this, limits); }
    void put(NetworkChoice& network) { fields(*this, network); }
    void put(ImageOrigin& image) { fields(*this, image); }
    void put(SandboxPlan& plan) { fields(*this, plan); }
    void put(EgressTerms& terms) { fields(*this, terms); }
    void put(sock_filter& instruction) { fields(*this, instruction); }
    void put(std::optional<Exit>& exit);

    std::string take() { return std::move(out_); }

  private:
    std::string out_;
};

class Reader {
  public:
    explicit Reader(std::string_view in) : in_(in) {}

    template <class T>
        requires std::is_arithmetic_v<T>
    void put(T& value) {
        const std::string_view bytes = take(sizeof value);
        if (good_) bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
    }
    void put(bool& value) {
        std::uint8_t byte = 0;
        put(byte);
        if (byte > 1) good_ = false;
        value = byte == 1;
    }
    void put(std::string& text) {
        std::uint32_t size = 0;
        put(size);
        text = take(size);
    }
    template <class A, class B>
    void put(std::pair<A, B>& pair) {
        put(pair.first);
        put(pair.second);
    }
    template <class T>
    void put(std::vector<T>& list) {
        std::uint32_t size = 0;
        put(size);
        // An element that is no number takes at least the four bytes of a length.
        constexpr std::size_t kLeast = std::is_arithmetic_v<T> ? sizeof(T) : 4;
        if (size > kMaxElements || size > in_.size() / kLeast) good_ = false;
        for (std::uint32_t i = 0; good_ && i < size; ++i)
            put(list.emplace_back());
    }
    void put(Error& error) {
        std::uint8_t code = 0;
        std::string wire;
        std::string message;
        put(code);
        put(wire);
        put(message);
        if (code > static_cast<std::uint8_t>(ErrorCode::internal)) good_ = false;
        if (good_) error = Error(static_cast<ErrorCode>(code), std::move(wire), std::move(message));
    }
    void put(Timestamp& at) {
        std::int64_t ticks = 0;
        put(ticks);
        at = Timestamp(std::chrono::microseconds(ticks));
    }
    void put(VolumeMount& volume) { fields(*this, volume); }
    void put(CreateRequest& request) { fields(*this, request); }
    void put(ResourceLimits& limits) { fields(*this, limits); }
    void put(NetworkChoice& network) { fields(*this, network); }
    void put(ImageOrigin& image) { fields(*this, image); }
    void put(SandboxPlan& plan) { fields(*this, plan); }
    void put(EgressTerms& terms) { fields(*this, terms); }
    void put(sock_filter& instruction) { fields(*this, instruction); }
    void put(std::optional<Exit>& exit);

    [[nodiscard]] bool finished() const { return good_ && in_.empty(); }

  private:
    std::string_view take(std::size_t size) {
        if (!good_ || size > in_.size()) {
            good_ = false;
            return {};
        }
        const std::string_view bytes = in_.substr(0, size);
        in_.remove_prefix(size);
        return bytes;
    }

    std::string_view in_;
    bool good_ = true;
};

template <class Archive, class... T>
void put_all(Archive& archive, T&... fields) {
    (archive.put(fields), ...);
}

// One list of fields a message, walked by writer and reader alike.
void fields(auto& a, Exit& m) {
    put_all(a, m.code, m.signal, m.reason, m.message, m.at);
}
void fields(auto& a, VolumeMount& m) {
    put_all(a, m.name, m.source, m.sub_path, m.target, m.read_only, m.bucket, m.reachable, m.size);
}
void fields(auto& a, SlotId& m) {
    put_all(a, m.serial, m.index);
}
void fields(auto& a, Hello& m) {
    put_all(a, m.version, m.pool.size, m.pool.max, m.pool.idle_seconds, m.egress);
}
void fields(auto& a, HelloReply& m) {
    put_all(a, m.version, m.program, m.address_range, m.address_range6, m.publish_host, m.runsc,
            m.off);
}
void fields(auto& a, ResourceLimits& m) {
    put_all(a, m.cpu_cores);
    for (const model::LimitRow& row : model::kLimits)
        a.put(m.*row.member);
}
void fields(auto& a, NetworkChoice& m) {
    // Whether it was chosen has played its part.
    put_all(a, m.none, m.shared, m.hostname, m.published);
}
void fields(auto& a, ImageOrigin& m) {
    // The image's own program and labels have played their part.
    put_all(a, m.reference, m.digest, m.layers, m.usr, m.config.env, m.config.user,
            m.config.working_directory);
}
void fields(auto& a, SandboxPlan& m) {
    put_all(a, m.image, m.snapshot_layers, m.environment, m.entrypoint, m.limits, m.network,
            m.claims, m.own_claims);
}
void fields(auto& a, CreateRequest& m) {
    put_all(a, m.request, m.id, m.plan, m.cpu_request, m.memory_request, m.volumes, m.start_seconds,
            m.hooks, m.agent_token, m.warm, m.warm_pool.size, m.warm_pool.max,
            m.warm_pool.idle_seconds, m.egress, m.authority);
}
void fields(auto& a, EgressTerms& m) {
    put_all(a, m.wanted, m.policy, m.token, m.environment);
}
void fields(auto& a, WarmImages& m) {
    put_all(a, m.images);
}
void fields(auto& a, CreateReply& m) {
    put_all(a, m.request, m.ports.agent, m.ports.published, m.ports.egress);
}
void fields(auto& a, DestroyRequest& m) {
    put_all(a, m.request, m.id);
}
void fields(auto& a, ListRequest& m) {
    put_all(a, m.request);
}
void fields(auto& a, ObservedReply& m) {
    put_all(a, m.request, m.sandbox.id, m.sandbox.endpoints.agent.host,
            m.sandbox.endpoints.agent.port, m.sandbox.endpoints.published,
            m.sandbox.endpoints.egress_port, m.sandbox.endpoints.egress_token, m.sandbox.paused,
            m.sandbox.exit);
}
void fields(auto& a, DoneReply& m) {
    put_all(a, m.request);
}
void fields(auto& a, FailedReply& m) {
    put_all(a, m.request, m.error);
}
void fields(auto& a, ExitNotice& m) {
    put_all(a, m.id);
    fields(a, m.exit);
}
void fields(auto& a, FiguresNotice& m) {
    put_all(a, m.figures.slots_ready, m.figures.slots_mounted, m.figures.slots_target,
            m.figures.slot_hits, m.figures.slot_misses, m.figures.slot_refills,
            m.figures.slot_refill_seconds, m.figures.warm_ready, m.figures.warm_target,
            m.figures.warm_hits, m.figures.warm_misses, m.figures.warm_failures,
            m.figures.sandboxes);
}
void fields(auto& a, MakeSlot& m) {
    fields(a, m.slot);
    put_all(a, m.usr);
}
void fields(auto& a, RemoveSlot& m) {
    fields(a, m.slot);
    put_all(a, m.files);
}
void fields(auto& a, SlotMade& m) {
    fields(a, m.slot);
    put_all(a, m.pid);
}
void fields(auto& a, MakeBroker& m) {
    fields(a, m.slot);
    put_all(a, m.pid);
}
void fields(auto& a, BrokerMade& m) {
    fields(a, m.slot);
    put_all(a, m.pid);
}
void fields(auto& a, JobFailed& m) {
    fields(a, m.slot);
    put_all(a, m.pid, m.error);
}
void fields(auto& a, SlotRemoved& m) {
    fields(a, m.slot);
}
void fields(auto&, BecomeBlank&) {}
void fields(auto&, BlankReady&) {}
void fields(auto&, WarmReady&) {}
void fields(auto&, SandboxReady&) {}
void fields(auto& a, sock_filter& m) {
    put_all(a, m.code, m.jt, m.jf, m.k);
}
void fields(auto& a, SlotTerms& m) {
    put_all(a, m.address, m.gateway, m.address6, m.gateway6, m.ipv6_links, m.resolver, m.gvisor,
            m.brokers, m.memory_by_process, m.processes_by_user, m.filter);
}
void fields(auto& a, PauseRequest& m) {
    put_all(a, m.request, m.id);
}
void fields(auto& a, ResumeRequest& m) {
    put_all(a, m.request, m.id);
}
void fields(auto& a, SnapshotRequest& m) {
    put_all(a, m.request, m.id, m.snapshot, m.for_copies);
}
void fields(auto& a, RemoveSnapshotRequest& m) {
    put_all(a, m.request, m.snapshot);
}
void fields(auto& a, LogsRequest& m) {
    put_all(a, m.request, m.id);
}
void fields(auto& a, InspectRequest& m) {
    put_all(a, m.request, m.id);
}
void fields(auto& a, SlotsRequest& m) {
    put_all(a, m.request, m.limit);
}
void fields(auto& a, NetworkMember& m) {
    put_all(a, m.address, m.address6, m.network, m.names);
}
void fields(auto& a, EnforcerStart& m) {
    put_all(a, m.table, m.gateway4, m.gateway6, m.dns_port, m.intercept_port, m.log_group,
            m.settings);
}
void fields(auto& a, GuardRequest& m) {
    put_all(a, m.request, m.id, m.link, m.addresses, m.egress);
}
void fields(auto& a, ReleaseRequest& m) {
    put_all(a, m.id);
}
void fields(auto&, SettleRequest&) {}
void fields(auto& a, TextReply& m) {
    put_all(a, m.request, m.text);
}

void Writer::put(std::optional<Exit>& exit) {
    bool present = exit.has_value();
    put(present);
    if (exit) fields(*this, *exit);
}

void Reader::put(std::optional<Exit>& exit) {
    bool present = false;
    put(present);
    if (present) fields(*this, exit.emplace());
}

template <std::size_t I = 0>
bool decode_kind(std::size_t kind, Reader& reader, Message& into) {
    if constexpr (I == std::variant_size_v<Message>) {
        return false;
    } else {
        if (kind != I) return decode_kind<I + 1>(kind, reader, into);
        fields(reader, into.emplace<I>());
        return true;
    }
}

}  // namespace

std::string encode(const Message& message) {
    Writer writer;
    auto kind = static_cast<std::uint8_t>(message.index());
    writer.put(kind);
    // The walk is shared with the reader and takes mutable fields; the writer changes none.
    std::visit([&](auto& body) { fields(writer, body); }, const_cast<Message&>(message));
    return writer.take();
}

Result<Message> decode(std::string_view bytes) {
    if (bytes.empty() || bytes.size() > kMaxMessage) {
        return Error(ErrorCode::protocol, "spawner message: length out of bounds");
    }
    const auto kind = static_cast<std::uint8_t>(bytes.front());
    Reader reader(bytes.substr(1));
    Message message;
    if (!decode_kind(kind, reader, message)) {
        return Error(ErrorCode::protocol, "spawner message: unknown kind " + std::to_string(kind));
    }
    if (!reader.finished()) {
        return Error(ErrorCode::protocol,
                     "spawner message: malformed body of kind " + std::to_string(kind));
    }
    return message;
}

}  // namespace opensandbox::runtime::native

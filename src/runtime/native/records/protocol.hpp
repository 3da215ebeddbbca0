#pragma once

#include "base/error.hpp"
#include "runtime/native/records/pool_settings.hpp"
#include "runtime/native/records/sandbox_plan.hpp"
#include "runtime/runtime.hpp"

#include <linux/filter.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// What server, spawner, its workers and the slots say to each other, one message a packet.
/// Both ends are the same program on the same host: numbers are in the host's byte order.
namespace opensandbox::runtime::native {

/// Changes whenever a message changes its shape.
inline constexpr std::uint32_t kProtocolVersion = 8;

/// A server of another version sends this to a spawner, because the messages of both may have
/// nothing in common. Spawners older than the signal die of it, which costs no sandbox either.
inline constexpr int kHandOverSignal = SIGUSR1;

/// Which slot: `serial` is never used twice while anything of it may remain and names its kernel
/// objects; `index` is its address and its id range.
struct SlotId {
    std::uint32_t serial = 0;
    std::uint32_t index = 0;
    friend bool operator==(const SlotId&, const SlotId&) = default;
};

/// First word of a server.
struct Hello {
    std::uint32_t version = kProtocolVersion;
    PoolSettings pool;
    Environment egress;  ///< the host's settings of egress control, as a sidecar would have them
};

/// The spawner's answer; the connection serves requests from here on.
struct HelloReply {
    std::uint32_t version = kProtocolVersion;
    std::string program;  ///< kSpawnerProgram of the spawner
    std::string address_range;
    std::string address_range6;  ///< as it was asked for
    std::string publish_host;
    std::string runsc;             ///< gVisor's program, or empty
    std::vector<std::string> off;  ///< what sandboxes go without on this host, a phrase each
};

/// A directory or file of the host that a sandbox gets, or a file system in memory.
struct VolumeMount {
    std::string name;      ///< in the request, for messages
    std::string source;    ///< real path on the host, without links; empty: in memory
    std::string sub_path;  ///< below it, or empty
    std::string target;    ///< absolute, inside
    bool read_only = false;
    bool bucket = false;     ///< a mount of its own, whose file system may shift no ids
    bool reachable = false;  ///< users of the host can reach what is written there
    std::uint64_t size = 0;  ///< bytes; of what is in memory only
};

/// What a sandbox may reach, and who may change that.
struct EgressTerms {
    bool wanted = false;
    std::string policy;       ///< JSON
    std::string token;        ///< of its egress API
    Environment environment;  ///< what the request says of it: OPENSANDBOX_EGRESS_*
};

/// Makes a sandbox. Passed on to the slot as it is, with the slot's own fields filled in.
struct CreateRequest {
    std::uint64_t request = 0;
    std::string id;
    SandboxPlan plan;                  ///< what is written down of it
    double cpu_request = 0;            ///< cores to weigh by; 0: the default
    std::uint64_t memory_request = 0;  ///< bytes to spare when memory is short; 0: none
    std::vector<VolumeMount> volumes;
    std::uint32_t start_seconds = 0;  ///< that a hook may take before it answers
    std::string hooks;                ///< OPENSANDBOX_LIFECYCLE for the agent, or empty
    std::string agent_token;
    std::string warm;                  ///< programs started ahead in its slots, JSON, or empty
    PoolSettings warm_pool{0, 0, 60};  ///< how many such slots
    EgressTerms egress;
    std::string authority;  ///< PEM; what its programs are to trust besides: of the interceptor
};

/// The images whose slots a server wants warm, each as a request for a sandbox of it.
struct WarmImages {
    std::vector<CreateRequest> images;
};

/// Where a sandbox is reached on the host.
struct HostPorts {
    std::uint16_t agent = 0;
    std::vector<std::uint32_t> published;  ///< in the request's order
    std::uint16_t egress = 0;              ///< of the egress API; 0: it is not guarded
};

struct CreateReply {
    std::uint64_t request = 0;
    HostPorts ports;
};

struct DestroyRequest {
    std::uint64_t request = 0;
    std::string id;
};

/// Answered by one ObservedReply for each sandbox, then by a DoneReply.
struct ListRequest {
    std::uint64_t request = 0;
};

struct ObservedReply {
    std::uint64_t request = 0;
    Observed sandbox;
};

struct DoneReply {
    std::uint64_t request = 0;
};

struct FailedReply {
    std::uint64_t request = 0;
    Error error;
};

/// Each answered by a DoneReply.
struct PauseRequest {
    std::uint64_t request = 0;
    std::string id;
};
struct ResumeRequest {
    std::uint64_t request = 0;
    std::string id;
};
/// Undone when the connection is lost meanwhile; with `for_copies`, also when it is lost later.
struct SnapshotRequest {
    std::uint64_t request = 0;
    std::string id;
    std::string snapshot;
    bool for_copies = false;  ///< no snapshot of its own: what copies of the sandbox stand on
};
struct RemoveSnapshotRequest {
    std::uint64_t request = 0;
    std::string snapshot;
};

/// Answered by TextReplies with the pieces of a text, then by a DoneReply.
struct LogsRequest {
    std::uint64_t request = 0;
    std::string id;
};
/// The text is JSON.
struct InspectRequest {
    std::uint64_t request = 0;
    std::string id;
};

/// The text has a line "id serial" for each of at most `limit` sandboxes that run.
struct SlotsRequest {
    std::uint64_t request = 0;
    std::uint32_t limit = 0;
};

struct TextReply {
    std::uint64_t request = 0;
    std::string text;
};

/// A sandbox ended by itself.
struct ExitNotice {
    std::string id;
    Exit exit;
};

struct FiguresNotice {
    Figures figures;
};

/// Spawner to worker: make a blank. Answered by a SlotMade or a JobFailed.
struct MakeSlot {
    SlotId slot;
    bool usr = false;  ///< with an overlay over the host's /usr
};
/// Spawner to worker: remove all that a slot had. Answered by a SlotRemoved or a JobFailed.
struct RemoveSlot {
    SlotId slot;
    bool files = false;  ///< also from the disk; else they are put aside
};

/// Spawner to worker, with descriptors: control socket of a sandbox's agent, pidfd of that. Make a
/// broker for it. Answered by a BrokerMade or a JobFailed.
struct MakeBroker {
    SlotId slot;
    std::int32_t pid = 0;  ///< of the agent
};

/// Worker to spawner, with descriptors: control socket, pidfd, user namespace, slot
/// directory, and if it was asked for the overlay over /usr.
struct SlotMade {
    SlotId slot;
    std::int32_t pid = 0;
};
struct SlotRemoved {
    SlotId slot;
};
/// With a pidfd of it.
struct BrokerMade {
    SlotId slot;
    std::int32_t pid = 0;
};
/// Whatever was to be done to the slot.
struct JobFailed {
    SlotId slot;
    std::int32_t pid = 0;  ///< cloned for it and killed, for its parent to reap; or 0
    Error error;
};

/// Spawner to resolver: the sandbox at this address goes by these names in this network; without
/// names it is gone.
struct NetworkMember {
    std::uint32_t address = 0;
    std::string address6;  ///< or empty
    std::string network;
    std::vector<std::string> names;
};

/// Spawner to enforcer: where it works, with its sockets as descriptors: DNS by UDP and TCP,
/// interception, each for IPv4 and then, where there is IPv6, for that; last the API.
struct EnforcerStart {
    std::string table;
    std::string gateway4;
    std::string gateway6;  ///< or empty
    std::uint16_t dns_port = 0;
    std::uint16_t intercept_port = 0;
    std::uint16_t log_group = 0;
    Environment settings;  ///< the host's
};
/// Answered by a TextReply with the interceptor's authority, PEM.
struct GuardRequest {
    std::uint64_t request = 0;
    std::string id;
    std::string link;
    std::vector<std::string> addresses;  ///< that it may send from
    EgressTerms egress;
};
struct ReleaseRequest {
    std::string id;
};
/// All that live have been named: what else an earlier enforcer guarded is gone.
struct SettleRequest {};

/// Maker to slot, once it has its ids and its place: what it has to know of the host. To the
/// process of a broker, too, for the filter.
struct SlotTerms {
    std::string address;  ///< of its link; empty: it has none
    std::string gateway;
    std::string address6;  ///< empty: no IPv6
    std::string gateway6;
    bool ipv6_links = false;  ///< links have IPv6 unless it is kept from them
    std::string resolver;     ///< text for /etc/resolv.conf inside
    bool gvisor = false;
    bool brokers = false;            ///< its agent may ask for one
    bool memory_by_process = false;  ///< no cgroup limits memory
    bool processes_by_user = false;  ///< no cgroup limits processes
    std::vector<sock_filter> filter;
};

/// Maker to slot: its link is there, turn blank. Under gVisor with its programs as descriptors.
struct BecomeBlank {};
/// Slot to its maker: the blank waits to be told what it will be.
struct BlankReady {};
/// Slot to spawner: the programs of its image run, it waits to be told whose it will be.
struct WarmReady {};
/// Slot to spawner, and gVisor's guest to its slot: a command works.
struct SandboxReady {};

using Message =
    std::variant<Hello, HelloReply, CreateRequest, CreateReply, DestroyRequest, ListRequest,
                 ObservedReply, DoneReply, FailedReply, ExitNotice, FiguresNotice, MakeSlot,
                 RemoveSlot, MakeBroker, SlotMade, SlotRemoved, BrokerMade, JobFailed, BecomeBlank,
                 BlankReady, WarmReady, SandboxReady, PauseRequest, ResumeRequest, SnapshotRequest,
                 RemoveSnapshotRequest, LogsRequest, InspectRequest, TextReply, SlotsRequest,
                 NetworkMember, WarmImages, EnforcerStart, GuardRequest, ReleaseRequest,
                 SettleRequest, SlotTerms>;

std::string encode(const Message& message);

/// `protocol` when a length, a count or a kind is out of bounds, or bytes remain.
Result<Message> decode(std::string_view bytes);

}  // namespace opensandbox::runtime::native

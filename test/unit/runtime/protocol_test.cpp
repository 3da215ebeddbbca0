#include "runtime/native/records/protocol.hpp"

#include "runtime/native/ground/message_socket.hpp"
#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using opensandbox::runtime::test::succeeded;
using namespace opensandbox::runtime::native;

namespace {

CreateRequest sample_create() {
    CreateRequest request;
    request.request = 7;
    request.id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    request.plan.image.reference = "python:3.11";
    request.plan.image.digest = "sha256:abc";
    request.plan.image.config.env = {{"PATH", "/bin"}};
    request.plan.snapshot_layers = {"6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11"};
    request.cpu_request = 0.25;
    request.memory_request = 1 << 20;
    request.volumes = {{"data", "/srv/data", "sub", "/data", true, true, true, 0},
                       {"tmpfs", "", "", "/scratch", false, false, false, 1 << 20}};
    request.plan.claims = {"cache"};
    request.plan.own_claims = {"cache"};
    request.start_seconds = 10;
    request.hooks = "{}";
    request.plan.image.layers = {"/images/b", "/images/a"};
    request.plan.image.usr = "/usr";
    request.plan.environment = {{"A", "1"}, {"EMPTY", ""}, {"TEXT", std::string("x\0y", 3)}};
    request.plan.entrypoint = {"sh", "-c", "true"};
    request.plan.image.config.working_directory = "/srv";
    request.plan.image.config.user = "app:app";
    request.plan.limits.cpu_cores = 0.5;
    request.plan.limits.memory_bytes = 1ULL << 33;
    request.plan.limits.pids = 64;
    request.agent_token = "secret";
    request.plan.network.hostname = "6f1c3b1e";
    request.egress = {true, "{}", "token", {{"OPENSANDBOX_EGRESS_X", "1"}}};
    request.authority = "-----BEGIN";
    request.plan.limits.disk_bytes = 1ULL << 34;
    request.plan.limits.open_files = 256;
    request.plan.limits.network_rate = 1 << 20;
    request.plan.limits.io_read_rate = 1 << 21;
    request.plan.limits.io_write_rate = 1 << 22;
    request.plan.network.none = true;
    request.plan.network.shared = "t/lab";
    request.plan.network.published = {8080, 5432};
    return request;
}

std::vector<Message> samples() {
    runtime::Observed ended;
    ended.id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    ended.endpoints.agent = {"127.0.0.1", 40001};
    ended.endpoints.published = {{8080, 40002}};
    ended.exit = runtime::Exit{-1, 9, "OOM_KILLED", "text", Timestamp(std::chrono::seconds(5))};
    return {
        Hello{},
        HelloReply{
            1, "spawner", "10.77.0.0/16", "auto", "127.0.0.1", "/usr/bin/runsc", {"limits of cpu"}},
        sample_create(),
        CreateReply{7, {40000, {40001, 40002}, 40003}},
        DestroyRequest{8, "x"},
        ListRequest{9},
        ObservedReply{9, ended},
        DoneReply{9},
        FailedReply{7, Error(ErrorCode::not_found, "NATIVE::X", "no such thing")},
        ExitNotice{"x", *ended.exit},
        FiguresNotice{{1, 2, 3, 4, 5, 6, 0.5, 8, 9, 10, 11, 12, 13}},
        MakeSlot{{1, 2}, true},
        RemoveSlot{{1, 2}},
        MakeBroker{{1, 2}, 76},
        SlotMade{{1, 2}, 77},
        SlotRemoved{{1, 2}},
        BrokerMade{{1, 2}, 79},
        JobFailed{{1, 2}, 78, Error(ErrorCode::io, "step")},
        BecomeBlank{},
        BlankReady{},
        WarmReady{},
        SandboxReady{},
        PauseRequest{10, "x"},
        ResumeRequest{11, "x"},
        SnapshotRequest{12, "x", "y", true},
        RemoveSnapshotRequest{13, "y"},
        LogsRequest{14, "x"},
        InspectRequest{15, "x"},
        TextReply{15, "text"},
        SlotsRequest{16, 100},
        NetworkMember{0x0a4d0002, "fd77::2", "t/lab", {"web", "x"}},
        WarmImages{{sample_create()}},
        EnforcerStart{"t", "10.77.0.1", "fd77::1", 1, 2, 3, {{"A", "1"}}},
        GuardRequest{17, "x", "osb1", {"10.77.0.2"}, sample_create().egress},
        ReleaseRequest{"x"},
        SettleRequest{},
        SlotTerms{"10.77.0.2",
                  "10.77.0.1",
                  "fd77::2",
                  "fd77::1",
                  true,
                  "nameserver 10.77.0.1\n",
                  false,
                  true,
                  false,
                  true,
                  {{6, 1, 2, 0x7fff0000}}}};
}

}  // namespace

TEST_CASE("every message comes back as it was sent", "[runtime][protocol]") {
    for (const Message& message : samples()) {
        const std::string bytes = encode(message);
        const auto back = decode(bytes);
        REQUIRE(succeeded(back));
        CHECK(back->index() == message.index());
        CHECK(encode(*back) == bytes);
    }
    const auto back = decode(encode(sample_create()));
    REQUIRE(succeeded(back));
    const auto& request = std::get<CreateRequest>(*back);
    CHECK(request.plan.environment == sample_create().plan.environment);
    CHECK(request.plan.image.layers == sample_create().plan.image.layers);
    CHECK(request.plan.limits.cpu_cores == 0.5);
    CHECK(request.plan.limits.memory_bytes == 1ULL << 33);
    CHECK(request.agent_token == "secret");
    CHECK(request.egress.wanted);
    CHECK(request.egress.token == "token");
    CHECK(request.authority == "-----BEGIN");
    const auto terms = decode(encode(samples().back()));
    REQUIRE(succeeded(terms));
    const auto& filter = std::get<SlotTerms>(*terms).filter;
    REQUIRE(filter.size() == 1);
    CHECK(std::tuple(filter[0].code, filter[0].jt, filter[0].jf, filter[0].k) ==
          std::tuple(6, 1, 2, 0x7fff0000));
}

TEST_CASE("a message that is cut short or has bytes left over is refused", "[runtime][protocol]") {
    for (const Message& message : samples()) {
        const std::string bytes = encode(message);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            CHECK_FALSE(succeeded(decode(bytes.substr(0, size))));
        }
        CHECK_FALSE(succeeded(decode(bytes + '\0')));
    }
}

TEST_CASE("a message of an unknown kind is refused", "[runtime][protocol]") {
    const auto message = decode("\xff");
    REQUIRE_FALSE(succeeded(message));
    CHECK(message.error().code() == ErrorCode::protocol);
}

TEST_CASE("a count larger than the message can hold allocates nothing", "[runtime][protocol]") {
    CreateRequest request;
    std::string bytes = encode(request);
    // Kind, request number, id, reference and digest: then the count of layers.
    const std::size_t count_at = 1 + 8 + 4 + 4 + 4;
    bytes.replace(count_at, 4, "\xff\xff\xff\x7f");
    CHECK_FALSE(succeeded(decode(bytes)));
}

TEST_CASE("descriptors travel with their message", "[runtime][protocol]") {
    auto pair = message_pair();
    REQUIRE(succeeded(pair));
    const std::array<int, 2> sent{pair->first.get(), pair->second.get()};
    REQUIRE(succeeded(send_message(pair->first.get(), "hello", sent)));
    auto received = receive_message(pair->second.get());
    REQUIRE(succeeded(received));
    CHECK(received->bytes == "hello");
    CHECK(received->descriptors.size() == 2);
    pair->first.reset();
    received->descriptors.clear();
    auto end = receive_message(pair->second.get());
    REQUIRE(succeeded(end));
    CHECK(end->closed);
}

TEST_CASE("a message beyond the limit is not sent", "[runtime][protocol]") {
    auto pair = message_pair();
    REQUIRE(succeeded(pair));
    auto status = send_message(pair->first.get(), std::string(kMaxMessage + 1, 'x'));
    REQUIRE_FALSE(succeeded(status));
    CHECK(status.error().code() == ErrorCode::too_large);
    REQUIRE(succeeded(send_message(pair->first.get(), std::string(kMaxMessage, 'x'))));
    auto received = receive_message(pair->second.get());
    REQUIRE(succeeded(received));
    CHECK(received->bytes.size() == kMaxMessage);
}

TEST_CASE("the last words of a peer that ended with something unread are whole",
          "[runtime][protocol]") {
    auto pair = message_pair().value();
    REQUIRE(succeeded(send_message(pair.first.get(), "unread")));
    REQUIRE(succeeded(send_message(pair.second.get(), "last words")));
    pair.second.reset();
    const auto received = receive_message(pair.first.get());
    REQUIRE(succeeded(received));
    CHECK(received->bytes == "last words");
    const auto end = receive_message(pair.first.get());
    REQUIRE(succeeded(end));
    CHECK(end->closed);
}

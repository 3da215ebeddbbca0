#include "mcp/json_rpc.hpp"

using namespace opensandbox::mcp;

namespace {

Received only(std::string_view text) {
    Payload payload = parse_payload(text);
    REQUIRE(payload.items.size() == 1);
    return payload.items.front();
}

int code_of(std::string_view text) {
    const Received received = only(text);
    REQUIRE(std::holds_alternative<Malformed>(received));
    return std::get<Malformed>(received).code;
}

}  // namespace

TEST_CASE("requests, notifications and responses are told apart") {
    auto request = std::get<Message>(only(R"({"jsonrpc":"2.0","id":7,"method":"ping"})"));
    CHECK(request.kind == Message::Kind::request);
    CHECK(request.id == 7);
    auto note = std::get<Message>(
        only(R"({"jsonrpc":"2.0","method":"notifications/initialized","params":{"a":1}})"));
    CHECK(note.kind == Message::Kind::notification);
    CHECK(note.params.contains("a"));
    auto response = std::get<Message>(only(R"({"jsonrpc":"2.0","id":"x","result":{}})"));
    CHECK(response.kind == Message::Kind::response);
}

TEST_CASE("what is no message has its code") {
    CHECK(code_of("{") == kParseError);
    CHECK(code_of("7") == kInvalidRequest);
    CHECK(code_of("[]") == kInvalidRequest);
    CHECK(code_of(R"({"id":1,"method":"ping"})") == kInvalidRequest);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":null,"method":"ping"})") == kInvalidRequest);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":7})") == kInvalidRequest);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})") == kInvalidParams);
}

TEST_CASE("a batch keeps its order, and its bad members apart") {
    const Payload payload = parse_payload(R"([{"jsonrpc":"2.0","id":1,"method":"ping"},7])");
    CHECK(payload.batch);
    REQUIRE(payload.items.size() == 2);
    CHECK(std::holds_alternative<Message>(payload.items[0]));
    CHECK(std::holds_alternative<Malformed>(payload.items[1]));
}

TEST_CASE("what is nested too deeply or has too many messages is refused") {
    const auto nested = [](std::size_t depth) {
        return R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":)" +
               std::string(depth, '[') + std::string(depth, ']') + "}}";
    };
    CHECK(std::holds_alternative<Message>(only(nested(32))));
    CHECK(code_of(nested(100)) == kParseError);
    CHECK(code_of(nested(1'000'000)) == kParseError);
    const auto batch = [](std::size_t count) {
        std::string text = "[7";
        while (--count > 0)
            text += ",7";
        return text + "]";
    };
    CHECK(parse_payload(batch(kMaxBatch)).items.size() == kMaxBatch);
    CHECK(code_of(batch(kMaxBatch + 1)) == kInvalidRequest);
}

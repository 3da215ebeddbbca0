#include "egress/audit/auditor.hpp"

#include "base/log.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::egress;

namespace {

/// Collects the lines that tell of denials.
class Lines final : public log::Writer {
  public:
    Lines() { log::attach(this); }
    ~Lines() override { log::attach(nullptr); }
    void write(std::string_view message, std::string_view line) override {
        if (message.starts_with("egress denied")) lines.emplace_back(line);
    }
    std::vector<std::string> lines;
};

dns::Denial name(const std::string& text) {
    dns::Denial denial;
    denial.name = text;
    denial.type = 28;
    denial.reason = "default: deny";
    return denial;
}

}  // namespace

TEST_CASE("every kind of denial is kept", "[egress]") {
    Auditor auditor{AuditSettings()};
    auditor.on_name(name("a.test"));
    net::LoggedPacket packet;
    packet.prefix = "egress-private";
    packet.destination = boost::asio::ip::make_address("10.0.0.1");
    packet.protocol = 6;
    packet.destination_port = 22;
    packet.lost = 3;
    auditor.on_packet(packet);
    ConnectionRecord connection;
    connection.target = Endpoint(boost::asio::ip::make_address("192.0.2.1"), 443);
    connection.scheme = "https";
    connection.outcome = Outcome::intercepted;
    auditor.on_connection(connection);
    connection.outcome = Outcome::denied;
    auditor.on_connection(connection);
    const auto page = auditor.denials().since(0, 10);
    REQUIRE(page.records.size() == 3);
    CHECK(page.records[0].target == "a.test");
    CHECK(page.records[0].protocol == "AAAA");
    CHECK(page.records[1].target == "10.0.0.1");
    CHECK(page.records[1].port == 22);
    CHECK(page.records[1].reason == "egress-private");
    CHECK(page.records[2].target == "192.0.2.1");
    CHECK(page.records[2].kind == DenialRecord::Kind::request);
    CHECK(auditor.lost_packets() == 3);
}

TEST_CASE("a source that is denied without end does not fill the log", "[egress]") {
    Lines lines;
    AuditSettings settings;
    settings.lines_per_second = 0;
    settings.line_burst = 2;
    settings.sandbox_id = "one-of-many";
    Auditor auditor(settings);
    for (int i = 0; i < 10; ++i)
        auditor.on_name(name("n" + std::to_string(i)));
    CHECK(lines.lines.size() == 2);
    CHECK(auditor.denials().total(DenialRecord::Kind::name) == 10);
    auditor.tell_omitted();
    REQUIRE(lines.lines.size() == 3);
    CHECK_THAT(lines.lines[2], Catch::Contains("omitted") && Catch::Contains("8"));
    // A host's log has the lines of many.
    CHECK_THAT(lines.lines[2], Catch::Contains("one-of-many"));
    auditor.tell_omitted();
    CHECK(lines.lines.size() == 3);
    // Another source has its own share.
    net::LoggedPacket packet;
    packet.destination = boost::asio::ip::make_address("10.0.0.1");
    auditor.on_packet(packet);
    CHECK(lines.lines.size() == 4);
}

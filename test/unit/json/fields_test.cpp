#include "json/fields.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

namespace {

struct Plate {
    std::string maker;
    std::optional<std::string> place;
};

struct Machine {
    std::string id;
    std::optional<int> code;
    std::uint64_t size = 7;
    Timestamp made_at{};
    std::vector<std::string> words;
    std::map<std::string, std::string> labels;
    std::optional<Plate> plate;
    Plate state;
    std::vector<Plate> spares;
};

constexpr auto kPlateMembers = [](auto& walker, auto& plate) {
    walker.put(json::Field("made-by", "maker"), plate.maker);
    walker.put(json::Field("place").without(json::kRow), plate.place);
};

constexpr auto kMachineMembers = [](auto& walker, auto& machine) {
    walker.put("id", machine.id);
    walker.put("code", machine.code);
    walker.put(json::Field("size").may_lack(), machine.size);
    walker.put(json::Field("madeAt", "made_at").before_row("code"), machine.made_at);
    walker.put("words", machine.words);
    walker.put(json::Field("labels").null_if_empty(), machine.labels);
    walker.object("plate", machine.plate, kPlateMembers);
    walker.object(json::Field("state").parts(), machine.state, kPlateMembers);
    walker.list(json::Field("spares").may_lack().without(json::kRow), machine.spares,
                kPlateMembers);
};

Result<Machine> machine_of(std::string_view text,
                           json::FieldReader::Absent absent = json::FieldReader::Absent::refused) {
    return json::read_fields<Machine>(json::parse(text)->get_object(), kMachineMembers, absent);
}

constexpr std::string_view kLeast =
    R"({"id":"a","madeAt":"2026-01-01T00:00:00Z","state":{"made-by":"x"}})";

}  // namespace

TEST_CASE("what one list reads and writes") {
    auto least = machine_of(kLeast);
    REQUIRE(least.has_value());
    CHECK(
        json::serialize(json::write_fields(*least, kMachineMembers)) ==
        R"({"id":"a","code":null,"size":7,"made_at":"2026-01-01T00:00:00Z","words":[],"labels":null,)"
        R"("plate":null,"state":{"maker":"x","place":null},"spares":[]})");
    auto full = machine_of(
        R"({"id":"a","code":-3,"size":9,"madeAt":"2026-01-01T00:00:00Z","words":["b"],)"
        R"("labels":{"k":"v"},"plate":{"made-by":"y","place":"here"},"state":{"made-by":"x"},)"
        R"("spares":[{"made-by":"z"}]})");
    REQUIRE(full.has_value());
    CHECK(json::serialize(json::write_fields(*full, kMachineMembers)) ==
          R"({"id":"a","code":-3,"size":9,"made_at":"2026-01-01T00:00:00Z","words":["b"],)"
          R"("labels":{"k":"v"},"plate":{"maker":"y","place":"here"},)"
          R"("state":{"maker":"x","place":null},"spares":[{"maker":"z","place":null}]})");
}

TEST_CASE("an error of reading names the member and the objects around it") {
    struct Case {
        std::string_view body;
        std::string_view problem;
    };
    for (const Case& c :
         {Case{R"({"madeAt":"2026-01-01T00:00:00Z","state":{"made-by":"x"}})", "id: is missing"},
          Case{R"({"id":7})", "id: must be a string"},
          Case{R"({"id":"a","size":-1})", "size: must not be negative"},
          Case{R"({"id":"a","code":2147483648})", "code: is too large"},
          Case{R"({"id":"a","madeAt":"soon"})", "madeAt: must be an RFC 3339 time"},
          Case{R"({"id":"a","madeAt":"2026-01-01T00:00:00Z"})", "state: is missing"},
          Case{R"({"id":"a","madeAt":"2026-01-01T00:00:00Z","state":[]})",
               "state: must be an object"},
          Case{R"({"id":"a","madeAt":"2026-01-01T00:00:00Z","state":{}})",
               "state: made-by: is missing"},
          Case{R"({"id":"a","madeAt":"2026-01-01T00:00:00Z","state":{"made-by":"x"},"spares":[1]})",
               "spares: not objects"},
          Case{
              R"({"id":"a","madeAt":"2026-01-01T00:00:00Z","state":{"made-by":"x"},"spares":[{}]})",
              "spares: made-by: is missing"}}) {
        CAPTURE(c.body);
        auto read = machine_of(c.body);
        REQUIRE(read.has_error());
        CHECK(read.error().message() == c.problem);
    }
}

TEST_CASE("a reader of records keeps what is absent") {
    auto read = machine_of("{}", json::FieldReader::Absent::kept);
    REQUIRE(read.has_value());
    CHECK(read->size == 7);
}

TEST_CASE("rows show objects in one cell or in parts, in an order of their own") {
    auto machine = machine_of(kLeast);
    REQUIRE(machine.has_value());
    CHECK(
        json::serialize(json::row_fields(*machine, kMachineMembers)) ==
        R"({"id":"a","made_at":"2026-01-01T00:00:00Z","code":null,"size":7,"words":[],"labels":null,)"
        R"("plate":null,"state_maker":"x"})");
}

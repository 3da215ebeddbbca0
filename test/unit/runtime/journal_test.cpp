#include "runtime/native/records/journal.hpp"

#include "base/remove_tree.hpp"
#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <stdlib.h>

using namespace opensandbox;
using opensandbox::runtime::test::succeeded;
using namespace opensandbox::runtime::native;

namespace {

struct TemporaryDirectory {
    TemporaryDirectory() {
        char name[] = "/tmp/opensandbox-test-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~TemporaryDirectory() { (void)remove_tree(path); }
    std::filesystem::path path;
};

JournalEntry sample() {
    JournalEntry entry;
    entry.id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    entry.slot = {0xabc, 12};
    entry.pid = 4711;
    entry.start_time = 123456789;
    entry.port = 40001;
    entry.boot = "00000000-0000-4000-8000-000000000001";
    return entry;
}

}  // namespace

TEST_CASE("a journal keeps what is needed to find a sandbox again", "[runtime][journal]") {
    TemporaryDirectory directory;
    auto journal = Journal::open(directory.path / "journal");
    REQUIRE(succeeded(journal));
    JournalEntry entry = sample();
    REQUIRE(succeeded(journal->write(entry)));
    auto all = journal->read_all();
    REQUIRE(succeeded(all));
    REQUIRE(all->size() == 1);
    CHECK(all->front().slot == entry.slot);
    CHECK(all->front().pid == 4711);
    CHECK(all->front().start_time == 123456789);
    CHECK(all->front().port == 40001);
    CHECK(all->front().boot == entry.boot);
    CHECK_FALSE(all->front().exit);

    entry.exit = runtime::Exit{-1, 9, "OOM_KILLED", "two\nlines",
                               Timestamp(std::chrono::microseconds(1'700'000'000'123'456))};
    REQUIRE(succeeded(journal->write(entry)));
    all = journal->read_all();
    REQUIRE(succeeded(all));
    REQUIRE(all->size() == 1);
    REQUIRE(all->front().exit);
    CHECK(all->front().exit->code == -1);
    CHECK(all->front().exit->signal == 9);
    CHECK(all->front().exit->reason == "OOM_KILLED");
    CHECK(all->front().exit->message == "two lines");
    CHECK(all->front().exit->at == entry.exit->at);

    journal->remove(entry.id);
    all = journal->read_all();
    REQUIRE(succeeded(all));
    CHECK(all->empty());
}

TEST_CASE("the files of removed and replaced entries are written to again", "[runtime][journal]") {
    TemporaryDirectory directory;
    auto journal = Journal::open(directory.path / "journal");
    REQUIRE(succeeded(journal));
    const auto spares = [&] {
        std::size_t count = 0;
        for (const auto& file :
             std::filesystem::directory_iterator(directory.path / "journal.spare"))
            count += file.is_regular_file() ? 1 : 0;
        return count;
    };
    JournalEntry long_one = sample();
    long_one.digest = std::string(200, 'd');
    REQUIRE(succeeded(journal->write(long_one)));
    CHECK(spares() == 0);
    REQUIRE(succeeded(journal->write(sample())));
    CHECK(spares() == 1);
    journal->remove(sample().id);
    CHECK(spares() == 2);

    // Nothing of what the file held before shows.
    for (const char* id :
         {"7f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11", "8f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11"}) {
        JournalEntry entry = sample();
        entry.id = id;
        REQUIRE(succeeded(journal->write(entry)));
    }
    CHECK(spares() == 0);
    auto all = journal->read_all();
    REQUIRE(succeeded(all));
    REQUIRE(all->size() == 2);
    for (const JournalEntry& entry : *all)
        CHECK(format_entry(entry).find("dd") == std::string::npos);

    // Another life begins without.
    journal->remove("8f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11");
    CHECK(spares() == 1);
    auto next = Journal::open(directory.path / "journal");
    REQUIRE(succeeded(next));
    CHECK(spares() == 0);
    CHECK(next->read_all()->size() == 1);
}

TEST_CASE("a damaged journal entry is dropped and the others stay", "[runtime][journal]") {
    TemporaryDirectory directory;
    auto journal = Journal::open(directory.path / "journal");
    REQUIRE(succeeded(journal));
    REQUIRE(succeeded(journal->write(sample())));
    const auto damaged = directory.path / "journal" / "7f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    std::ofstream(damaged) << "id 7f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11\nserial x\n";
    auto all = journal->read_all();
    REQUIRE(succeeded(all));
    CHECK(all->size() == 1);
    CHECK_FALSE(std::filesystem::exists(damaged));
}

TEST_CASE("a journal entry without one of its lines is no entry", "[runtime][journal]") {
    const std::string text = format_entry(sample());
    REQUIRE(succeeded(parse_entry(text)));
    for (const char* line : {"id ", "serial ", "index ", "pid ", "start ", "port "}) {
        std::string without = text;
        const std::size_t at = without.find(line);
        REQUIRE(at != std::string::npos);
        without.erase(at, without.find('\n', at) - at + 1);
        CHECK_FALSE(succeeded(parse_entry(without)));
    }
    CHECK_FALSE(succeeded(parse_entry(text + "code 1\n")));
}

TEST_CASE("a journal entry keeps the IPv6 address, and those without one are read",
          "[runtime][journal]") {
    JournalEntry entry = sample();
    CHECK_FALSE(parse_entry(format_entry(entry))->address6);
    entry.address6 = boost::asio::ip::make_address_v6("fd77::e");
    auto read = parse_entry(format_entry(entry));
    REQUIRE(succeeded(read));
    CHECK(read->address6 == entry.address6);
    CHECK_FALSE(succeeded(parse_entry(format_entry(sample()) + "address6 10.77.0.14\n")));
}

TEST_CASE("an entry of a version that knew no boots is read", "[runtime][journal]") {
    auto entry = parse_entry(
        "id 6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11\nserial 1\nindex 2\npid 4711\nstart 5\n"
        "port 40001\nsomething of a later version\n");
    REQUIRE(succeeded(entry));
    CHECK(entry->boot.empty());
}

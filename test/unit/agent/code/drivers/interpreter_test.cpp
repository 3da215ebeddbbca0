#include "agent/code/drivers/interpreter.hpp"

#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace {

using Kind = EventWriter::Stream;

/// A shell that says something at once and stays, in a loop that does not run.
class Talker {
  public:
    Talker() {
        SpawnRequest request;
        request.programs = shell_programs("echo out; echo err >&2; exec sleep 600", {});
        auto started = Interpreter::start(loop_.get_executor(), reaper_, std::move(request));
        REQUIRE(started);
        process_ = std::move(*started);
    }
    ~Talker() {
        process_->kill();
        eventually([this] {
            reaper_.collect();
            return process_->ended();
        });
    }
    Interpreter* operator->() const { return process_.get(); }

  private:
    boost::asio::io_context loop_;
    Reaper reaper_;
    std::shared_ptr<Interpreter> process_;
};

std::string read_once(OutputPipe& pipe) {
    std::string text(100, '\0');
    text.resize(pipe.read(text));
    return text;
}

}  // namespace

TEST_CASE("What a process says before its output is lent is kept for a run that it is itself") {
    Talker talker;
    auto error = talker->lend(Kind::standard_error, Interpreter::From::start);
    REQUIRE(eventually([&] { return error->holds_bytes(); }));
    // Its error came last, so that its output is there by now.
    auto output = talker->lend(Kind::standard_output, Interpreter::From::start);
    CHECK(output->ready());
    CHECK(read_once(*output) == "out\n");
    CHECK(read_once(*error) == "err\n");
}

TEST_CASE("What an interpreter says before a run begins is not the run's") {
    Talker talker;
    auto error = talker->lend(Kind::standard_error, Interpreter::From::start);
    REQUIRE(eventually([&] { return error->holds_bytes(); }));
    auto output = talker->lend(Kind::standard_output);
    CHECK_FALSE(output->holds_bytes());
    CHECK(read_once(*output).empty());
    CHECK_FALSE(output->ended());
}

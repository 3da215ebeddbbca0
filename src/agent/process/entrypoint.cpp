#include "agent/process/entrypoint.hpp"

#include "agent/process/spawn.hpp"

#include <array>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// Pieces read in one turn of the event loop, so that a loud process leaves time for others.
constexpr int kPiecesPerTurn = 4;

}  // namespace

Result<std::shared_ptr<Entrypoint>> Entrypoint::start(const ProcessContext& context,
                                                      const std::vector<std::string>& command,
                                                      bool inherit_output, OutputLog& log) {
    auto entrypoint = std::make_shared<Entrypoint>(log);
    SpawnRequest request;
    request.programs.push_back(program_of(command, context.environment.get("PATH")));
    request.environment = context.environment.entries();
    request.credentials = context.user.credentials();
    UniqueFd write_end;
    if (inherit_output) {
        request.standard_output = STDOUT_FILENO;
        request.standard_error = STDERR_FILENO;
    } else {
        auto pipe = OutputPipe::open(context.executor, write_end,
                                     [raw = entrypoint.get()] { raw->read_output(); });
        if (!pipe) return pipe.error();
        entrypoint->pipes_.push_back(std::move(*pipe));
        request.standard_output = write_end.get();
        request.standard_error = write_end.get();
    }
    Result<pid_t> pid = spawn(request);
    if (!pid) return pid.error().within("entrypoint " + command.front());
    entrypoint->child_ = context.reaper.watch(*pid);
    for (OutputPipe& pipe : entrypoint->pipes_)
        pipe.arm();
    return entrypoint;
}

void Entrypoint::read_output() {
    std::array<char, 16 * 1024> piece;
    for (OutputPipe& pipe : pipes_) {
        for (int i = 0; i < kPiecesPerTurn && pipe.ready(); ++i) {
            log_->append(std::string_view(piece.data(), pipe.read(piece)), now());
        }
        pipe.arm();
    }
}

void Entrypoint::finish_output() {
    std::array<char, 16 * 1024> piece;
    for (OutputPipe& pipe : pipes_) {
        // Its children may hold the pipe for ever.
        pipe.limit_to_present();
        pipe.read_again();
        while (pipe.ready())
            log_->append(std::string_view(piece.data(), pipe.read(piece)), now());
    }
}

}  // namespace opensandbox::agent

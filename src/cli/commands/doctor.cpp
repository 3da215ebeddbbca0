#include "base/state_directory.hpp"
#include "cli/invocation.hpp"
#include "doctor/checks.hpp"
#include "doctor/probe.hpp"

namespace opensandbox::cli {

namespace {

json::object finding_document(const doctor::Finding& finding) {
    json::object out;
    out["check"] = finding.name;
    out["status"] = doctor::to_string(finding.level);
    out["found"] = finding.found;
    if (finding.follows.empty())
        out["follows"] = nullptr;
    else
        out["follows"] = finding.follows;
    return out;
}

Awaitable<Outcome> run_doctor(Invocation& invocation) {
    auto given = invocation.arguments().get("--state-dir");
    const auto state = given ? std::filesystem::path(*given) : default_state_directory();
    if (!state.is_absolute()) co_return Failure::usage("--state-dir: an absolute path is needed");
    const auto findings = doctor::examine(doctor::probe_host(state));
    const bool can_run = doctor::native_can_run(findings);
    json::array rows;
    std::string reason;
    for (const auto& finding : findings) {
        rows.emplace_back(finding_document(finding));
        if (finding.level == doctor::Level::blocking) {
            reason += (reason.empty() ? "" : "; ") + finding.name + ": " + finding.found;
        }
    }
    json::object document;
    document["native"] = can_run;
    document["reason"] = can_run ? json::value() : json::value(reason);
    document["checks"] = rows;
    const Outcome printed = invocation.print_list(
        document, rows,
        {{"CHECK", "check"}, {"STATUS", "status"}, {"FOUND", "found"}, {"FOLLOWS", "follows"}});
    if (printed.failure()) co_return printed;
    if (can_run) co_return printed;
    co_return sdk::Error(sdk::ErrorCode::unsupported,
                         "native sandboxes cannot run here: " + reason);
}

}  // namespace

void add_doctor_command(CommandTable& table) {
    Command command = make_document_command(
        "", "doctor", "Tell what this machine has and lacks for native sandboxes.", {}, run_doctor);
    command.options = {{"--state-dir", 0, "PATH",
                        "State directory of the server (default: that of this user's server)."}};
    command.details =
        "Asks no server and changes nothing: it looks as the user who runs it, so run it as the "
        "one\n"
        "who runs the server. Ends 0 when the native runtime can run, 1 with the reason otherwise.";
    command.examples = {{"doctor", "a table"}, {"doctor -o json", "for scripts"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli

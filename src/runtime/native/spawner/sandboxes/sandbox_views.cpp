#include "agent/stream/output_log.hpp"
#include "runtime/native/ground/layer/layer_image.hpp"
#include "runtime/native/network/link_counters.hpp"
#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include <fcntl.h>
#include <utility>

/// What others want to know of a sandbox, among them the next spawner.
namespace opensandbox::runtime::native {

Result<SandboxTable::Entry> SandboxTable::find(const std::string& id) const {
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end() || found->second->state == State::waiting ||
        found->second->state == State::removing) {
        return Error(ErrorCode::not_found, "NATIVE::SANDBOX_NOT_FOUND",
                     "Sandbox " + id + " not found.");
    }
    return found->second;
}

Result<std::string> SandboxTable::output(const std::string& id) const {
    auto found = find(id);
    if (!found) return found.error();
    const auto path = host_->slot_directory((*found)->parts.slot) / kOutputFile;
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return last_error("open " + path.string());
    return agent::OutputLog::read(file.get());
}

Result<SandboxView> SandboxTable::view(const std::string& id) const {
    auto found = find(id);
    if (!found) return found.error();
    const Sandbox& sandbox = **found;
    auto description = read_description(host_->slot_directory(sandbox.parts.slot));
    if (!description) return description.error();
    const auto cgroup = SlotCgroup::adopt(host_->cgroups, slot_name(sandbox.parts.slot));
    SandboxView view;
    view.id = id;
    view.description = std::move(*description);
    view.pid = sandbox.parts.pid;
    view.paused = sandbox.paused && !sandbox.exit;
    view.usage = cgroup.usage();
    const auto directory = host_->slot_directory(sandbox.parts.slot);
    view.usage.disk_bytes = layer_usage(directory);
    view.layer = directory.string();
    if (host_->network()) {
        const LinkCounters link = link_counters(host_->link_name(sandbox.parts.slot));
        view.usage.received_bytes = link.received;
        view.usage.sent_bytes = link.sent;
        view.address = host_->address(sandbox.parts.slot).to_string();
        if (sandbox.parts.address6) view.address6 = sandbox.parts.address6->to_string();
    }
    view.off = host_->off;
    const std::string& host = host_->options.publish_host;
    const bool bare_ipv6 = host.find(':') != std::string::npos;
    view.published = (bare_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(sandbox.port);
    view.exit = sandbox.exit;
    return view;
}

std::string SandboxTable::slots(std::size_t limit) const {
    std::string text;
    for (const auto& [id, sandbox] : sandboxes_) {
        if (sandbox->state != State::running) continue;
        if (limit-- == 0) break;
        text += id + " " + std::to_string(sandbox->parts.slot.serial) + "\n";
    }
    return text;
}

std::vector<Observed> SandboxTable::list() const {
    std::vector<Observed> out;
    for (const auto& [id, sandbox] : sandboxes_) {
        if (sandbox->state == State::waiting || sandbox->state == State::removing) continue;
        if (sandbox->failure) continue;
        Observed& item = out.emplace_back();
        item.id = id;
        item.endpoints.agent = {host_->options.publish_host, sandbox->port};
        item.endpoints.published = sandbox->published;
        if (egress_->guards(id)) {
            item.endpoints.egress_port = host_->egress_sockets.api_port;
            item.endpoints.egress_token = egress_->token(id);
        }
        item.paused = sandbox->paused && !sandbox->exit;
        item.exit = sandbox->exit;
    }
    return out;
}

JournalEntry SandboxTable::journal_entry(const Sandbox& sandbox) const {
    JournalEntry entry;
    entry.id = sandbox.id;
    entry.slot = sandbox.parts.slot;
    entry.pid = sandbox.parts.pid;
    entry.start_time = sandbox.start_time;
    entry.port = sandbox.port;
    entry.paused = sandbox.paused;
    entry.boot = boot_;
    entry.digest = sandbox.digest;
    entry.address6 = sandbox.parts.address6;
    entry.exit = sandbox.exit;
    return entry;
}

}  // namespace opensandbox::runtime::native

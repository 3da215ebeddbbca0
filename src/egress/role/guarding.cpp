#include "base/log.hpp"
#include "egress/guard/policy_log.hpp"
#include "egress/role/enforcer_parts.hpp"
#include "egress/role/request_environment.hpp"
#include "egress/settings/names.hpp"
#include "egress/vault/vault_mark.hpp"

#include <algorithm>

// How sandboxes come under guard, and out of it.
namespace opensandbox::egress {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestId = 128;
constexpr std::size_t kLongestLink = 15;
constexpr const char* kVaultMark = "vault-held";
/// Of one sandbox; a host has many.
constexpr std::size_t kResolvedNames = 5000;

Error wrong(const std::string& what) {
    return Error(ErrorCode::invalid_argument, what);
}

/// It names a folder and stands in a path.
bool is_id(std::string_view id) {
    constexpr std::string_view kAllowed =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    return !id.empty() && id.size() <= kLongestId && id.front() != '.' && id != "authority" &&
           id.find_first_not_of(kAllowed) == std::string_view::npos;
}

Status check(const GuardedSpec& spec) {
    if (!is_id(spec.id)) return wrong("sandbox \"" + spec.id + "\": is no id");
    if (spec.link.empty() || spec.link.size() > kLongestLink)
        return wrong("link \"" + spec.link + "\": must be a name of 1 to 15 bytes");
    if (spec.addresses.empty()) return wrong("link \"" + spec.link + "\": needs an address");
    return {};
}

/// What the disk holds of a sandbox.
struct OnDisk {
    Result<LoadedPolicy> policy = Error(ErrorCode::internal, "not loaded");
    bool fresh = false;       ///< its folder was made
    bool vault_held = false;  ///< under an enforcer before this one
};

/// The policy that was kept, else the one that is given, which has to be right all the same.
/// Blocks.
OnDisk load(const fs::path& directory, PolicyStoreSettings settings) {
    OnDisk made;
    if (Result<Policy> given = parse_policy(settings.rules); !given) {
        made.policy = given.error();
        return made;
    } else if (Status counted = check_rule_count(*given, settings.max_rules); !counted) {
        made.policy = counted.error();
        return made;
    }
    std::error_code failed;
    made.fresh = fs::create_directories(directory, failed);
    if (!failed) fs::permissions(directory, fs::perms::owner_all, failed);
    if (failed) {
        made.policy = Error(ErrorCode::io, "make " + directory.string() + ": " + failed.message());
        return made;
    }
    const bool kept = fs::exists(settings.file, failed);
    made.vault_held = is_vault_marked(directory / kVaultMark);
    made.policy = load_policy(std::move(settings));
    if (made.policy && !kept) made.policy->initial.warnings.clear();
    return made;
}

/// Cuts a released sandbox's connections while its addresses are nobody else's.
Awaitable<void> finish_cut(std::shared_ptr<PacketFilter> filter, rules::ConnectionCut cut,
                           std::vector<KeyedTurns::Turn> held) {
    co_await filter->cut_now(std::move(cut));
    held.clear();
}

}  // namespace

Awaitable<std::vector<KeyedTurns::Turn>> Enforcer::Parts::hold(
    std::vector<net::Address> addresses) {
    // In one order, so that no two wait for each other.
    std::ranges::sort(addresses);
    const auto repeated = std::ranges::unique(addresses);
    addresses.erase(repeated.begin(), repeated.end());
    std::vector<KeyedTurns::Turn> held;
    held.reserve(addresses.size());
    for (const net::Address& address : addresses)
        held.push_back(co_await turns.take("address " + address.to_string()));
    co_return held;
}

Awaitable<Status> Enforcer::Parts::guard(GuardedSpec spec) {
    if (Status fit = check(spec); !fit) co_return fit;
    const KeyedTurns::Turn turn = co_await turns.take(spec.id);
    if (!running) co_return Error(ErrorCode::unavailable, "egress control does not run");
    if (guards.of_id(spec.id))
        co_return Error(ErrorCode::conflict, "sandbox \"" + spec.id + "\" is guarded already");
    Status done = co_await take_in(spec);
    if (done) {
        withheld.erase(spec.id);
    } else if (filter->table().guards(spec.link) && !guards.of_link(spec.link)) {
        withheld[spec.id] = spec.link;
    }
    co_return done;
}

Awaitable<Status> Enforcer::Parts::take_in(GuardedSpec spec) {
    Result<ParsedEnvironment> parsed =
        parse_request_environment(spec.environment, settings.sandbox_defaults);
    if (!parsed) co_return parsed.error();
    for (const std::string& warning : parsed->warnings)
        log::warn(warning, {{"sandbox_id", spec.id}});
    if (parsed->options.intercept && !interceptor) {
        co_return Error(ErrorCode::unsupported, "this host does not intercept");
    }
    if (parsed->options.credential_bound && settings.passed.has_patterns()) {
        co_return wrong(std::string("interception mode credential-bound ") + kPatternsMixed);
    }
    const fs::path directory = settings.state_directory / spec.id;
    PolicyStoreSettings store;
    store.overlay_directory = settings.overlay_directory;
    store.file = directory / "policy.json";
    store.rules = spec.policy;
    store.max_rules = settings.max_rules;
    std::function<OnDisk()> work = [directory, store] { return load(directory, store); };
    OnDisk on_disk = co_await net::run_blocking(files, std::move(work));
    // Connections of whoever had them before are cut first.
    const std::vector<KeyedTurns::Turn> held = co_await hold(spec.addresses);
    Status done = on_disk.policy ? Status() : Status(on_disk.policy.error());
    if (done && !running) done = Error(ErrorCode::unavailable, "egress control ends");
    if (done) done = put_under_guard(spec, std::move(parsed->options), std::move(*on_disk.policy));
    if (done && on_disk.vault_held) lose_vault(*guards.of_id(spec.id));
    if (!done && on_disk.fresh) co_await remove_files(directory);
    co_return done;
}

Status Enforcer::Parts::put_under_guard(const GuardedSpec& spec, SidecarOptions options,
                                        LoadedPolicy loaded) {
    if (guards.of_link(spec.link))
        return Error(ErrorCode::conflict, "link \"" + spec.link + "\" is guarded already");
    GuardedIdentity identity;
    identity.id = spec.id;
    identity.client = ++last_client;
    identity.token = spec.token;
    options.sandbox_id = spec.id;
    PacketPolicySettings packet;
    packet.block_doh = settings.block_doh;
    packet.doh_servers = settings.doh_servers;
    if (options.intercept) packet.intercepted_ports = options.intercept_ports;
    FilteredSandbox filtered(rules::GuardedSandbox(spec.link, spec.addresses), std::move(packet),
                             kResolvedNames);
    InitialPolicy initial = loaded.initial;
    if (initial.source == "environment") initial.source = "request";
    const auto guard =
        std::make_shared<SandboxGuard>(executor, files, std::move(identity), std::move(options),
                                       std::move(loaded), std::move(filtered), settings.passed);
    SandboxGuard& made = *guard;
    if (!made.options.deny_webhook.empty()) {
        if (Status set = made.set_webhook(webhook_connections(made)); !set) return set;
    }
    SandboxGuard::Surroundings surroundings;
    surroundings.filter = filter.get();
    surroundings.interceptor = [this] { return interceptor.get(); };
    surroundings.metrics = [this, &made] { return metrics_of(made); };
    surroundings.vault_mark = settings.state_directory / spec.id / kVaultMark;
    made.join(std::move(surroundings));
    if (Status enforced = made.enforce(); !enforced) return enforced;
    guards.add(guard);
    log_policy_loaded(initial, spec.id);
    return {};
}

void Enforcer::Parts::lose_vault(SandboxGuard& guard) {
    if (!guard.options.credential_bound) return;
    guard.vault.lose();
    log::warn(
        "a sandbox's credential vault is lost: TLS by name is refused until it is written again",
        {{"sandbox_id", guard.identity.id}});
}

ConnectOrigin Enforcer::Parts::webhook_connections(const SandboxGuard& guard) const {
    const auto operators = settings.sandbox_defaults.find(std::string(setting::kDenyWebhook));
    const bool of_request = operators == settings.sandbox_defaults.end() ||
                            operators->second != guard.options.deny_webhook;
    return [through = of_request ? connector : operators_connector](http::Origin origin) {
        return OwnConnector::connect(through, std::move(origin));
    };
}

Awaitable<void> Enforcer::Parts::release(std::string id) {
    if (!is_id(id) || !filter) co_return;
    const KeyedTurns::Turn turn = co_await turns.take(id);
    if (const auto found = withheld.find(id); found != withheld.end()) {
        const std::string link = found->second;
        withheld.erase(found);
        if (!guards.of_link(link)) filter->remove(link);
    }
    if (const GuardPtr guard = guards.of_id(id)) {
        guard->filtered.released = true;
        guards.remove(*guard);
        if (interceptor) interceptor->recheck(guard->identity.client);
        names->resolver().forget(guard->identity.client);
        auto cut = filter->take_out(guard->filtered.place.link);
        std::vector<KeyedTurns::Turn> held = co_await hold(guard->filtered.place.addresses);
        if (cut)
            net::spawn(executor, finish_cut(filter, std::move(*cut), std::move(held)), "release");
        // A change under way still writes its file.
        const SerialTurns::Turn changes = co_await guard->policies.turn();
    }
    co_await remove_files(settings.state_directory / id);
}

Awaitable<void> Enforcer::Parts::remove_files(fs::path directory) {
    std::function<std::error_code()> work = [directory] {
        std::error_code failed;
        fs::remove_all(directory, failed);
        return failed;
    };
    const std::error_code failed = co_await net::run_blocking(files, std::move(work));
    if (failed) {
        log::error("files of a sandbox could not be removed",
                   {{"folder", directory.string()}, {"error", failed.message()}});
    }
}

void Enforcer::Parts::settle() {
    if (!filter) return;
    for (const std::string& link : filter->table().unclaimed()) {
        const auto kept = std::ranges::find(
            withheld, link, [](const auto& item) { return std::string_view(item.second); });
        if (kept == withheld.end()) {
            filter->remove(link);
            continue;
        }
        log::error("a sandbox that could not be guarded stays refused",
                   {{"sandbox_id", kept->first}, {"link", link}});
    }
}

}  // namespace opensandbox::egress

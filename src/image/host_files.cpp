#include "image/host_files.hpp"

#include <array>

namespace opensandbox::image {
namespace {

constexpr auto kEtcSelection = std::to_array<std::string_view>({
    // the dynamic linker, names and services
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "nsswitch.conf",
    "host.conf",
    "gai.conf",
    "services",
    "protocols",
    "rpc",
    "networks",
    "ethertypes",
    "netconfig",
    "bindresvport.blacklist",
    // what the system is
    "debian_version",
    "os-release",
    "lsb-release",
    "redhat-release",
    "system-release",
    "issue",
    "alternatives",
    "localtime",
    "timezone",
    "locale.alias",
    "locale.conf",
    "default/locale",
    // shells and login
    "profile",
    "bash.bashrc",
    "bashrc",
    "inputrc",
    "login.defs",
    "shells",
    "skel",
    "terminfo",
    "pam.d",
    "pam.conf",
    "security",
    "adduser.conf",
    "deluser.conf",
    // certificates of authorities, public by nature
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/ca-trust",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "crypto-policies",
    // packages: sources and keyrings, not the files that hold logins
    "apt/apt.conf.d",
    "apt/keyrings",
    "apt/preferences.d",
    "apt/sources.list",
    "apt/sources.list.d",
    "apt/trusted.gpg",
    "apt/trusted.gpg.d",
    "dpkg",
    "debconf.conf",
    "ucf.conf",
    // languages and tools
    "python3*",
    "perl",
    "java-*",
    "R",
    "ImageMagick*",
    "fonts",
    "groff",
    "manpath.config",
    "mime.types",
    "magic",
    "magic.mime",
    "vim",
    "nanorc",
    "xattr.conf",
    "mke2fs.conf",
});

constexpr auto kDirectories = std::to_array<SkeletonDirectory>({
    {"root", 0700, 0},
    {"home", 0755, 0},
    {"home/sandbox", 0755, 1000},
    {"etc", 0755, 0},
    {"opt", 0755, 0},
    {"mnt", 0755, 0},
    {"media", 0755, 0},
    {"srv", 0755, 0},
    {"run", 0755, 0},
    {"run/lock", 01777, 0},
    {"proc", 0555, 0},
    {"sys", 0555, 0},
    {"dev", 0755, 0},
    {"tmp", 01777, 0},
    {"usr", 0755, 0},
    {"var", 0755, 0},
    {"var/tmp", 01777, 0},
    {"var/lib", 0755, 0},
    {"var/lib/apt", 0755, 0},
    {"var/lib/apt/lists", 0755, 0},
    {"var/lib/apt/lists/partial", 0755, 0},
    {"var/lib/dpkg", 0755, 0},
    {"var/lib/dpkg/info", 0755, 0},
    {"var/lib/dpkg/alternatives", 0755, 0},
    {"var/lib/dpkg/parts", 0755, 0},
    {"var/lib/dpkg/triggers", 0755, 0},
    {"var/lib/dpkg/updates", 0755, 0},
    {"var/lib/misc", 0755, 0},
    {"var/log", 0755, 0},
    {"var/log/apt", 0755, 0},
    {"var/cache", 0755, 0},
    {"var/cache/apt", 0755, 0},
    {"var/cache/apt/archives", 0755, 0},
    {"var/cache/apt/archives/partial", 0755, 0},
    {"var/spool", 0755, 0},
    {"var/mail", 02775, 0},
});

struct Account {
    std::string_view name;
    unsigned uid;
    unsigned gid;
    std::string_view home;
};

constexpr auto kSystemAccounts = std::to_array<Account>({
    {"daemon", 1, 1, "/usr/sbin"},
    {"bin", 2, 2, "/bin"},
    {"sys", 3, 3, "/dev"},
    {"man", 6, 12, "/var/cache/man"},
    {"mail", 8, 8, "/var/mail"},
    {"www-data", 33, 33, "/var/www"},
    {"backup", 34, 34, "/var/backups"},
    {"_apt", 42, 65534, "/nonexistent"},
    {"nobody", 65534, 65534, "/nonexistent"},
});

struct Group {
    std::string_view name;
    unsigned gid;
};

constexpr auto kGroups = std::to_array<Group>({
    {"root", 0},      {"daemon", 1},  {"bin", 2},        {"sys", 3},         {"adm", 4},
    {"tty", 5},       {"disk", 6},    {"lp", 7},         {"mail", 8},        {"news", 9},
    {"uucp", 10},     {"man", 12},    {"proxy", 13},     {"kmem", 15},       {"dialout", 20},
    {"fax", 21},      {"voice", 22},  {"cdrom", 24},     {"floppy", 25},     {"tape", 26},
    {"sudo", 27},     {"audio", 29},  {"dip", 30},       {"www-data", 33},   {"backup", 34},
    {"operator", 37}, {"list", 38},   {"irc", 39},       {"src", 40},        {"shadow", 42},
    {"utmp", 43},     {"video", 44},  {"sasl", 45},      {"plugdev", 46},    {"staff", 50},
    {"games", 60},    {"users", 100}, {"sandbox", 1000}, {"nogroup", 65534},
});

bool holds_url_password(std::string_view content) {
    for (std::size_t at = content.find("://"); at != std::string_view::npos;
         at = content.find("://", at + 3)) {
        std::string_view rest = content.substr(at + 3);
        std::string_view authority = rest.substr(0, rest.find_first_of("/ \t\r\n\"'<>"));
        if (authority.find('@') != std::string_view::npos) return true;
    }
    return false;
}

}  // namespace

std::span<const std::string_view> host_etc_selection() {
    return kEtcSelection;
}
std::span<const SkeletonDirectory> skeleton_directories() {
    return kDirectories;
}

bool is_harmless(std::string_view content) {
    return content.find("PRIVATE KEY-----") == std::string_view::npos &&
           !holds_url_password(content);
}

std::vector<GeneratedFile> generated_accounts(std::string_view shell) {
    std::string passwd = "root:x:0:0:root:/root:" + std::string(shell) + "\n";
    std::string shadow = "root:*:19000:0:99999:7:::\n";
    for (const Account& account : kSystemAccounts) {
        std::string name(account.name);
        passwd += name + ":x:" + std::to_string(account.uid) + ":" + std::to_string(account.gid) +
                  ":" + name + ":" + std::string(account.home) + ":/usr/sbin/nologin\n";
        shadow += name + ":*:19000:0:99999:7:::\n";
    }
    passwd += "sandbox:x:1000:1000:sandbox:/home/sandbox:" + std::string(shell) + "\n";
    shadow += "sandbox:*:19000:0:99999:7:::\n";
    std::string group, gshadow;
    for (const Group& entry : kGroups) {
        std::string name(entry.name);
        group += name + ":x:" + std::to_string(entry.gid) + ":\n";
        gshadow += name + ":*::\n";
    }
    return {
        {"etc/passwd", passwd, 0644},   {"etc/group", group, 0644},    {"etc/shadow", shadow, 0640},
        {"etc/gshadow", gshadow, 0640}, {"etc/environment", "", 0644},
    };
}

}  // namespace opensandbox::image

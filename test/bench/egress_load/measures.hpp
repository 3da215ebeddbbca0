#pragma once

#include <string>
#include <vector>

/// The measures that this program makes, by their arguments. They throw what goes wrong.
namespace opensandbox::bench {

using Arguments = std::vector<std::string>;

/// SERVER SECONDS OUTSTANDING NAMES: answers per second to queries for so many names, in turns.
void dns_rate(const Arguments& arguments);
/// SERVER COUNT NAMES: how long one query takes after the other.
void dns_latency(const Arguments& arguments);
/// SERVER FIRST LAST: asks for each name once and counts the addresses.
void dns_learn(const Arguments& arguments);

/// HOST ADDRESS CA SECONDS PARALLEL: connections with full handshakes of TLS 1.3 and one request.
void tls_connect(const Arguments& arguments);
/// HOST ADDRESS CA SECONDS PARALLEL: bytes of content per second, in so many downloads at once.
void tls_download(const Arguments& arguments);
/// CERTIFICATE KEY ADDRESS LENGTH: answers every request with so many bytes from its memory, until
/// it is ended.
void tls_serve(const Arguments& arguments);
/// HOST ADDRESS CA COUNT: opens so many, sends one request on each, and holds them until its
/// input ends.
void tls_hold(const Arguments& arguments);

/// POLICY_FILE: reads it, and judges names and addresses that its rules speak of and others.
void judge(const Arguments& arguments);
/// HELD COUNT: in a namespace of its own, learns addresses with so many held, and changes the
/// policy of a sandbox that holds 10,000.
void learn(const Arguments& arguments);
/// SANDBOXES LINK ADDRESS: guards that link and so many others when told "on", nothing when told
/// "off".
void guard(const Arguments& arguments);

}  // namespace opensandbox::bench

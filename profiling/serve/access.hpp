// Access control of `penstock profile serve`. A request must have the token, must not come from another
// site's page, and must come from the same user on this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "profiling/serve/http_request.hpp"

namespace penstock {

// Makes a token of 128 random bits from the system, in hexadecimal digits. Error: the system cannot provide
// random bits.
Result<std::string> make_token();

// Compares two secrets. It takes the same time wherever the first difference is, so an attacker learns
// nothing from the time.
bool same_secret(std::string_view one, std::string_view other);
// True if the request has the token, as `?token=` or as `Authorization: Bearer`.
bool has_token(const HttpRequest& request, std::string_view token);

// True if the request's Host header names this server, and its Origin header, if present, does too. This
// refuses pages of other sites, also those whose domain name resolves to this machine: the browser sends
// their name.
bool is_for_this_server(const HttpRequest& request, uint16_t port);

// Both ends of a connection, as /proc/net/tcp has them: addresses in network byte order, ports in the
// machine's order.
struct SocketEnds {
  uint32_t local_address = 0;
  uint16_t local_port = 0;
  uint32_t remote_address = 0;
  uint16_t remote_port = 0;
};
// Finds the user of a socket in `table`, the text of /proc/net/tcp or tcp6 (IPv4 addresses within IPv6).
// nullopt if no row matches, or if no process holds the socket any more: the kernel then reports root.
std::optional<uid_t> socket_owner(std::string_view table, const SocketEnds& ends);
// The user at the other end of `fd`, an accepted connection from this machine. nullopt if the user is not
// known.
std::optional<uid_t> peer_of(int fd);

}  // namespace penstock

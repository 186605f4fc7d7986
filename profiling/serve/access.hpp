// Access control of `penstock profile serve`. A request must have the token and must not come from another
// site's page. It must come from root or this process's user, on this machine.
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

// Returns true if the two secrets are equal. The comparison takes the same time wherever they first differ,
// so an attacker learns nothing from its duration.
bool same_secret(std::string_view one, std::string_view other);
// True if the request has the token, as `?token=` or as `Authorization: Bearer`.
bool has_token(const HttpRequest& request, std::string_view token);

// True if the request's Host header names this server, and its Origin header, if present, does too. This
// refuses requests from pages of other sites. It also refuses DNS rebinding: an attacker makes a site's
// domain name point to this machine, but the browser then sends that name in Host.
bool is_for_this_server(const HttpRequest& request, uint16_t port);

// Both ends of a connection, as /proc/net/tcp has them: addresses in network byte order, ports in the
// machine's order.
struct SocketEnds {
  uint32_t local_address = 0;
  uint16_t local_port = 0;
  uint32_t remote_address = 0;
  uint16_t remote_port = 0;
};
// Returns the user who owns a socket. `table` is the text of /proc/net/tcp, or of tcp6, where IPv4 addresses
// are written as IPv6 addresses. nullopt if no row matches. Also nullopt if no process has the socket open
// any more: then the row wrongly names root.
std::optional<uid_t> socket_owner(std::string_view table, const SocketEnds& ends);
// Returns the user who opened the other end of `fd`, an accepted connection from this machine. nullopt if the
// user is not known.
std::optional<uid_t> peer_of(int fd);

}  // namespace penstock

// Who may ask: those who have the token, from a browser's page of ours, as the same user of this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "profiling/serve/http_request.hpp"

namespace penstock {

// 128 random bits of the system, in hexadecimal digits. An error where the system has none.
Result<std::string> make_token();

// Takes as long whatever the first difference's place is.
bool same_secret(std::string_view one, std::string_view other);
// As `?token=`, or as `Authorization: Bearer`.
bool has_token(const HttpRequest& request, std::string_view token);

// Whether it was sent to this machine by that name (a page of somebody's whose name leads here has sent
// its own), and where it says which page sent it, by ours.
bool is_from_here(const HttpRequest& request, std::uint16_t port);

// Both ends of a connection as /proc/net/tcp has them: addresses as they are in memory, ports in this
// machine's order.
struct SocketEnds {
  std::uint32_t local = 0;
  std::uint16_t local_port = 0;
  std::uint32_t remote = 0;
  std::uint16_t remote_port = 0;
};
// The user of that socket, by the text of /proc/net/tcp or tcp6 (an IPv4 address within IPv6). Nothing where
// there is none, or where no process holds it any more: the kernel then reports root.
std::optional<uid_t> socket_owner(std::string_view table, const SocketEnds& ends);
// Of the other end of an accepted connection within this machine.
std::optional<uid_t> peer_of(int fd);

}  // namespace penstock

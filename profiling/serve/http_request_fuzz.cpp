// Fuzz target: the input is the bytes from a client. Short inputs are parsed after every byte. Once the
// parser has returned a final state, more bytes must not change it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profiling/serve/access.hpp"
#include "profiling/serve/http_request.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using State = penstock::ParsedRequest::State;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const penstock::ParsedRequest whole = penstock::parse_request(all);
  if (whole.state == State::incomplete && size > penstock::kMostHeadBytes + penstock::kMostBodyBytes)
    std::abort();
  if (whole.state == State::refused && (whole.status < 400 || whole.reason.empty())) std::abort();
  if (whole.state == State::whole) {
    if (whole.request.path.empty() || whole.request.path.front() != '/') std::abort();
    if (whole.request.body.size() > penstock::kMostBodyBytes) std::abort();
    static_cast<void>(penstock::is_for_this_server(whole.request, 8080));
    static_cast<void>(penstock::has_token(whole.request, "0123456789abcdef0123456789abcdef"));
  }
  const size_t step = std::max<size_t>(1, size / 64);
  for (size_t at = 0; at < size; at += step) {
    const penstock::ParsedRequest part = penstock::parse_request(all.substr(0, at));
    if (part.state == State::incomplete) continue;
    if (part.state != whole.state || part.status != whole.status) std::abort();
    if (part.request.path != whole.request.path || part.request.body != whole.request.body) std::abort();
  }
  static_cast<void>(penstock::socket_owner(all, penstock::SocketEnds{0x0100007FU, 40000, 0x0100007FU, 8080}));
  return 0;
}

#include "profiling/serve/http_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "profiling/serve/access.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kChunkBytes = 256U << 10U;
constexpr int kMostChunksPerStep = 4;  // most pieces of one answer that step() sends
// most bytes that are still read from a client after it has got its answer
constexpr size_t kMostDrainedBytes = 1U << 20U;
constexpr std::chrono::seconds kMostDrainTime{1};  // longest time of reading from a client after its answer
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kMostAcceptedPerStep = 8;  // a limit, so that many new connections do not delay answers

}  // namespace

struct HttpServer::Connection {
  enum class State { reading, waiting, sending, draining, closed };

  uint64_t id = 0;
  Fd fd;
  State state = State::reading;
  bool is_refused = false;  // from another user, or over the limit of connections: it gets only an error
  bool head_only = false;
  Clock::time_point deadline;
  std::string received;
  // What to send now: the head of the answer, with its text if it has one, or a piece of `body`. The first
  // sent_bytes of it have been sent.
  std::string output;
  size_t sent_bytes = 0;
  std::unique_ptr<BodySource> body;
  size_t drained_bytes = 0;

  short poll_events() const {
    switch (state) {
      case State::reading:
      case State::draining:
        return POLLIN;
      case State::sending:
        return POLLOUT;
      default:
        // wakes poll() when the client closes the connection, or only its sending half
        return POLLRDHUP;
    }
  }
};

HttpServer::HttpServer(Fd listener, uint16_t port, Clients clients)
    : listener_(std::move(listener)), port_(port), clients_(clients) {}
HttpServer::HttpServer(HttpServer&&) noexcept = default;
HttpServer::~HttpServer() = default;

Result<HttpServer> HttpServer::listen(uint16_t port, Clients clients) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return errno_error(errno, "cannot make", "a socket");
  const int enabled = 1;
  static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled));
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t address_bytes = sizeof address;
  auto* const generic_address = reinterpret_cast<struct sockaddr*>(&address);
  if (::bind(fd.get(), generic_address, address_bytes) != 0 || ::listen(fd.get(), 64) != 0 ||
      ::getsockname(fd.get(), generic_address, &address_bytes) != 0) {
    if (errno == EADDRINUSE)
      return make_error(Errc::already_exists,
                        "port {} is in use: choose another port, or --port 0 for any free port", port);
    return errno_error(errno, "cannot listen on", fmt::format("127.0.0.1:{}", port));
  }
  return HttpServer(std::move(fd), ntohs(address.sin_port), clients);
}

// Accepts new connections until none waits, but at most kMostAcceptedPerStep. Connections of other users get
// status 403, and connections over the limit (kMostConnections) get 503. If as many refused connections as
// that limit are open, further ones are closed at once.
void HttpServer::accept_new() {
  for (int i = 0; i < kMostAcceptedPerStep && !interrupted(); ++i) {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!fd) {
      // Accepting failed, for example because no descriptor is free. The waiting connection would wake poll()
      // again at once, in an endless loop. So the server accepts nothing for a short time.
      if (errno != EAGAIN && errno != EWOULDBLOCK) accept_after_ = Clock::now() + kAcceptPause;
      return;
    }
    const auto refused_count = size_t(std::count_if(connections_.begin(), connections_.end(),
                                                    [](const auto& one) { return one->is_refused; }));
    auto connection = std::make_unique<Connection>();
    connection->id = next_id_++;
    connection->deadline = Clock::now() + kMostRequestTime;
    bool is_foreign = false;
    if (clients_ == Clients::own_user) {
      const std::optional<uid_t> owner = peer_of(fd.get());
      is_foreign = !owner || (*owner != ::geteuid() && *owner != 0);
    }
    connection->is_refused = is_foreign || connections_.size() - refused_count >= kMostConnections;
    connection->fd = std::move(fd);
    if (connection->is_refused && refused_count >= kMostConnections) continue;
    if (connection->is_refused)
      begin_answer(*connection,
                   is_foreign ? plain_response(403, "this page belongs to another user")
                              : plain_response(503, "too many connections at once"),
                   false);
    connections_.push_back(std::move(connection));
  }
}

void HttpServer::begin_answer(Connection& connection, HttpResponse response, bool head_only) {
  connection.output = response_head(response);
  connection.sent_bytes = 0;
  connection.head_only = head_only;
  if (!head_only && response.body == nullptr) connection.output += response.text;
  if (!head_only) connection.body = std::move(response.body);
  connection.state = Connection::State::sending;
  connection.deadline = Clock::now() + kMostIdleTime;
  send(connection);
}

void HttpServer::receive(Connection& connection, const Answer& answer) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got <= 0) {
    connection.state = Connection::State::closed;
    return;
  }
  connection.received.append(buffer.data(), size_t(got));
  const ParsedRequest parsed = parse_request(connection.received);
  if (parsed.state == ParsedRequest::State::incomplete) {
    constexpr std::string_view kContinueLine = "HTTP/1.1 100 Continue\r\n\r\n";
    // Nothing was sent to this client before, so the socket's buffer has space for the line. If not all of it
    // is sent, the client is gone.
    if (parsed.wants_continue && ::send(connection.fd.get(), kContinueLine.data(), kContinueLine.size(),
                                        MSG_NOSIGNAL) != ssize_t(kContinueLine.size()))
      connection.state = Connection::State::closed;
    return;
  }
  connection.received.clear();
  if (parsed.state == ParsedRequest::State::refused)
    return begin_answer(connection, plain_response(parsed.status, parsed.reason), false);
  connection.state = Connection::State::waiting;
  connection.deadline = Clock::time_point::max();
  connection.head_only = parsed.request.method == "HEAD";
  if (std::optional<HttpResponse> response = answer(parsed.request, connection.id))
    begin_answer(connection, *std::move(response), connection.head_only);
}

void HttpServer::reply(uint64_t id, HttpResponse response) {
  for (const auto& connection : connections_)
    if (connection->id == id && connection->state == Connection::State::waiting)
      return begin_answer(*connection, std::move(response), connection->head_only);
}

// Sends the answer, or as much as the socket's buffer takes now. Sends at most kMostChunksPerStep pieces of
// the body in one call, so that other connections need not wait long.
void HttpServer::send(Connection& connection) {
  for (int chunks = 0; chunks < kMostChunksPerStep;) {
    if (connection.sent_bytes == connection.output.size()) {
      size_t got = 0;
      if (connection.body != nullptr) {
        connection.output.resize(kChunkBytes);
        const Result<size_t> read = connection.body->read(std::span(connection.output.data(), kChunkBytes));
        if (!read.ok()) {
          // Closes the connection in the middle of the answer. The client notices the error, because the
          // answer is shorter than its Content-Length.
          connection.state = Connection::State::closed;
          return;
        }
        got = *read;
        ++chunks;
      }
      connection.output.resize(got);
      connection.sent_bytes = 0;
      if (got == 0) {
        // All is sent, but the socket is not closed yet: if unread bytes of the client remained, closing
        // would make the kernel discard the end of the answer. drain() reads them first.
        ::shutdown(connection.fd.get(), SHUT_WR);
        connection.state = Connection::State::draining;
        connection.deadline = Clock::now() + kMostDrainTime;
        connection.body.reset();
        return;
      }
    }
    const ssize_t sent = ::send(connection.fd.get(), connection.output.data() + connection.sent_bytes,
                                connection.output.size() - connection.sent_bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) {
      connection.state = Connection::State::closed;
      return;
    }
    connection.sent_bytes += size_t(sent);
    connection.deadline = Clock::now() + kMostIdleTime;
  }
}

// Reads and discards what the client still sends, until the client closes or a limit is reached.
void HttpServer::drain(Connection& connection) {
  std::array<char, 16384> buffer;
  const ssize_t got = ::recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got > 0) connection.drained_bytes += size_t(got);
  if (got <= 0 || connection.drained_bytes > kMostDrainedBytes) connection.state = Connection::State::closed;
}

// Handles connections whose deadline has passed: one that has not sent a whole request gets status 408, any
// other is closed. Then removes all closed connections from connections_. No other function removes any,
// because step() uses their indexes until it calls this function.
void HttpServer::close_expired() {
  const Clock::time_point now = Clock::now();
  for (const auto& connection : connections_) {
    if (now < connection->deadline) continue;
    if (connection->state == Connection::State::reading) {
      begin_answer(*connection, plain_response(408, "the request took too long"), false);
    } else {
      connection->state = Connection::State::closed;
    }
  }
  std::erase_if(connections_, [](const auto& one) { return one->state == Connection::State::closed; });
}

void HttpServer::step(std::chrono::milliseconds timeout, const Answer& answer) {
  std::vector<struct pollfd> poll_entries;
  poll_entries.reserve(connections_.size() + 1);
  for (const auto& connection : connections_)
    poll_entries.push_back({connection->fd.get(), connection->poll_events(), 0});
  const bool is_listening = Clock::now() >= accept_after_;
  poll_entries.push_back({is_listening ? listener_.get() : -1, POLLIN, 0});
  if (::poll(poll_entries.data(), poll_entries.size(), int(timeout.count())) > 0) {
    for (size_t i = 0; i + 1 < poll_entries.size(); ++i) {
      Connection& connection = *connections_[i];
      if (poll_entries[i].revents == 0) continue;
      if (connection.state == Connection::State::reading) {
        receive(connection, answer);
      } else if (connection.state == Connection::State::sending) {
        send(connection);
      } else if (connection.state == Connection::State::draining) {
        drain(connection);
      } else {
        // the client has closed the connection before its answer was ready
        connection.state = Connection::State::closed;
      }
    }
    if (poll_entries.back().revents != 0) accept_new();
  }
  close_expired();
}

}  // namespace penstock

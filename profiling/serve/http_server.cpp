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

constexpr std::size_t kChunk = 256U << 10U;
constexpr int kMostChunks = 4;  // pieces of one answer that one step sends
// limit for bytes that a client sends after the answered request
constexpr std::size_t kMostDrained = 1U << 20U;
constexpr std::chrono::seconds kMostDrainTime{1};  // time limit for these bytes
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kMostAccepted = 8;  // in one step, so that new connections do not delay the answers

}  // namespace

struct HttpServer::Connection {
  enum class State { reading, waiting, sending, draining, closed };

  std::uint64_t id = 0;
  Fd fd;
  State state = State::reading;
  bool refused = false;  // another user's, or over the limit of connections; it only gets an error
  bool head_only = false;
  Clock::time_point deadline;
  std::string received;
  std::string out;  // the bytes to send next
  std::size_t sent = 0;
  std::unique_ptr<BodySource> body;
  std::size_t drained = 0;

  short events() const {
    switch (state) {
      case State::reading:
      case State::draining:
        return POLLIN;
      case State::sending:
        return POLLOUT;
      default:
        return POLLRDHUP;  // a client that closes only its sending half counts as closed
    }
  }
};

HttpServer::HttpServer(Fd listener, std::uint16_t port) : listener_(std::move(listener)), port_(port) {}
HttpServer::HttpServer(HttpServer&&) noexcept = default;
HttpServer::~HttpServer() = default;

Result<HttpServer> HttpServer::listen(std::uint16_t port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return errno_error(errno, "cannot make", "a socket");
  const int on = 1;
  static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const plain = reinterpret_cast<struct sockaddr*>(&address);
  if (::bind(fd.get(), plain, bytes) != 0 || ::listen(fd.get(), 64) != 0 ||
      ::getsockname(fd.get(), plain, &bytes) != 0) {
    if (errno == EADDRINUSE)
      return make_error(
          Errc::already_exists,
          fmt::format("port {} is somebody's already: give another one, or none (--port 0)", port));
    return errno_error(errno, "cannot listen on", fmt::format("127.0.0.1:{}", port));
  }
  return HttpServer(std::move(fd), ntohs(address.sin_port));
}

// Accepts new connections until none waits, at most kMostAccepted. Connections of other users get 403, those
// over the limit 503. If too many of these wait for their answer, further ones are closed at once.
void HttpServer::accept_some() {
  for (int i = 0; i < kMostAccepted && !interrupted(); ++i) {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!fd) {
      // No descriptors are free. Waiting connections would wake poll() again at once, so the listener pauses.
      if (errno != EAGAIN && errno != EWOULDBLOCK) accept_again_ = Clock::now() + kAcceptPause;
      return;
    }
    const auto refused = static_cast<std::size_t>(std::count_if(
        connections_.begin(), connections_.end(), [](const auto& one) { return one->refused; }));
    auto connection = std::make_unique<Connection>();
    connection->id = next_id_++;
    connection->deadline = Clock::now() + kMostRequestTime;
    const std::optional<uid_t> owner = peer_of(fd.get());
    const bool foreign = !owner || (*owner != ::geteuid() && *owner != 0);
    connection->refused = foreign || connections_.size() - refused >= kMostConnections;
    connection->fd = std::move(fd);
    if (connection->refused && refused >= kMostConnections) continue;
    if (connection->refused)
      begin_answer(*connection,
                   foreign ? plain_response(403, "this is another user's")
                           : plain_response(503, "too many connections at once"),
                   false);
    connections_.push_back(std::move(connection));
  }
}

void HttpServer::begin_answer(Connection& connection, HttpResponse response, bool head_only) {
  connection.out = response_head(response);
  connection.sent = 0;
  connection.head_only = head_only;
  if (!head_only && response.body == nullptr) connection.out += response.text;
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
  connection.received.append(buffer.data(), static_cast<std::size_t>(got));
  const ParsedRequest parsed = parse_request(connection.received);
  if (parsed.state == ParsedRequest::State::incomplete) {
    constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
    // These are the first bytes of the connection, so the socket's buffer has space. If not all are sent, the
    // client is gone.
    if (parsed.wants_continue && ::send(connection.fd.get(), kGoOn.data(), kGoOn.size(), MSG_NOSIGNAL) !=
                                     static_cast<ssize_t>(kGoOn.size()))
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

void HttpServer::reply(std::uint64_t id, HttpResponse response) {
  for (const auto& connection : connections_)
    if (connection->id == id && connection->state == Connection::State::waiting)
      return begin_answer(*connection, std::move(response), connection->head_only);
}

// Sends until the socket's buffer is full, at most kMostChunks pieces. Then the other connections get their
// turn.
void HttpServer::send(Connection& connection) {
  for (int chunks = 0; chunks < kMostChunks;) {
    if (connection.sent == connection.out.size()) {
      std::size_t got = 0;
      if (connection.body != nullptr) {
        connection.out.resize(kChunk);
        const Result<std::size_t> read = connection.body->read(std::span(connection.out.data(), kChunk));
        if (!read.ok()) {
          // the client sees an answer that is shorter than announced
          connection.state = Connection::State::closed;
          return;
        }
        got = *read;
        ++chunks;
      }
      connection.out.resize(got);
      connection.sent = 0;
      if (got == 0) {
        // After a close with unread input, the kernel would discard the answer. So the input is read first.
        ::shutdown(connection.fd.get(), SHUT_WR);
        connection.state = Connection::State::draining;
        connection.deadline = Clock::now() + kMostDrainTime;
        connection.body.reset();
        return;
      }
    }
    const ssize_t sent = ::send(connection.fd.get(), connection.out.data() + connection.sent,
                                connection.out.size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) {
      connection.state = Connection::State::closed;
      return;
    }
    connection.sent += static_cast<std::size_t>(sent);
    connection.deadline = Clock::now() + kMostIdleTime;
  }
}

// Reads and discards what the client still sends, until the client closes or a limit is reached.
void HttpServer::drain(Connection& connection) {
  std::array<char, 16384> buffer;
  const ssize_t got = ::recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got > 0) connection.drained += static_cast<std::size_t>(got);
  if (got <= 0 || connection.drained > kMostDrained) connection.state = Connection::State::closed;
}

// Ends connections whose time is over, and removes those that have ended. Only this function removes
// connections. So step() may use its list of descriptors and connections until this call.
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

void HttpServer::step(std::chrono::milliseconds most, const Answer& answer) {
  std::vector<struct pollfd> watched;
  watched.reserve(connections_.size() + 1);
  for (const auto& connection : connections_)
    watched.push_back({connection->fd.get(), connection->events(), 0});
  const bool listens = Clock::now() >= accept_again_;
  watched.push_back({listens ? listener_.get() : -1, POLLIN, 0});
  if (::poll(watched.data(), watched.size(), static_cast<int>(most.count())) > 0) {
    for (std::size_t i = 0; i + 1 < watched.size(); ++i) {
      Connection& connection = *connections_[i];
      if (watched[i].revents == 0) continue;
      if (connection.state == Connection::State::reading) {
        receive(connection, answer);
      } else if (connection.state == Connection::State::sending) {
        send(connection);
      } else if (connection.state == Connection::State::draining) {
        drain(connection);
      } else {
        connection.state = Connection::State::closed;  // the client closed the connection while it waited
      }
    }
    if (watched.back().revents != 0) accept_some();
  }
  close_expired();
}

}  // namespace penstock

// A small HTTP server for users of this machine only. It listens on 127.0.0.1, answers one request for each
// connection, and never waits for a slow client.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"
#include "profiling/serve/http_request.hpp"
#include "profiling/serve/http_response.hpp"

namespace penstock {

constexpr size_t kMostConnections = 32;               // further clients get status 503
constexpr std::chrono::seconds kMostRequestTime{10};  // limit for a client to send its whole request
constexpr std::chrono::seconds kMostIdleTime{60};     // limit for a client that does not read its answer

// The server. Only one thread may use an instance. Every connection is closed after its answer. With
// Clients::own_user, a connection of an unknown user, or of a user other than root and this process's own,
// gets status 403. It is closed at once if kMostConnections refused connections are open.
class HttpServer {
 public:
  enum class Clients : uint8_t { own_user, any_user };

  // Port 0 selects a free port. Error: already_exists if another program uses the port.
  static Result<HttpServer> listen(uint16_t port, Clients clients = Clients::own_user);
  HttpServer(HttpServer&&) noexcept;
  HttpServer& operator=(HttpServer&&) = delete;
  ~HttpServer();

  uint16_t port() const { return port_; }

  // Makes the answer to a request, or returns nullopt if the answer comes later by reply(). If the client
  // closes its connection before the reply, or only its sending half, it gets no answer.
  using Answer = std::function<std::optional<HttpResponse>(const HttpRequest&, uint64_t connection)>;
  // Waits up to `timeout` until a client connects, sends something or can receive more. Then handles what is
  // ready. The work in one call is limited, so step() returns soon even if there are many clients.
  void step(std::chrono::milliseconds timeout, const Answer& answer);
  // Sends a late answer. Does nothing if the client has closed the connection.
  void reply(uint64_t connection, HttpResponse response);

 private:
  struct Connection;
  HttpServer(Fd listener, uint16_t port, Clients clients);
  void accept_new();
  void receive(Connection& connection, const Answer& answer);
  void send(Connection& connection);
  void drain(Connection& connection);
  void begin_answer(Connection& connection, HttpResponse response, bool head_only);
  void close_expired();

  Fd listener_;
  uint16_t port_ = 0;
  Clients clients_ = Clients::own_user;
  uint64_t next_id_ = 1;
  std::chrono::steady_clock::time_point accept_after_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace penstock

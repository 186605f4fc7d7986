// A small HTTP server for users of this machine alone: it listens on 127.0.0.1, answers one request per
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

constexpr std::size_t kMostConnections = 32;  // beyond: 503
constexpr std::chrono::seconds kMostRequestTime{10};
constexpr std::chrono::seconds kMostIdleTime{60};  // of a client that does not take its answer

// One thread. Each answer closes its connection. Users other than this process's own and root get 403,
// whatever they ask.
class HttpServer {
 public:
  // Port 0: one that is free. already_exists where somebody has the port.
  static Result<HttpServer> listen(std::uint16_t port);
  HttpServer(HttpServer&&) noexcept;
  HttpServer& operator=(HttpServer&&) = delete;
  ~HttpServer();

  std::uint16_t port() const { return port_; }

  // The answer, or nothing: then reply() says it later, unless the client has closed its connection, or its
  // half of it, before.
  using Answer = std::function<std::optional<HttpResponse>(const HttpRequest&, std::uint64_t connection)>;
  // Waits until something happens, at most so long, and does a bounded part of what can be done without
  // waiting, however many connect.
  void step(std::chrono::milliseconds most, const Answer& answer);
  // Does nothing where the client has gone.
  void reply(std::uint64_t connection, HttpResponse response);

 private:
  struct Connection;
  explicit HttpServer(Fd listener, std::uint16_t port);
  void accept_some();
  void receive(Connection& connection, const Answer& answer);
  void send(Connection& connection);
  void drain(Connection& connection);
  void begin_answer(Connection& connection, HttpResponse response, bool head_alone);
  void check_time();

  Fd listener_;
  std::uint16_t port_ = 0;
  std::uint64_t next_ = 1;
  std::chrono::steady_clock::time_point accept_again_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace penstock

// Threads: the thread of the test calls the public functions. acceptor_ runs accept(). Each connection has a
// thread in workers_, which runs serve(). stop() joins all of them.
// Lock: mutex_ guards objects_, uploads_, aborted_, faults_, visitor_, sockets_, workers_ and the members of
// crash_every(). It is not held while a socket is read or written, or while the visitor runs.
#include "io_backends/s3/test_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "io_backends/core/text.hpp"

namespace penstock::s3 {
namespace {

constexpr char kTlsHandshake = 0x16;  // first byte of a TLS client; the server closes such a connection

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive(int socket, std::string& pending) {
  char buffer[65536];
  const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  pending.append(buffer, static_cast<std::size_t>(got));
  return true;
}

bool parse_head(const std::string& head, TestServer::Request& request) {
  std::size_t end = head.find("\r\n");
  const std::string first = head.substr(0, end);
  const std::size_t space = first.find(' ');
  const std::size_t second = first.rfind(' ');
  if (space == std::string::npos || second == space) return false;
  request.method = first.substr(0, space);
  request.target = first.substr(space + 1, second - space - 1);
  const std::size_t mark = request.target.find('?');
  request.path = uri_decode(request.target.substr(0, mark), false);
  std::string rest = mark == std::string::npos ? "" : request.target.substr(mark + 1);
  while (!rest.empty()) {
    const std::size_t stop = std::min(rest.find('&'), rest.size());
    const std::string word = rest.substr(0, stop);
    const std::size_t equals = std::min(word.find('='), word.size());
    request.query[uri_decode(word.substr(0, equals), false)] =
        uri_decode(word.substr(std::min(equals + 1, word.size())), false);
    rest.erase(0, stop + 1);
  }
  while (end != std::string::npos) {
    const std::size_t begin = end + 2;
    end = head.find("\r\n", begin);
    const std::string line = head.substr(begin, end - begin);
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos)
      request.headers[lower_case(line.substr(0, colon))] = line.substr(colon + 2);
  }
  return true;
}

}  // namespace

TestServer::TestServer() {
  start();
}

TestServer::~TestServer() {
  stop();
}

void TestServer::announce() const {
  ::setenv("PENSTOCK_TEST_S3", url().c_str(), 1);
  ::setenv("AWS_ACCESS_KEY_ID", kKeyId, 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", kSecret, 1);
  ::setenv("no_proxy", "127.0.0.1", 1);
  for (const char* const name : {"AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"})
    ::unsetenv(name);
}

void TestServer::start() {
  stopping_ = false;
  listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), generic, size) != 0 || ::listen(listener_.get(), 128) != 0 ||
      ::getsockname(listener_.get(), generic, &size) != 0)
    std::abort();
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept(); });
}

void TestServer::stop() {
  if (stopping_.exchange(true)) return;
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  listener_.close();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void TestServer::inject_faults(ServerFault fault, unsigned count, std::string method, std::string part) {
  const std::lock_guard lock(mutex_);
  faults_.push_back({fault, count, std::move(method), std::move(part)});
}

void TestServer::clear_faults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
}

void TestServer::crash_every(unsigned every, unsigned times) {
  const std::lock_guard lock(mutex_);
  crashes_left_ = times;
  every_ = until_crash_ = every;
}

unsigned TestServer::crashes_left() {
  const std::lock_guard lock(mutex_);
  return crashes_left_;
}

bool TestServer::crash_if_due() {
  const std::lock_guard lock(mutex_);
  if (crashes_left_ == 0 || --until_crash_ > 0) return false;
  --crashes_left_;
  until_crash_ = every_;
  reset_next_ = true;
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  return true;
}

bool TestServer::reset_if_due(int socket) {
  if (!std::exchange(reset_next_, false)) return false;
  const linger at_once{1, 0};  // close() then sends a reset, as a port without a listener does
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket);
  return true;
}

void TestServer::set_visitor(Visitor visitor) {
  const std::lock_guard lock(mutex_);
  visitor_ = std::move(visitor);
}

TestServer::Visitor TestServer::visitor_now() {
  const std::lock_guard lock(mutex_);
  return visitor_;
}

void TestServer::replace(const std::string& key, std::string bytes) {
  const std::lock_guard lock(mutex_);
  std::string etag = "\"replaced-" + std::to_string(++replaced_) + "\"";
  objects_[key] = {std::move(bytes), std::move(etag), ""};
}

std::size_t TestServer::uploads() {
  const std::lock_guard lock(mutex_);
  return uploads_.size();
}

void TestServer::accept() {
  while (!stopping_) {
    const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const std::lock_guard lock(mutex_);
    if (reset_if_due(socket)) continue;
    ++connections_;
    sockets_.insert(socket);
    workers_.emplace_back([this, socket] { serve(socket); });
  }
}

void TestServer::serve(int socket) {
  for (std::string pending; !stopping_ && serve_one(socket, pending);) {
  }
  const std::lock_guard lock(mutex_);
  sockets_.erase(socket);
  ::close(socket);
}

namespace {

TestServer::Reply misleading_reply(ServerFault fault) {
  switch (fault) {
    case ServerFault::blanks:
      return {200, {}, " \n \n  "};
    case ServerFault::cut_result:
      return {200, {}, "<CompleteMultipartUploadResult><ETag>x</ETag>"};
    case ServerFault::other_result:
      return {200, {}, "<ListBucketResult></ListBucketResult>"};
    case ServerFault::late_error:
      return {200, {}, " \n<Error><Code>InternalError</Code><Message>try again</Message></Error>"};
    default:
      return {200, {}, "<html><body>Welcome</body></html>"};
  }
}

}  // namespace

bool TestServer::serve_one(int socket, std::string& pending) {
  std::size_t end = 0;
  while ((end = pending.find("\r\n\r\n")) == std::string::npos)
    if (!receive(socket, pending) || pending.front() == kTlsHandshake) return false;
  Request request;
  if (!parse_head(pending.substr(0, end), request)) return false;
  pending.erase(0, end + 4);
  const std::size_t length = std::strtoull(request.header("content-length").c_str(), nullptr, 10);
  while (pending.size() < length)
    if (!receive(socket, pending)) return false;
  request.body = pending.substr(0, length);
  pending.erase(0, length);

  if (crash_if_due()) return false;
  ++requests_;
  const unsigned now = ++at_once_;
  for (unsigned most = most_at_once_; now > most && !most_at_once_.compare_exchange_weak(most, now);) {
  }
  for (unsigned ms = 0; most_at_once_ < min_at_once && !stopping_ && ms < 10'000; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const ServerFault fault = fault_for(request);
  Reply reply;
  if (const auto visitor = visitor_now()) visitor(request.method, request.header("range"));
  if (fault == ServerFault::silence) std::this_thread::sleep_for(std::chrono::seconds(4));
  if (fault == ServerFault::internal_error) {
    reply = Reply::refuse(500, "InternalError");
  } else if (fault == ServerFault::slow_down) {
    reply = Reply::refuse(503, "SlowDown");
  } else if (fault == ServerFault::forbidden) {
    reply = Reply::refuse(403, "AccessDenied");
  } else if (fault >= ServerFault::page && fault < ServerFault::page_after) {
    reply = misleading_reply(fault);
  } else if (fault != ServerFault::hang_up && fault != ServerFault::silence) {
    reply = check_signature(request);
    if (fault == ServerFault::no_ranges) request.headers.erase("range");
    if (reply.status == 200) reply = answer(request);
    if (reply.status == 206) change_range(fault, reply);
    if (fault == ServerFault::page_after) reply = misleading_reply(fault);
  }
  --at_once_;
  if (fault == ServerFault::hang_up || fault == ServerFault::silence || fault == ServerFault::lost_answer)
    return false;
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " Word\r\n";
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  if (reply.status != 204 && request.method != "HEAD")
    head += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  head += "\r\n";
  if (request.method == "HEAD" || reply.status == 204) reply.body.clear();
  if (fault == ServerFault::cut) reply.body.resize(reply.body.size() / 2);
  return send_all(socket, head + reply.body) && fault != ServerFault::cut;
}

ServerFault TestServer::fault_for(const Request& request) {
  const std::lock_guard lock(mutex_);
  for (InjectedFault& one : faults_) {
    const bool meant = (one.method.empty() || one.method == request.method) &&
                       (request.target + " " + request.header("range")).find(one.part) != std::string::npos;
    if (!meant || one.count == 0) continue;
    --one.count;
    return one.fault;
  }
  return ServerFault::none;
}

}  // namespace penstock::s3

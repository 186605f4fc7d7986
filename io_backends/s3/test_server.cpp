// Threads: the thread of the test calls the public functions. acceptor_ runs accept(). Each connection has a
// thread in workers_, which runs serve(). stop() joins all of them.
// Lock: mutex_ guards objects_, uploads_, aborted_uploads_, faults_, visitor_, sockets_, workers_ and the
// members of crash_every(). It is not held while a socket is read or written, or while the visitor runs.
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

// first byte that a TLS client sends; the server closes such a connection
constexpr char kTlsHandshake = 0x16;

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(size_t(sent));
  }
  return true;
}

bool receive(int socket, std::string& pending) {
  char buffer[65536];
  const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  pending.append(buffer, size_t(got));
  return true;
}

bool parse_head(const std::string& head, TestServer::Request& request) {
  size_t end = head.find("\r\n");
  const std::string request_line = head.substr(0, end);
  const size_t first_blank = request_line.find(' ');
  const size_t last_blank = request_line.rfind(' ');
  if (first_blank == std::string::npos || last_blank == first_blank) return false;
  request.method = request_line.substr(0, first_blank);
  request.target = request_line.substr(first_blank + 1, last_blank - first_blank - 1);
  const size_t question_mark = request.target.find('?');
  request.path = uri_decode(request.target.substr(0, question_mark), false);
  std::string rest = question_mark == std::string::npos ? "" : request.target.substr(question_mark + 1);
  while (!rest.empty()) {
    const size_t word_end = std::min(rest.find('&'), rest.size());
    const std::string word = rest.substr(0, word_end);
    const size_t equals = std::min(word.find('='), word.size());
    request.query[uri_decode(word.substr(0, equals), false)] =
        uri_decode(word.substr(std::min(equals + 1, word.size())), false);
    rest.erase(0, word_end + 1);
  }
  while (end != std::string::npos) {
    const size_t begin = end + 2;
    end = head.find("\r\n", begin);
    const std::string line = head.substr(begin, end - begin);
    const size_t colon = line.find(": ");
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

void TestServer::set_environment() const {
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
  const int enabled = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(uint16_t(port_));
  socklen_t size = sizeof address;
  auto* const socket_address = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), socket_address, size) != 0 || ::listen(listener_.get(), 128) != 0 ||
      ::getsockname(listener_.get(), socket_address, &size) != 0)
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
  crash_interval_ = requests_until_crash_ = every;
}

unsigned TestServer::crashes_left() {
  const std::lock_guard lock(mutex_);
  return crashes_left_;
}

bool TestServer::crash_if_due() {
  const std::lock_guard lock(mutex_);
  if (crashes_left_ == 0 || --requests_until_crash_ > 0) return false;
  --crashes_left_;
  requests_until_crash_ = crash_interval_;
  reset_next_ = true;
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  return true;
}

bool TestServer::reset_if_due(int socket) {
  if (!std::exchange(reset_next_, false)) return false;
  // With a linger time of 0, close() sends a reset. For a client, this is the same as a port on which no
  // server listens.
  const linger no_linger{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &no_linger, sizeof no_linger);
  ::close(socket);
  return true;
}

void TestServer::set_visitor(Visitor visitor) {
  const std::lock_guard lock(mutex_);
  visitor_ = std::move(visitor);
}

TestServer::Visitor TestServer::current_visitor() {
  const std::lock_guard lock(mutex_);
  return visitor_;
}

void TestServer::replace(const std::string& key, std::string bytes) {
  const std::lock_guard lock(mutex_);
  std::string etag = "\"replaced-" + std::to_string(++replacements_) + "\"";
  objects_[key] = {std::move(bytes), std::move(etag), ""};
}

size_t TestServer::open_uploads() {
  const std::lock_guard lock(mutex_);
  return uploads_.size();
}

void TestServer::accept() {
  while (!stopping_) {
    const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    const int enabled = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &enabled, sizeof enabled);
    const std::lock_guard lock(mutex_);
    if (reset_if_due(socket)) continue;
    ++connections_;
    sockets_.insert(socket);
    workers_.emplace_back([this, socket] { serve(socket); });
  }
}

void TestServer::serve(int socket) {
  for (std::string pending; !stopping_ && serve_request(socket, pending);) {
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

bool TestServer::serve_request(int socket, std::string& pending) {
  size_t end = 0;
  while ((end = pending.find("\r\n\r\n")) == std::string::npos)
    if (!receive(socket, pending) || pending.front() == kTlsHandshake) return false;
  Request request;
  if (!parse_head(pending.substr(0, end), request)) return false;
  pending.erase(0, end + 4);
  const size_t length = std::strtoull(request.header("content-length").c_str(), nullptr, 10);
  while (pending.size() < length)
    if (!receive(socket, pending)) return false;
  request.body = pending.substr(0, length);
  pending.erase(0, length);

  if (crash_if_due()) return false;
  ++requests_;
  const unsigned in_progress = ++in_progress_;
  for (unsigned most = most_in_progress_;
       in_progress > most && !most_in_progress_.compare_exchange_weak(most, in_progress);) {
  }
  for (unsigned ms = 0; most_in_progress_ < min_in_progress && !stopping_ && ms < 10'000; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const ServerFault fault = fault_for(request);
  Reply reply;
  if (const auto visitor = current_visitor()) visitor(request.method, request.header("range"));
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
  --in_progress_;
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
  for (InjectedFault& injected : faults_) {
    const bool matches =
        (injected.method.empty() || injected.method == request.method) &&
        (request.target + " " + request.header("range")).find(injected.part) != std::string::npos;
    if (!matches || injected.count == 0) continue;
    --injected.count;
    return injected.fault;
  }
  return ServerFault::none;
}

}  // namespace penstock::s3

#include "io_backends/s3/test_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "io_backends/s3/answers.hpp"

namespace penstock::s3 {
namespace {

std::string header(const TestServer::Request& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

std::string query(const TestServer::Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

TestServer::Reply refuse(int status, const std::string& code) {
  return {
      status, {}, "<?xml version=\"1.0\"?>\n<Error><Code>" + code + "</Code><Message>no</Message></Error>"};
}

std::string hash_of(const std::string& bytes) {
  return hex(sha256(std::as_bytes(std::span(bytes))));
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The value behind "name=" in a list divided by ", ".
std::string field(const std::string& list, const std::string& name) {
  const std::size_t at = list.find(name + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 1;
  return list.substr(begin, list.find(',', begin) - begin);
}

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
    if (colon != std::string::npos) request.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
  }
  return true;
}

std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return escaped;
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

void TestServer::spoil(Mishap mishap, unsigned count, std::string method, std::string part) {
  const std::lock_guard lock(mutex_);
  spoiled_.push_back({mishap, count, std::move(method), std::move(part)});
}

void TestServer::die(unsigned times, unsigned every) {
  const std::lock_guard lock(mutex_);
  deaths_ = times;
  every_ = until_death_ = every;
}

unsigned TestServer::deaths_to_come() {
  const std::lock_guard lock(mutex_);
  return deaths_;
}

bool TestServer::dies() {
  const std::lock_guard lock(mutex_);
  if (deaths_ == 0 || --until_death_ > 0) return false;
  --deaths_;
  until_death_ = every_;
  turns_away_ = true;
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  return true;
}

bool TestServer::turns_away(int socket) {
  if (!std::exchange(turns_away_, false)) return false;
  const linger at_once{1, 0};  // a reset, as from a machine where nobody listens
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
    if (turns_away(socket)) continue;
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

bool TestServer::serve_one(int socket, std::string& pending) {
  std::size_t end = 0;
  while ((end = pending.find("\r\n\r\n")) == std::string::npos)
    if (!receive(socket, pending)) return false;
  Request request;
  if (!parse_head(pending.substr(0, end), request)) return false;
  pending.erase(0, end + 4);
  const std::size_t length = std::strtoull(header(request, "content-length").c_str(), nullptr, 10);
  while (pending.size() < length)
    if (!receive(socket, pending)) return false;
  request.body = pending.substr(0, length);
  pending.erase(0, length);

  if (dies()) return false;
  ++requests_;
  const unsigned now = ++at_once_;
  for (unsigned most = most_at_once_; now > most && !most_at_once_.compare_exchange_weak(most, now);) {
  }
  for (unsigned ms = 0; most_at_once_ < gather && !stopping_ && ms < 10'000; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Mishap mishap = mishap_of(request);
  Reply reply;
  if (const auto visitor = visitor_now()) visitor(request.method, header(request, "range"));
  if (mishap == Mishap::silence) std::this_thread::sleep_for(std::chrono::seconds(4));
  if (mishap == Mishap::internal_error) {
    reply = refuse(500, "InternalError");
  } else if (mishap == Mishap::slow_down) {
    reply = refuse(503, "SlowDown");
  } else if (mishap == Mishap::forbidden) {
    reply = refuse(403, "AccessDenied");
  } else if (mishap != Mishap::hang_up && mishap != Mishap::silence) {
    reply = check_signature(request);
    if (mishap == Mishap::no_ranges) request.headers.erase("range");
    if (reply.status == 200) reply = answer(request);
    if (reply.status == 206) spoil_range(mishap, reply);
  }
  --at_once_;
  if (mishap == Mishap::hang_up || mishap == Mishap::silence || mishap == Mishap::lost_answer) return false;
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " Word\r\n";
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  if (reply.status != 204 && request.method != "HEAD")
    head += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  head += "\r\n";
  if (request.method == "HEAD" || reply.status == 204) reply.body.clear();
  if (mishap == Mishap::cut) reply.body.resize(reply.body.size() / 2);
  return send_all(socket, head + reply.body) && mishap != Mishap::cut;
}

Mishap TestServer::mishap_of(const Request& request) {
  const std::lock_guard lock(mutex_);
  for (Spoiled& one : spoiled_) {
    const bool meant = (one.method.empty() || one.method == request.method) &&
                       (request.target + " " + header(request, "range")).find(one.part) != std::string::npos;
    if (!meant || one.count == 0) continue;
    --one.count;
    return one.mishap;
  }
  return Mishap::none;
}

TestServer::Reply TestServer::check_signature(const Request& request) const {
  const std::string given = header(request, "authorization");
  if (given.empty()) return refuse(403, "AccessDenied");
  const std::string credential = field(given, "Credential");
  if (credential.substr(0, credential.find('/')) != kKeyId) return refuse(403, "InvalidAccessKeyId");
  const std::string date = header(request, "x-amz-date");
  if (std::llabs(std::atoll(amz_date(std::time(nullptr)).substr(0, 8).c_str()) -
                 std::atoll(date.substr(0, 8).c_str())) > 1)
    return refuse(403, "RequestTimeTooSkewed");
  const std::string hash = header(request, "x-amz-content-sha256");
  if (hash != kUnsignedPayload && hash != hash_of(request.body))
    return refuse(400, "XAmzContentSHA256Mismatch");
  Pairs sorted(request.query.begin(), request.query.end());
  ToSign signing{request.method, uri_encode(request.path, true), query_string(sorted), {}, hash};
  std::string names = field(given, "SignedHeaders") + ";";
  for (std::size_t end = 0; (end = names.find(';')) != std::string::npos; names.erase(0, end + 1))
    signing.headers.emplace_back(names.substr(0, end), header(request, names.substr(0, end)));
  for (const auto& [name, value] : request.headers)
    if ((name == "host" || name.starts_with("x-amz-")) &&
        std::find(signing.headers.begin(), signing.headers.end(), std::pair(name, value)) ==
            signing.headers.end())
      return refuse(403, "AccessDenied");
  if (authorization(signing, {kKeyId, kSecret, ""}, "us-east-1", "s3", date) != given)
    return refuse(403, "SignatureDoesNotMatch");
  return {};
}

TestServer::Reply TestServer::answer(const Request& request) {
  const std::size_t slash = std::min(request.path.find('/', 1), request.path.size());
  if (request.path.substr(0, slash) != "/bucket") return refuse(404, "NoSuchBucket");
  const std::string key = request.path.substr(std::min(slash + 1, request.path.size()));
  if (key.size() > 1024) return refuse(400, "KeyTooLongError");
  const std::lock_guard lock(mutex_);
  return key.empty() ? list(request) : answer_key(request, key);
}

TestServer::Reply TestServer::answer_key(const Request& request, const std::string& key) {
  const auto found = objects_.find(key);
  if (request.method == "GET" || request.method == "HEAD")
    return found == objects_.end() ? refuse(404, "NoSuchKey") : get(request, found->second);
  if (request.method == "DELETE") {
    if (request.query.contains("uploadId")) {
      if (uploads_.erase(query(request, "uploadId")) == 0) return refuse(404, "NoSuchUpload");
    } else if (found != objects_.end()) {
      objects_.erase(found);
    }
    return {204, {}, ""};
  }
  if (request.method == "POST" && request.query.contains("uploads")) {
    const std::string id = "upload/" + std::to_string(++next_upload_);
    uploads_[id] = {key, header(request, "x-amz-meta-penstock"), {}};
    return {200,
            {},
            "<InitiateMultipartUploadResult><UploadId>" + id + "</UploadId></InitiateMultipartUploadResult>"};
  }
  if (header(request, "if-none-match") == "*" && knows_conditions && found != objects_.end())
    return refuse(412, "PreconditionFailed");
  if (request.method == "POST") return complete(request, key);
  if (request.headers.contains("x-amz-copy-source")) return copy(request, key);
  return put(request, key);
}

TestServer::Reply TestServer::get(const Request& request, const Object& object) {
  Reply reply{200, {{"ETag", object.etag}}, object.bytes};
  if (!object.mark.empty()) reply.headers.emplace_back("X-Amz-Meta-Penstock", object.mark);
  const std::string match = header(request, "if-match");
  if (!match.empty() && match != object.etag) return refuse(412, "PreconditionFailed");
  if (request.method == "HEAD") {
    reply.headers.emplace_back("Content-Length", std::to_string(object.bytes.size()));
    return reply;
  }
  const std::string range = header(request, "range");
  if (range.empty()) return reply;
  const std::size_t dash = range.find('-');
  const std::uint64_t first = std::strtoull(range.c_str() + 6, nullptr, 10);
  const std::uint64_t last = std::strtoull(range.c_str() + dash + 1, nullptr, 10);
  if (first >= object.bytes.size()) return refuse(416, "InvalidRange");
  reply.status = 206;
  reply.body = object.bytes.substr(first, last - first + 1);
  reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                  std::to_string(first + reply.body.size() - 1) + "/" +
                                                  std::to_string(object.bytes.size()));
  return reply;
}

void TestServer::spoil_range(Mishap mishap, Reply& reply) {
  std::string& said = reply.headers.back().second;
  const ContentRange range = parse_content_range(said);
  const std::string whole = "/" + std::to_string(*range.whole);
  if (mishap == Mishap::wrong_range)
    said = "bytes " + std::to_string(*range.first + 1) + "-" +
           std::to_string(*range.first + reply.body.size()) + whole;
  if (mishap == Mishap::short_range) {
    reply.body.resize(reply.body.size() / 2);
    said = "bytes " + std::to_string(*range.first) + "-" +
           std::to_string(*range.first + reply.body.size() - 1) + whole;
  }
  if (mishap == Mishap::unsaid_range) reply.headers.pop_back();
}

TestServer::Reply TestServer::put(const Request& request, const std::string& key) {
  const std::string etag = "\"" + hash_of(request.body).substr(0, 32) + "\"";
  if (request.query.contains("partNumber")) {
    const auto upload = uploads_.find(query(request, "uploadId"));
    if (upload == uploads_.end() || upload->second.key != key) return refuse(404, "NoSuchUpload");
    upload->second.parts[std::atoi(query(request, "partNumber").c_str())] = request.body;
  } else {
    objects_[key] = {request.body, etag, header(request, "x-amz-meta-penstock")};
  }
  return {200, {{"ETag", etag}}, ""};
}

TestServer::Reply TestServer::copy(const Request& request, const std::string& key) {
  const std::string source = uri_decode(header(request, "x-amz-copy-source"), false);
  const auto from = objects_.find(source.substr(std::string("/bucket/").size()));
  if (from == objects_.end()) return refuse(404, "NoSuchKey");
  objects_[key] = from->second;
  return {200, {}, "<CopyObjectResult><ETag>x</ETag></CopyObjectResult>"};
}

TestServer::Reply TestServer::complete(const Request& request, const std::string& key) {
  constexpr std::size_t kLeast = std::size_t{5} << 20U;
  const auto upload = uploads_.find(query(request, "uploadId"));
  if (upload == uploads_.end() || upload->second.key != key) return refuse(404, "NoSuchUpload");
  std::string bytes;
  int number = 0;
  bool right = true;
  const auto parsed = parse_xml(request.body, [&](std::string_view path, const std::string& text) {
    if (path == "CompleteMultipartUpload/Part/PartNumber") {
      right = right && (number == 0 || upload->second.parts[number].size() >= kLeast);
      number = std::atoi(text.c_str());
      bytes += upload->second.parts[number];
    } else if (path == "CompleteMultipartUpload/Part/ETag") {
      right = right && text == "\"" + hash_of(upload->second.parts[number]).substr(0, 32) + "\"";
    }
  });
  if (!parsed.ok() || !right) return refuse(400, "InvalidPart");
  const std::string etag = "\"" + hash_of(bytes).substr(0, 32) + "-" + std::to_string(number) + "\"";
  objects_[key] = {std::move(bytes), etag, upload->second.mark};
  uploads_.erase(upload);
  return {200, {}, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"};
}

TestServer::Reply TestServer::list(const Request& request) {
  if (request.method != "GET" || query(request, "list-type") != "2") return refuse(501, "NotImplemented");
  const std::string prefix = query(request, "prefix"), delimiter = query(request, "delimiter");
  const std::string after = query(request, "continuation-token");
  const std::size_t most =
      std::min<std::size_t>(page, std::strtoull(query(request, "max-keys").c_str(), nullptr, 10));
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>";
  std::string last;
  std::size_t count = 0;
  bool more = false;
  for (auto at = objects_.lower_bound(prefix); at != objects_.end() && at->first.starts_with(prefix); ++at) {
    const std::size_t end = delimiter.empty() ? std::string::npos : at->first.find(delimiter, prefix.size());
    const std::string name = end == std::string::npos ? at->first : at->first.substr(0, end + 1);
    if (name <= after || name == last) continue;
    more = count == most;
    if (more) break;
    ++count;
    last = name;
    const std::string text = xml_text(uri_encode(name, true));
    xml += end != std::string::npos ? "<CommonPrefixes><Prefix>" + text + "</Prefix></CommonPrefixes>"
                                    : "<Contents><Key>" + text + "</Key><Size>" +
                                          std::to_string(at->second.bytes.size()) + "</Size></Contents>";
  }
  xml += more ? "<IsTruncated>true</IsTruncated><NextContinuationToken>" + xml_text(last) +
                    "</NextContinuationToken>"
              : "<IsTruncated>false</IsTruncated>";
  return {200, {}, xml + "</ListBucketResult>"};
}

}  // namespace penstock::s3

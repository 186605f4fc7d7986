// Makes the answers of the test server: signatures, objects, uploads, listings.
#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "io_backends/s3/test_server.hpp"

namespace penstock::s3 {
namespace {

std::string hash_of(const std::string& bytes) {
  return hex(sha256(std::as_bytes(std::span(bytes))));
}

// Returns the value after "name=" in a list that is separated by ", ".
std::string value_in_list(const std::string& list, const std::string& name) {
  const size_t at = list.find(name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 1;
  return list.substr(begin, list.find(',', begin) - begin);
}

std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return escaped;
}

// The texts of all elements of this name.
std::vector<std::string> texts_in(const std::string& xml, const std::string& element) {
  const std::string begin_tag = "<" + element + ">";
  std::vector<std::string> texts;
  for (size_t at = xml.find(begin_tag); at != std::string::npos; at = xml.find(begin_tag, at)) {
    at += begin_tag.size();
    texts.push_back(xml.substr(at, xml.find("</" + element + ">", at) - at));
  }
  return texts;
}

}  // namespace

std::string TestServer::Request::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string TestServer::Request::argument(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

TestServer::Reply TestServer::Reply::refuse(int status, const std::string& code) {
  return {
      status, {}, "<?xml version=\"1.0\"?>\n<Error><Code>" + code + "</Code><Message>no</Message></Error>"};
}

TestServer::Reply TestServer::check_signature(const Request& request) const {
  const std::string authorization_header = request.header("authorization");
  if (authorization_header.empty()) return Reply::refuse(403, "AccessDenied");
  const std::string credential = value_in_list(authorization_header, "Credential");
  if (credential.substr(0, credential.find('/')) != kKeyId) return Reply::refuse(403, "InvalidAccessKeyId");
  const std::string date = request.header("x-amz-date");
  if (std::llabs(std::atoll(amz_date(std::time(nullptr)).substr(0, 8).c_str()) -
                 std::atoll(date.substr(0, 8).c_str())) > 1)
    return Reply::refuse(403, "RequestTimeTooSkewed");
  const std::string payload_hash = request.header("x-amz-content-sha256");
  if (payload_hash != kUnsignedPayload && payload_hash != hash_of(request.body))
    return Reply::refuse(400, "XAmzContentSHA256Mismatch");
  Pairs query_pairs(request.query.begin(), request.query.end());
  SignedRequest signed_request{
      request.method, uri_encode(request.path, true), query_string(query_pairs), {}, payload_hash};
  std::string names = value_in_list(authorization_header, "SignedHeaders") + ";";
  for (size_t end = 0; (end = names.find(';')) != std::string::npos; names.erase(0, end + 1))
    signed_request.headers.emplace_back(names.substr(0, end), request.header(names.substr(0, end)));
  for (const auto& [name, value] : request.headers)
    if ((name == "host" || name.starts_with("x-amz-")) &&
        std::find(signed_request.headers.begin(), signed_request.headers.end(), std::pair(name, value)) ==
            signed_request.headers.end())
      return Reply::refuse(403, "AccessDenied");
  if (authorization(signed_request, {kKeyId, kSecret, ""}, "us-east-1", "s3", date) != authorization_header)
    return Reply::refuse(403, "SignatureDoesNotMatch");
  return {};
}

TestServer::Reply TestServer::answer(const Request& request) {
  const size_t slash = std::min(request.path.find('/', 1), request.path.size());
  if (request.path.substr(0, slash) != "/bucket") return Reply::refuse(404, "NoSuchBucket");
  const std::string key = request.path.substr(std::min(slash + 1, request.path.size()));
  if (key.size() > 1024) return Reply::refuse(400, "KeyTooLongError");
  const std::lock_guard lock(mutex_);
  return key.empty() ? list(request) : answer_key(request, key);
}

TestServer::Reply TestServer::answer_key(const Request& request, const std::string& key) {
  const auto found = objects_.find(key);
  if (request.method == "GET" || request.method == "HEAD")
    return found == objects_.end() ? Reply::refuse(404, "NoSuchKey") : get(request, found->second);
  if (request.method == "DELETE") {
    if (request.query.contains("uploadId")) {
      if (uploads_.erase(request.argument("uploadId")) == 0) return Reply::refuse(404, "NoSuchUpload");
      aborted_uploads_.insert(request.argument("uploadId"));
    } else if (found != objects_.end()) {
      objects_.erase(found);
    }
    return {204, {}, ""};
  }
  if (request.method == "POST" && request.query.contains("uploads")) {
    const std::string id = "upload/" + std::to_string(++next_upload_);
    uploads_[id] = {key, request.header("x-amz-meta-penstock"), {}};
    return {200,
            {},
            "<InitiateMultipartUploadResult><UploadId>" + id + "</UploadId></InitiateMultipartUploadResult>"};
  }
  if (request.header("if-none-match") == "*" && knows_conditions && found != objects_.end())
    return Reply::refuse(412, "PreconditionFailed");
  const std::string expected_etag = request.header("if-match");
  if (!expected_etag.empty() && knows_conditions && found == objects_.end())
    return Reply::refuse(404, "NoSuchKey");
  if (!expected_etag.empty() && knows_conditions && found->second.etag != expected_etag)
    return Reply::refuse(412, "PreconditionFailed");
  if (request.method == "POST") return complete(request, key);
  if (request.headers.contains("x-amz-copy-source")) return copy(request, key);
  return put(request, key);
}

TestServer::Reply TestServer::get(const Request& request, const Object& object) {
  Reply reply{200, {{"ETag", object.etag}}, object.bytes};
  if (!object.mark.empty()) reply.headers.emplace_back("X-Amz-Meta-Penstock", object.mark);
  const std::string expected_etag = request.header("if-match");
  if (!expected_etag.empty() && expected_etag != object.etag) return Reply::refuse(412, "PreconditionFailed");
  if (request.method == "HEAD") {
    reply.headers.emplace_back("Content-Length", std::to_string(object.bytes.size()));
    return reply;
  }
  const std::string range = request.header("range");
  if (range.empty()) return reply;
  const size_t dash = range.find('-');
  const uint64_t first = std::strtoull(range.c_str() + 6, nullptr, 10);
  const uint64_t last = std::strtoull(range.c_str() + dash + 1, nullptr, 10);
  if (first >= object.bytes.size()) return Reply::refuse(416, "InvalidRange");
  reply.status = 206;
  reply.body = object.bytes.substr(first, last - first + 1);
  reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                  std::to_string(first + reply.body.size() - 1) + "/" +
                                                  std::to_string(object.bytes.size()));
  return reply;
}

void TestServer::change_range(ServerFault fault, Reply& reply) {
  std::string& content_range = reply.headers.back().second;
  const uint64_t first =
      std::strtoull(content_range.substr(std::string("bytes ").size()).c_str(), nullptr, 10);
  const std::string suffix = content_range.substr(content_range.rfind('/'));
  if (fault == ServerFault::wrong_range)
    content_range =
        "bytes " + std::to_string(first + 1) + "-" + std::to_string(first + reply.body.size()) + suffix;
  if (fault == ServerFault::short_range) {
    reply.body.resize(reply.body.size() / 2);
    content_range =
        "bytes " + std::to_string(first) + "-" + std::to_string(first + reply.body.size() - 1) + suffix;
  }
  if (fault == ServerFault::no_content_range) reply.headers.pop_back();
}

TestServer::Reply TestServer::put(const Request& request, const std::string& key) {
  const std::string etag = "\"" + hash_of(request.body).substr(0, 32) + "\"";
  if (request.query.contains("partNumber")) {
    const auto upload = uploads_.find(request.argument("uploadId"));
    if (aborted_uploads_.contains(request.argument("uploadId"))) ++late_parts_;
    if (upload == uploads_.end() || upload->second.key != key) return Reply::refuse(404, "NoSuchUpload");
    upload->second.parts[std::atoi(request.argument("partNumber").c_str())] = request.body;
  } else {
    objects_[key] = {request.body, etag, request.header("x-amz-meta-penstock")};
  }
  return {200, {{"ETag", etag}}, ""};
}

TestServer::Reply TestServer::copy(const Request& request, const std::string& key) {
  const std::string source = uri_decode(request.header("x-amz-copy-source"), false);
  const auto source_object = objects_.find(source.substr(std::string("/bucket/").size()));
  if (source_object == objects_.end()) return Reply::refuse(404, "NoSuchKey");
  objects_[key] = source_object->second;
  return {200, {}, "<CopyObjectResult><ETag>x</ETag></CopyObjectResult>"};
}

TestServer::Reply TestServer::complete(const Request& request, const std::string& key) {
  constexpr size_t kMinPartBytes = size_t{5} << 20U;
  const auto upload = uploads_.find(request.argument("uploadId"));
  if (upload == uploads_.end() || upload->second.key != key) return Reply::refuse(404, "NoSuchUpload");
  const std::vector<std::string> numbers = texts_in(request.body, "PartNumber");
  const std::vector<std::string> tags = texts_in(request.body, "ETag");
  std::string bytes;
  int number = 0;
  bool is_valid = !numbers.empty() && numbers.size() == tags.size();
  for (size_t i = 0; is_valid && i < numbers.size(); ++i) {
    is_valid = number == 0 || upload->second.parts[number].size() >= kMinPartBytes;
    number = std::atoi(numbers[i].c_str());
    bytes += upload->second.parts[number];
    is_valid = is_valid && tags[i] == "\"" + hash_of(upload->second.parts[number]).substr(0, 32) + "\"";
  }
  if (!is_valid) return Reply::refuse(400, "InvalidPart");
  const std::string etag = "\"" + hash_of(bytes).substr(0, 32) + "-" + std::to_string(number) + "\"";
  objects_[key] = {std::move(bytes), etag, upload->second.mark};
  uploads_.erase(upload);
  return {200, {}, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"};
}

TestServer::Reply TestServer::list(const Request& request) {
  if (request.method != "GET" || request.argument("list-type") != "2")
    return Reply::refuse(501, "NotImplemented");
  const std::string prefix = request.argument("prefix"), delimiter = request.argument("delimiter");
  const std::string start_after = request.argument("continuation-token");
  const size_t max_keys =
      std::min<size_t>(page_keys, std::strtoull(request.argument("max-keys").c_str(), nullptr, 10));
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>";
  std::string last;
  size_t count = 0;
  bool is_truncated = false;
  for (auto at = objects_.lower_bound(prefix); at != objects_.end() && at->first.starts_with(prefix); ++at) {
    const size_t end = delimiter.empty() ? std::string::npos : at->first.find(delimiter, prefix.size());
    const std::string name = end == std::string::npos ? at->first : at->first.substr(0, end + 1);
    if (name <= start_after || name == last) continue;
    is_truncated = count == max_keys;
    if (is_truncated) break;
    ++count;
    last = name;
    const std::string text = xml_text(uri_encode(name, true));
    xml += end != std::string::npos ? "<CommonPrefixes><Prefix>" + text + "</Prefix></CommonPrefixes>"
                                    : "<Contents><Key>" + text + "</Key><Size>" +
                                          std::to_string(at->second.bytes.size()) + "</Size></Contents>";
  }
  xml += is_truncated ? "<IsTruncated>true</IsTruncated><NextContinuationToken>" + xml_text(last) +
                            "</NextContinuationToken>"
                      : "<IsTruncated>false</IsTruncated>";
  return {200, {}, xml + "</ListBucketResult>"};
}

}  // namespace penstock::s3

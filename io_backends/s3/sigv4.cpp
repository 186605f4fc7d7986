#include "io_backends/s3/sigv4.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/utc_time.hpp"

namespace penstock::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string hex_of_text(std::string_view text) {
  return hex(sha256(std::as_bytes(std::span(text))));
}

// Removes leading and trailing blanks, and replaces each run of blanks by one.
std::string trimmed(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == ' ' && (text.empty() || text.back() == ' ')) continue;
    text += c;
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::string uri_encode(std::string_view text, bool keep_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c) || (c == '/' && keep_slashes)) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4U];
    encoded += kDigits[byte & 15U];
  }
  return encoded;
}

std::string uri_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (text[i] == '%' && high >= 0 && low >= 0) {
      decoded += char(high * 16 + low);
      i += 2;
    } else {
      decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::string query_string(Pairs query) {
  for (auto& [name, value] : query) {
    name = uri_encode(name, false);
    value = uri_encode(value, false);
  }
  std::sort(query.begin(), query.end());
  std::string text;
  for (const auto& [name, value] : query) {
    if (!text.empty()) text += '&';
    text.append(name).append("=").append(value);
  }
  return text;
}

std::string amz_date(std::time_t when) {
  return utc_text(when, "%Y%m%dT%H%M%SZ");
}

std::string authorization(const SignedRequest& request, const Credentials& credentials,
                          std::string_view region, std::string_view service, std::string_view date) {
  Pairs headers = request.headers;
  std::sort(headers.begin(), headers.end());
  std::string canonical_request = request.method + "\n" + request.path + "\n" + request.query + "\n";
  std::string names;
  for (const auto& [name, value] : headers) {
    canonical_request.append(name).append(":").append(trimmed(value)).append("\n");
    if (!names.empty()) names += ';';
    names += name;
  }
  canonical_request.append("\n").append(names).append("\n").append(request.payload_hash);

  const std::string day(date.substr(0, 8));
  const std::string scope = day + "/" + std::string(region) + "/" + std::string(service) + "/aws4_request";
  const std::string string_to_sign =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, date, scope, hex_of_text(canonical_request));
  const std::string first_key = "AWS4" + credentials.secret;
  Digest key =
      hmac_sha256(std::span(reinterpret_cast<const uint8_t*>(first_key.data()), first_key.size()), day);
  for (const std::string_view word : {region, service, std::string_view("aws4_request")})
    key = hmac_sha256(key, word);
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm, credentials.key_id,
                     scope, names, hex(hmac_sha256(key, string_to_sign)));
}

}  // namespace penstock::s3

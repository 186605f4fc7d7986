#include "io_backends/s3/answers.hpp"

#include <algorithm>
#include <utility>

#include <pugixml.hpp>

#include "io_backends/core/text.hpp"
#include "io_backends/s3/sigv4.hpp"

namespace penstock::s3 {
namespace {

constexpr size_t kMaxNesting = 16;  // deepest nesting of elements that is accepted; a listing has 4 levels

Error bad_xml(std::string_view why) {
  return make_error(Errc::corrupt, "the server's answer is not the expected XML: " + std::string(why));
}

void append_utf8(std::string& text, uint32_t code) {
  const auto add = [&](uint32_t byte) { text += char(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6U);
    add(0x80 | (code & 0x3fU));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12U);
    add(0x80 | (code >> 6U & 0x3fU));
    add(0x80 | (code & 0x3fU));
  } else {
    add(0xf0 | code >> 18U);
    add(0x80 | (code >> 12U & 0x3fU));
    add(0x80 | (code >> 6U & 0x3fU));
    add(0x80 | (code & 0x3fU));
  }
}

// Appends the character that an entity names: "lt", "#10", "#xA". Returns false if there is no such entity.
bool append_entity(std::string& text, std::string_view name) {
  if (name.starts_with('#')) {
    const bool hexadecimal = name.size() > 1 && name[1] == 'x';
    name.remove_prefix(hexadecimal ? 2 : 1);
    const auto code = parse_digits<uint32_t>(name, hexadecimal ? 16 : 10);
    if (!code || *code > 0x10ffff) return false;
    append_utf8(text, *code);
    return true;
  }
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [known, c] : kEntities) {
    if (name != known) continue;
    text += c;
    return true;
  }
  return false;
}

// Appends text in which entities were not replaced yet. pugixml would leave unknown entities as they are, and
// a key that contains one would then be wrong.
Result<void> append_text(std::string& text, std::string_view raw) {
  while (!raw.empty()) {
    const size_t ampersand = std::min(raw.find('&'), raw.size());
    text.append(raw.substr(0, ampersand));
    raw.remove_prefix(ampersand);
    if (raw.empty()) break;
    const size_t semicolon = raw.find(';');
    if (semicolon == std::string_view::npos || !append_entity(text, raw.substr(1, semicolon - 1)))
      return bad_xml("it contains an unknown entity");
    raw.remove_prefix(semicolon + 1);
  }
  return success();
}

using Visit = std::function<void(std::string_view, const std::string&)>;

// Calls `visit` for the elements in `element` and then for itself. `path` is that of the element around it.
Result<void> visit_element(const pugi::xml_node& element, std::string& path, size_t depth,
                           const Visit& visit) {
  if (depth > kMaxNesting) return bad_xml("it is nested too deeply");
  const size_t outer_path_bytes = path.size();
  if (!path.empty()) path += '/';
  path += element.name();
  std::string text;
  for (const pugi::xml_node& node : element.children()) {
    if (node.type() == pugi::node_element) PENSTOCK_TRY(visit_element(node, path, depth + 1, visit));
    if (node.type() == pugi::node_pcdata) PENSTOCK_TRY(append_text(text, node.value()));
    if (node.type() == pugi::node_cdata) text += node.value();
  }
  visit(path, text);
  path.resize(outer_path_bytes);
  return success();
}

}  // namespace

Result<void> parse_xml(std::string_view xml,
                       const std::function<void(std::string_view path, const std::string& text)>& visit) {
  if (xml.find('\0') != std::string_view::npos) return bad_xml("it contains a zero byte");
  pugi::xml_document document;
  // Text of white space alone is kept, because it can be a key. parse_fragment keeps what is outside of the
  // outermost element, which is then refused.
  constexpr unsigned kOptions =
      pugi::parse_cdata | pugi::parse_eol | pugi::parse_ws_pcdata | pugi::parse_fragment;
  const pugi::xml_parse_result parsed =
      document.load_buffer(xml.data(), xml.size(), kOptions, pugi::encoding_utf8);
  if (parsed.status == pugi::status_out_of_memory)
    return make_error(Errc::exhausted, "no memory for an answer of {} bytes", xml.size());
  if (!parsed) return bad_xml(parsed.description());
  pugi::xml_node outermost;
  for (const pugi::xml_node& node : document.children()) {
    const bool is_element = node.type() == pugi::node_element;
    if (is_element && outermost) return bad_xml("it has more than one element");
    if (node.type() == pugi::node_cdata || !trim(node.value()).empty())
      return bad_xml("it has text outside of its element");
    if (is_element) outermost = node;
  }
  if (!outermost) return bad_xml("it has no element");
  std::string path;
  return visit_element(outermost, path, 1, visit);
}

Result<Listing> parse_listing(std::string_view xml) {
  Listing listing;
  Listing::Object object;
  bool is_listing = false, encoded = false;
  std::optional<bool> truncated;
  bool has_size = false;
  std::string_view fault;
  PENSTOCK_TRY(parse_xml(xml, [&](std::string_view path, const std::string& text) {
    constexpr std::string_view kRoot = "ListBucketResult";
    if (!path.starts_with(kRoot)) return;
    path.remove_prefix(kRoot.size());
    if (path.empty()) {
      is_listing = true;
    } else if (path == "/EncodingType") {
      encoded = text == "url";
    } else if (path == "/IsTruncated") {
      if (equals_ignoring_case(trim(text), "true")) truncated = true;
      if (equals_ignoring_case(trim(text), "false")) truncated = false;
    } else if (path == "/NextContinuationToken") {
      listing.next_token = text;
    } else if (path == "/CommonPrefixes/Prefix") {
      listing.prefixes.push_back(text);
    } else if (path == "/Contents/Key") {
      object.key = text;
    } else if (path == "/Contents/Size") {
      const auto bytes = parse_digits<uint64_t>(text);
      has_size = bytes.has_value();
      object.bytes = bytes.value_or(0);
    } else if (path == "/Contents") {
      if (object.key.empty()) fault = "an object has no key";
      if (!has_size) fault = "an object has no size";
      has_size = false;
      listing.objects.push_back(std::exchange(object, {}));
    }
  }));
  if (!is_listing) return bad_xml("it is not a listing");
  if (!fault.empty()) return bad_xml(fault);
  if (!truncated) return bad_xml("the listing lacks IsTruncated, so whether it is complete is unknown");
  if (!*truncated) listing.next_token.clear();
  if (*truncated && listing.next_token.empty())
    return bad_xml("the listing is incomplete and has no continuation token");
  if (encoded) {
    for (Listing::Object& one : listing.objects) one.key = uri_decode(one.key, true);
    for (std::string& prefix : listing.prefixes) prefix = uri_decode(prefix, true);
  }
  return listing;
}

Refusal parse_refusal(std::string_view xml) {
  Refusal refusal;
  bool is_error = false;
  // What follows the element does not matter.
  constexpr std::string_view kEnd = "</Error>";
  const size_t end = xml.rfind(kEnd);
  if (end == std::string_view::npos) return {};
  xml = xml.substr(0, end + kEnd.size());
  const auto parsed = parse_xml(xml, [&](std::string_view path, const std::string& text) {
    is_error = path == "Error";
    if (path == "Error/Code") refusal.code = text;
    if (path == "Error/Message") refusal.message = text;
    if (path == "Error/Region") refusal.region = text;
  });
  return parsed.ok() && is_error ? refusal : Refusal{};
}

bool is_result(std::string_view xml, std::string_view element) {
  bool found = false;
  const auto parsed =
      parse_xml(xml, [&](std::string_view path, const std::string&) { found = path == element; });
  return parsed.ok() && found;
}

ContentRange parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  const size_t slash = text.rfind('/');
  if (!text.starts_with(kUnit) || slash == std::string_view::npos) return {};
  const std::string_view range = text.substr(kUnit.size(), slash - kUnit.size());
  return {parse_digits<uint64_t>(range.substr(0, range.find('-'))),
          parse_digits<uint64_t>(text.substr(slash + 1))};
}

Result<std::string> parse_upload_id(std::string_view xml) {
  std::string id;
  PENSTOCK_TRY(parse_xml(xml, [&](std::string_view path, const std::string& text) {
    if (path == "InitiateMultipartUploadResult/UploadId") id = text;
  }));
  if (id.empty()) return bad_xml("it has no upload ID");
  return id;
}

}  // namespace penstock::s3

#include "io_backends/s3/answers.hpp"

#include <utility>

#include "io_backends/core/text.hpp"
#include "io_backends/s3/sigv4.hpp"

namespace penstock::s3 {
namespace {

constexpr size_t kMaxNesting = 16;  // deepest nesting of elements that is accepted; a listing has 4 levels

Error bad_xml(std::string_view why) {
  return make_error(Errc::corrupt, "the server's answer is no XML that we know: " + std::string(why));
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

class Parser {
 public:
  using Visit = std::function<void(std::string_view, const std::string&)>;
  Parser(std::string_view xml, const Visit& visit) : rest_(xml), visit_(visit) {}

  Result<void> parse() {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
    while (!rest_.empty()) PENSTOCK_TRY(rest_.front() == '<' ? parse_markup() : parse_characters());
    if (!found_element_ || !name_starts_.empty()) return bad_xml("it ends too early");
    return success();
  }

 private:
  // Takes the text before `end` from rest_ and returns it; also removes `end`. No value if rest_ lacks `end`.
  std::optional<std::string_view> take_until(std::string_view end) {
    const size_t at = rest_.find(end);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view part_before = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return part_before;
  }

  Result<void> skip_past(std::string_view end) {
    if (!take_until(end)) return bad_xml("it ends within a comment");
    return success();
  }

  Result<void> parse_characters() {
    const size_t end = std::min(rest_.find('<'), rest_.size());
    std::string_view piece = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (name_starts_.empty() && !trim(piece).empty()) return bad_xml("it has text outside of its element");
    while (!piece.empty()) {
      const size_t ampersand = std::min(piece.find('&'), piece.size());
      text_.append(piece.substr(0, ampersand));
      piece.remove_prefix(ampersand);
      if (piece.empty()) break;
      const size_t semicolon = piece.find(';');
      if (semicolon == std::string_view::npos || !append_entity(text_, piece.substr(1, semicolon - 1)))
        return bad_xml("it holds an unknown entity");
      piece.remove_prefix(semicolon + 1);
    }
    return success();
  }

  Result<void> parse_markup() {
    constexpr std::string_view kCdataStart = "<![CDATA[";
    if (rest_.starts_with("<?")) return skip_past("?>");
    if (rest_.starts_with("<!--")) return skip_past("-->");
    if (rest_.starts_with(kCdataStart)) {
      if (name_starts_.empty()) return bad_xml("it has text outside of its element");
      rest_.remove_prefix(kCdataStart.size());
      const auto data = take_until("]]>");
      if (!data) return bad_xml("it ends within CDATA");
      text_.append(*data);
      return success();
    }
    if (rest_.starts_with("<!")) return skip_past(">");
    rest_.remove_prefix(1);
    auto tag = take_until(">");
    if (!tag) return bad_xml("it ends within a tag");
    if (tag->starts_with('/')) return close(tag->substr(1));
    const bool is_empty_element = tag->ends_with('/');
    if (is_empty_element) tag->remove_suffix(1);
    const std::string_view name = tag->substr(0, std::min(tag->find_first_of(" \t\r\n"), tag->size()));
    if (name.empty() || name.find('<') != std::string_view::npos)
      return bad_xml("it has a tag that is not valid");
    if (name_starts_.size() == kMaxNesting) return bad_xml("it is nested too deeply");
    if (name_starts_.empty() && found_element_) return bad_xml("it has more than one element");
    found_element_ = true;
    name_starts_.push_back(path_.size());
    if (!path_.empty()) path_ += '/';
    path_ += name;
    text_.clear();
    return is_empty_element ? close(name) : success();
  }

  Result<void> close(std::string_view name) {
    name = name.substr(0, name.find_last_not_of(" \t\r\n") + 1);
    if (name_starts_.empty()) return bad_xml("an element ends that never began");
    const size_t name_start = name_starts_.back();
    if (std::string_view(path_).substr(name_start == 0 ? 0 : name_start + 1) != name)
      return bad_xml("its elements overlap");
    visit_(path_, text_);
    path_.resize(name_start);
    name_starts_.pop_back();
    text_.clear();
    return success();
  }

  std::string_view rest_;
  const Visit& visit_;
  std::string path_;
  std::vector<size_t> name_starts_;  // for each open element: where its name starts in path_
  bool found_element_ = false;       // at least one element was found
  std::string text_;
};

}  // namespace

Result<void> parse_xml(std::string_view xml,
                       const std::function<void(std::string_view path, const std::string& text)>& visit) {
  return Parser(xml, visit).parse();
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
  if (!is_listing) return bad_xml("it is no listing");
  if (!fault.empty()) return bad_xml(fault);
  if (!truncated) return bad_xml("the listing lacks IsTruncated, so whether it is complete is unknown");
  if (!*truncated) listing.next_token.clear();
  if (*truncated && listing.next_token.empty()) return bad_xml("a listing goes on, but not where");
  if (encoded) {
    for (Listing::Object& one : listing.objects) one.key = uri_decode(one.key, true);
    for (std::string& prefix : listing.prefixes) prefix = uri_decode(prefix, true);
  }
  return listing;
}

Refusal parse_refusal(std::string_view xml) {
  Refusal refusal;
  bool is_complete = false;  // the element Error has ended; an XML error after it does not matter
  static_cast<void>(parse_xml(xml, [&](std::string_view path, const std::string& text) {
    is_complete = is_complete || path == "Error";
    if (path == "Error/Code") refusal.code = text;
    if (path == "Error/Message") refusal.message = text;
    if (path == "Error/Region") refusal.region = text;
  }));
  return is_complete ? refusal : Refusal{};
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
  if (id.empty()) return bad_xml("it names no upload");
  return id;
}

}  // namespace penstock::s3

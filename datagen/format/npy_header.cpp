#include "datagen/format/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "datagen/format/byte_order.hpp"

namespace penstock {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kHeaderAlignment = 64;
// The most bytes of the header's text. Format version 1.0 can store 65,535. NumPy itself reads at most
// 10,000, unless the program asks for more.
constexpr size_t kMostTextBytes = 65536;
constexpr size_t kMostArrayDimensions = 64;  // NumPy 2 allows 64, earlier versions 32
constexpr size_t kMostLengthDigits = 20;     // decimal digits of the largest length of a dimension

// NumPy's description of a type, such as "<f4": byte order, kind, and size in bytes.
std::string descr_of(Element element) {
  const size_t bytes = element_bytes(element);
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', element_name(element).front(), bytes);
}

Error header_error(std::string_view what) {
  return make_error(Errc::corrupt, "{} in the header of a NumPy array", what);
}

// A parser for the few kinds of Python literals that the text of a header contains.
class LiteralParser {
 public:
  explicit LiteralParser(std::string_view text) : rest_(text) {}

  bool accept(char wanted) {
    skip_spaces();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool at_end() {
    skip_spaces();
    return rest_.empty();
  }
  char peek() {
    skip_spaces();
    return rest_.empty() ? '\0' : rest_.front();
  }

  std::optional<std::string_view> parse_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<bool> parse_boolean() {
    skip_spaces();
    const bool value = rest_.starts_with("True");
    if (!value && !rest_.starts_with("False")) return std::nullopt;
    rest_.remove_prefix(value ? 4 : 5);
    return value;
  }
  std::optional<uint64_t> parse_number() {
    skip_spaces();
    uint64_t value = 0;
    const auto [stop, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (failure != std::errc{}) return std::nullopt;
    rest_.remove_prefix(size_t(stop - rest_.data()));
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // Python 2 wrote 3L for 3
    return value;
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  std::string_view rest_;
};

Result<void> parse_shape(LiteralParser& text, NpyArray& array) {
  if (!text.accept('(')) return header_error("no shape");
  while (!text.accept(')')) {
    const auto length = text.parse_number();
    if (!length) return header_error("a side that is not a number");
    if (array.shape.size() == kMostArrayDimensions) return header_error("more sides than an array has");
    array.shape.push_back(*length);
    if (!text.accept(',') && text.peek() != ')') return header_error("sides without commas");
  }
  return success();
}

Result<void> parse_descr(LiteralParser& text, NpyArray& array) {
  if (text.peek() == '[')
    return make_error(Errc::unsupported,
                      "an array of records (a structured type); only plain arrays are supported");
  const auto descr = text.parse_string();
  if (!descr || descr->size() < 2) return header_error("no type");
  std::string_view rest = *descr;
  array.big_endian = rest.front() == '>';
  if (std::string_view("<>|=").find(rest.front()) != std::string_view::npos) rest.remove_prefix(1);
  array.kind = rest.empty() ? '\0' : rest.front();
  if (array.kind == 'O')
    return make_error(Errc::unsupported,
                      "an array of Python objects (a pickle); only plain arrays are supported");
  if (std::string_view("biufcSUVmM").find(array.kind) == std::string_view::npos)
    return header_error(fmt::format("the unknown type '{}'", *descr));
  rest.remove_prefix(1);
  const auto [stop, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), array.item_bytes);
  if (failure != std::errc{} || array.item_bytes > UINT32_MAX) return header_error("a type without a size");
  const bool known_size =
      array.item_bytes == 1 || array.item_bytes == 2 || array.item_bytes == 4 || array.item_bytes == 8;
  if (array.is_integer() && !known_size) return header_error(fmt::format("the unknown type '{}'", *descr));
  if (array.kind == 'U') array.item_bytes *= 4;
  return success();
}

Result<void> compute_sizes(NpyArray& array) {
  // If one dimension has length 0, there are no bytes, however large the other lengths are.
  const bool is_empty = std::find(array.shape.begin(), array.shape.end(), 0U) != array.shape.end();
  array.data_bytes = is_empty ? 0 : array.item_bytes;
  if (array.data_bytes == 0) return success();
  for (const uint64_t length : array.shape)
    if (__builtin_mul_overflow(array.data_bytes, length, &array.data_bytes))
      return header_error("a shape of more bytes than there are");
  return success();
}

}  // namespace

std::vector<std::byte> npy_header(Element element, std::span<const uint64_t> shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", descr_of(element));
  for (size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }";
  // Makes room for the most digits that the length of the first dimension can have. The length may change
  // while the array is written, and the new header must have the same size.
  const size_t first_digits = shape.empty() ? 0 : fmt::formatted_size("{}", shape[0]);
  const size_t most_bytes = kMagic.size() + 4 + text.size() + (kMostLengthDigits - first_digits) + 1;
  const size_t header_size = (most_bytes + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment;
  text.append(header_size - kMagic.size() - 4 - text.size() - 1, ' ');
  text += '\n';
  return HeaderBytes().text(kMagic).u8(1).u8(0).u16(text.size()).text(text).take();
}

Result<NpyArray> parse_npy_text(std::string_view text) {
  NpyArray array;
  LiteralParser literals(text);
  unsigned seen_keys = 0;
  if (!literals.accept('{')) return header_error("no dictionary");
  while (!literals.accept('}')) {
    const auto key = literals.parse_string();
    if (!key || !literals.accept(':')) return header_error("no key");
    if (*key == "descr") {
      PENSTOCK_TRY(parse_descr(literals, array));
      seen_keys |= 1U;
    } else if (*key == "shape") {
      array.shape.clear();
      PENSTOCK_TRY(parse_shape(literals, array));
      seen_keys |= 2U;
    } else if (*key == "fortran_order") {
      const auto value = literals.parse_boolean();
      if (!value) return header_error("no True or False");
      array.fortran_order = *value;
      seen_keys |= 4U;
    } else {
      return header_error(fmt::format("the unknown key '{}'", *key));
    }
    if (!literals.accept(',') && literals.peek() != '}') return header_error("keys without commas");
  }
  if (seen_keys != 7U || !literals.at_end()) return header_error("not just descr, fortran_order and shape");
  PENSTOCK_TRY(compute_sizes(array));
  return array;
}

Result<bool> begins_with_npy(ByteWindow& window, const Extent& place) {
  if (place.length < kMagic.size()) return false;
  PENSTOCK_ASSIGN(const std::span<const std::byte> head, window.at(place.offset, kMagic.size()));
  return as_text(head) == kMagic;
}

Result<NpyArray> read_npy(ByteWindow& window, uint64_t offset, uint64_t length, bool allows_more) {
  constexpr size_t kBytesBeforeText = 10;  // number of bytes before the text in version 1
  if (length < kBytesBeforeText) return window.corrupt(offset, "too short for a NumPy array");
  PENSTOCK_ASSIGN(std::span<const std::byte> head, window.at(offset, std::min<uint64_t>(length, 12)));
  if (!as_text(head).starts_with(kMagic)) return window.corrupt(offset, "there is no NumPy array here");
  const auto version = number_at(head, 6, 1);
  if (version < 1 || version > 3)
    return window.error(Errc::unsupported, offset, fmt::format("version {} of NumPy's format", version));
  const size_t text_begin = version == 1 ? kBytesBeforeText : 12;
  if (length < text_begin) return window.corrupt(offset, "too short for a NumPy array");
  const uint64_t text_bytes = number_at(head, 8, text_begin - 8);
  if (text_bytes > kMostTextBytes || text_bytes > length - text_begin)
    return window.corrupt(offset + 8, fmt::format("a NumPy header of {} bytes", text_bytes));
  PENSTOCK_ASSIGN(head, window.at(offset + text_begin, size_t(text_bytes)));
  Result<NpyArray> array = parse_npy_text(as_text(head));
  if (!array.ok()) return window.error(array.error().code, offset + text_begin, array.error().what);
  array->header_bytes = text_begin + text_bytes;
  const uint64_t bytes_there = length - array->header_bytes;
  if (allows_more ? array->data_bytes > bytes_there : array->data_bytes != bytes_there)
    return window.corrupt(offset, fmt::format("a NumPy array of {} bytes, and {} bytes are present",
                                              array->data_bytes, bytes_there));
  return array;
}

}  // namespace penstock

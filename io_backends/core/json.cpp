#include "io_backends/core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include <nlohmann/json.hpp>

namespace penstock {

namespace {

using LibraryJson = nlohmann::ordered_json;
using Unknown = LibraryJson::error_handler_t;

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value -
// REASON; MORE"
std::string reason_of(std::string_view text) {
  if (const size_t dash = text.find(" - "); dash != std::string_view::npos)
    text.remove_prefix(dash + 3);
  else if (const size_t bracket = text.find("] "); bracket != std::string_view::npos)
    text.remove_prefix(bracket + 2);
  return std::string(text.substr(0, text.find(';')));
}

JsonError error_at(size_t byte, std::string_view reason) {
  JsonError error{std::string(reason)};
  error.byte = byte;
  return error;
}

// Takes the parts of a text from the library's parser, and makes a Json of them.
class Builder : public nlohmann::json_sax<LibraryJson> {
 public:
  Json json;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(Json::binary(std::move(value))); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool key(string_t& name) override {
    next_ = &(*open_.back())[name];
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    throw error_at(byte, reason_of(error.what()));
  }

 private:
  bool add(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (open_.size() == Json::kMostDepth)
      throw JsonError(fmt::format("nested deeper than {} levels", Json::kMostDepth));
    Json& opened = place();
    opened = std::move(value);
    open_.push_back(&opened);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  Json& place() {
    if (open_.empty()) return json;
    if (open_.back()->is_object()) return *next_;
    open_.back()->push_back(nullptr);
    return open_.back()->end()[-1];
  }

  std::vector<Json*> open_;  // the arrays and objects that contain what comes next, the outermost first
  Json* next_ = nullptr;     // the member of the innermost object that comes next
};

LibraryJson library_json(const Json& json) {
  if (json.is_object()) {
    LibraryJson made = LibraryJson::object();
    // Its own emplace() looks for the name among all members first.
    LibraryJson::object_t::Container& members = made.get_ref<LibraryJson::object_t&>();
    members.reserve(json.size());
    for (const auto& [name, value] : json.items()) members.emplace_back(name, library_json(value));
    return made;
  }
  if (json.is_array()) {
    LibraryJson made = LibraryJson::array();
    for (const Json& value : json) made.push_back(library_json(value));
    return made;
  }
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get_string();
  return json.is_null() ? LibraryJson(nullptr) : LibraryJson::binary(json.get_binary());
}

}  // namespace

Json::Json() noexcept : value_(nullptr) {}
Json::Json(std::nullptr_t) noexcept : value_(nullptr) {}
Json::Json(Stored value) noexcept : value_(std::move(value)) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json::~Json() = default;

Json& Json::operator=(Json other) noexcept {
  value_.swap(other.value_);
  return *this;
}

Json::Json(std::initializer_list<Json> values) {
  const auto is_member = [](const Json& value) {
    return value.is_array() && value.size() == 2 && value.at(size_t{0}).is_string();
  };
  *this = std::all_of(values.begin(), values.end(), is_member) ? object(values) : array(values);
}

Json Json::array(std::initializer_list<Json> values) {
  return Json(Stored(std::in_place_type<std::vector<Json>>, values));
}

Json Json::object(std::initializer_list<Json> members) {
  Json made{Stored(Members{})};
  for (const Json& member : members) made[member.at(size_t{0}).get_string()] = member.at(1);
  return made;
}

Json Json::binary(Bytes bytes) {
  return Json(Stored(std::move(bytes)));
}

bool Json::is_null() const {
  return std::holds_alternative<std::nullptr_t>(value_);
}
bool Json::is_boolean() const {
  return std::holds_alternative<bool>(value_);
}
bool Json::is_number() const {
  return is_number_integer() || is_number_float();
}
bool Json::is_number_integer() const {
  return std::holds_alternative<int64_t>(value_) || is_number_unsigned();
}
bool Json::is_number_unsigned() const {
  return std::holds_alternative<uint64_t>(value_);
}
bool Json::is_number_float() const {
  return std::holds_alternative<double>(value_);
}
bool Json::is_string() const {
  return std::holds_alternative<std::string>(value_);
}
bool Json::is_array() const {
  return std::holds_alternative<std::vector<Json>>(value_);
}
bool Json::is_object() const {
  return std::holds_alternative<Members>(value_);
}

namespace {

[[noreturn]] void wrong_kind(const Json& json, std::string_view wanted) {
  throw JsonError(fmt::format("{} is not {}",
                              json.is_array()    ? "an array"
                              : json.is_object() ? "an object"
                              : json.is_string() ? "a string"
                                                 : one_line(json),
                              wanted));
}

}  // namespace

void Json::get_to(bool& value) const {
  if (!is_boolean()) wrong_kind(*this, "a boolean");
  value = std::get<bool>(value_);
}

void Json::get_to(std::string& value) const {
  value = get_string();
}

const std::string& Json::get_string() const {
  if (!is_string()) wrong_kind(*this, "a string");
  return std::get<std::string>(value_);
}

const Json::Bytes& Json::get_binary() const {
  if (!std::holds_alternative<Bytes>(value_)) wrong_kind(*this, "bytes");
  return std::get<Bytes>(value_);
}

double Json::real() const {
  if (const double* value = std::get_if<double>(&value_)) return *value;
  if (const uint64_t* value = std::get_if<uint64_t>(&value_)) return static_cast<double>(*value);
  return static_cast<double>(integer());
}

int64_t Json::integer() const {
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return *value;
  if (const double* value = std::get_if<double>(&value_)) return static_cast<int64_t>(*value);
  if (const bool* value = std::get_if<bool>(&value_)) return *value ? 1 : 0;
  if (!is_number_unsigned()) wrong_kind(*this, "a number");
  return static_cast<int64_t>(std::get<uint64_t>(value_));
}

uint64_t Json::count() const {
  if (const double* value = std::get_if<double>(&value_); value != nullptr && *value >= 0)
    return static_cast<uint64_t>(*value);
  return static_cast<uint64_t>(integer());
}

const std::vector<Json>& Json::elements() const {
  if (!is_array()) wrong_kind(*this, "an array");
  return std::get<std::vector<Json>>(value_);
}

const Json& Json::as_object() const {
  if (!is_object()) wrong_kind(*this, "an object");
  return *this;
}

Json* Json::begin() {
  return const_cast<Json*>(std::as_const(*this).begin());
}
Json* Json::end() {
  return begin() + size();
}
const Json* Json::begin() const {
  if (is_array()) return std::get<std::vector<Json>>(value_).data();
  return is_object() ? std::get<Members>(value_).values.data() : this;
}
const Json* Json::end() const {
  return begin() + size();
}

size_t Json::size() const {
  if (is_array()) return std::get<std::vector<Json>>(value_).size();
  if (is_object()) return std::get<Members>(value_).values.size();
  return is_null() ? 0 : 1;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_ = Members{};
  as_object();
  Members& members = std::get<Members>(value_);
  if (Json* const found = find(name); found != end()) return *found;
  members.names.emplace_back(name);
  return members.values.emplace_back();
}

Json& Json::at(std::string_view name) {
  return const_cast<Json&>(std::as_const(*this).at(name));
}
const Json& Json::at(std::string_view name) const {
  const Json* const found = as_object().find(name);
  if (found == end()) throw JsonError(fmt::format("'{}' is missing", name));
  return *found;
}
Json& Json::at(size_t index) {
  return const_cast<Json&>(std::as_const(*this).at(index));
}
const Json& Json::at(size_t index) const {
  if (index >= elements().size()) throw JsonError(fmt::format("element {} is missing", index));
  return elements()[index];
}

Json* Json::find(std::string_view name) {
  return const_cast<Json*>(std::as_const(*this).find(name));
}
const Json* Json::find(std::string_view name) const {
  if (!is_object()) return end();
  const Members& members = std::get<Members>(value_);
  return begin() + (std::find(members.names.begin(), members.names.end(), name) - members.names.begin());
}

void Json::push_back(Json value) {
  if (is_null()) value_ = std::vector<Json>();
  elements();
  std::get<std::vector<Json>>(value_).push_back(std::move(value));
}

void Json::update(Json members) {
  for (const auto& [name, value] : members.as_object().items()) (*this)[name] = value;
}

size_t Json::erase(std::string_view name) {
  as_object();
  Members& members = std::get<Members>(value_);
  const auto at = std::find(members.names.begin(), members.names.end(), name);
  if (at == members.names.end()) return 0;
  members.values.erase(members.values.begin() + (at - members.names.begin()));
  members.names.erase(at);
  return 1;
}

Json::Items Json::items() const {
  Items items;
  if (const Members* members = std::get_if<Members>(&value_)) {
    items.keys_ = members->names;
    items.values_ = members->values;
  }
  return items;
}

bool operator==(const Json& left, const Json& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_number_float() || right.is_number_float()) return left.real() == right.real();
    const bool is_negative = left.integer() < 0 && !left.is_number_unsigned();
    return left.integer() == right.integer() &&
           is_negative == (right.integer() < 0 && !right.is_number_unsigned());
  }
  return left.value_ == right.value_;
}

std::ostream& operator<<(std::ostream& out, const Json& json) {
  return out << one_line(json);
}

Json Json::parse(std::string_view text) {
  Builder builder;
  LibraryJson::sax_parse(text, &builder);
  return std::move(builder.json);
}

std::optional<Json> Json::try_parse(std::string_view text) {
  try {
    return parse(text);
  } catch (const JsonError&) {
    return std::nullopt;
  }
}

std::string Json::dump(int indent) const {
  try {
    return library_json(*this).dump(indent);
  } catch (const LibraryJson::exception& error) {
    throw JsonError(reason_of(error.what()));
  }
}

Json::Bytes Json::to_cbor(const Json& json) {
  return LibraryJson::to_cbor(library_json(json));
}

Json Json::from_cbor(std::span<const uint8_t> bytes) {
  Builder builder;
  LibraryJson::sax_parse(bytes.begin(), bytes.end(), &builder, LibraryJson::input_format_t::cbor);
  return std::move(builder.json);
}

Json Json::from_cbor(std::span<const std::byte> bytes) {
  return from_cbor(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

std::string one_line(const Json& json) {
  return library_json(json).dump(-1, ' ', false, Unknown::replace);
}

std::string ascii_line(const Json& json) {
  return library_json(json).dump(-1, ' ', true, Unknown::replace);
}

std::string indented(const Json& json, int indent) {
  return library_json(json).dump(indent, ' ', false, Unknown::replace);
}

}  // namespace penstock

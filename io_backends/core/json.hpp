// A JSON value, and JSON as text. The members of an object keep the order in which they were added.
//
// nlohmann-json parses and writes the text. Only json.cpp includes it, because each file that does costs the
// compiler seconds. The functions have the same names as in that library.
//
// Errors: a function throws JsonError if it needs another kind of value, or a member that is missing.
// Threads: several may read a value; while one changes it, no other may use it.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace penstock {

struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
  // Set by parse(): the byte at which the error is, counted from 1. It is past the end if the text ends too
  // early, and 0 if the place is unknown.
  size_t byte = 0;
};

class Json {
 public:
  using Bytes = std::vector<uint8_t>;
  static constexpr int kMostDepth = 64;  // most levels of nesting in a text, so that none exhausts the stack

  Json() noexcept;  // null
  Json(std::nullptr_t) noexcept;
  Json(std::string text);
  Json(std::string_view text);
  Json(const char* text);
  template <class T>
  requires std::is_arithmetic_v<T> Json(T number) : Json(Stored(std::in_place_type<StoredAs<T>>, number)) {}
  template <class T>
  Json(const std::vector<T>& values) : Json(array_of(values)) {}
  template <class T, size_t N>
  Json(const std::array<T, N>& values) : Json(array_of(values)) {}
  template <class T>
  Json(const std::map<std::string, T>& members) : Json(object()) {
    for (const auto& [name, value] : members) (*this)[name] = value;
  }
  // An object if each of `values` is an array of a text and a value, else an array.
  Json(std::initializer_list<Json> values);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;  // `other` may be a part of this value
  ~Json();

  static Json array(std::initializer_list<Json> values = {});
  static Json object(std::initializer_list<Json> members = {});
  static Json binary(Bytes bytes);  // only for to_cbor()

  bool is_null() const;
  bool is_boolean() const;
  bool is_number() const;
  bool is_number_integer() const;  // a whole number, signed or unsigned
  // A whole number of an unsigned type; parse() makes one of each whole number that is not negative.
  bool is_number_unsigned() const;
  bool is_number_float() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  // T: a number, bool, std::string, Json, or a std::vector, std::array or std::map<std::string, ...> of
  // these. Numbers are converted as by static_cast.
  template <class T>
  T get() const {
    T value{};
    get_to(value);
    return value;
  }
  void get_to(Json& value) const { value = *this; }
  void get_to(bool& value) const;
  void get_to(std::string& value) const;
  template <class T>
  requires std::is_arithmetic_v<T>
  void get_to(T& value) const {
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(real());
    else if constexpr (std::is_signed_v<T>)
      value = static_cast<T>(integer());
    else
      value = static_cast<T>(count());
  }
  template <class T>
  void get_to(std::vector<T>& values) const {
    values.clear();
    for (const Json& value : elements()) values.push_back(value.get<T>());
  }
  template <class T, size_t N>
  void get_to(std::array<T, N>& values) const {
    for (size_t i = 0; i < N; ++i) at(i).get_to(values[i]);
  }
  template <class T>
  void get_to(std::map<std::string, T>& members) const {
    members.clear();
    for (const auto& [name, value] : as_object().items()) members[name] = value.template get<T>();
  }
  const std::string& get_string() const;
  const Bytes& get_binary() const;

  // The number of elements or members; 0 for null, 1 for every other value.
  size_t size() const;
  bool empty() const { return size() == 0; }
  // The elements of an array, or the values of an object's members. Any other value but null has one element:
  // itself.
  Json* begin();
  Json* end();
  const Json* begin() const;
  const Json* end() const;
  Json& front() { return at(size_t{0}); }
  const Json& front() const { return at(size_t{0}); }
  Json& back() { return at(size() - 1); }
  const Json& back() const { return at(size() - 1); }

  // If the value is not const, adds the member if it is missing, and turns null into an object. If the value
  // is const, the same as at().
  Json& operator[](std::string_view name);
  const Json& operator[](std::string_view name) const { return at(name); }
  template <std::integral T>
  Json& operator[](T index) {
    return at(static_cast<size_t>(index));
  }
  template <std::integral T>
  const Json& operator[](T index) const {
    return at(static_cast<size_t>(index));
  }
  Json& at(std::string_view name);
  const Json& at(std::string_view name) const;
  Json& at(size_t index);
  const Json& at(size_t index) const;
  // Returns end() if there is no such member, or if this is no object.
  Json* find(std::string_view name);
  const Json* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != end(); }
  template <class T>
  T value(std::string_view name, T otherwise) const {
    const Json* const found = as_object().find(name);
    return found == end() ? otherwise : found->get<T>();
  }
  std::string value(std::string_view name, const char* otherwise) const {
    return value(name, std::string(otherwise));
  }

  void push_back(Json value);           // turns null into an array
  void update(Json members);            // adds these members, or replaces those of the same names
  size_t erase(std::string_view name);  // returns how many members it erased: 0 or 1

  struct Item {
    const std::string& key;
    const Json& value;
  };
  class Items {
   public:
    class Iterator {
     public:
      Iterator(const std::string* key, const Json* value) : key_(key), value_(value) {}
      Item operator*() const { return {*key_, *value_}; }
      Iterator& operator++() {
        ++key_;
        ++value_;
        return *this;
      }
      bool operator==(const Iterator& other) const { return value_ == other.value_; }

     private:
      const std::string* key_;
      const Json* value_;
    };
    Iterator begin() const { return {keys_.data(), values_.data()}; }
    Iterator end() const { return {keys_.data() + keys_.size(), values_.data() + values_.size()}; }

   private:
    friend Json;
    std::span<const std::string> keys_;
    std::span<const Json> values_;
  };
  // The names and values of the members; nothing if this is no object.
  Items items() const;

  friend bool operator==(const Json& left, const Json& right);  // numbers by value: 1 equals 1.0
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

  // Throws JsonError if `text` is no JSON, or has more than kMostDepth levels. If a name occurs twice, the
  // last value counts.
  static Json parse(std::string_view text);
  // Like parse(), but returns nothing instead of throwing.
  static std::optional<Json> try_parse(std::string_view text);
  // The JSON on one line; with `indent`, one member on each line and that many blanks for each level. No
  // newline at the end. Throws JsonError if a text is not UTF-8.
  std::string dump(int indent = -1) const;
  static Bytes to_cbor(const Json& json);
  static Json from_cbor(std::span<const uint8_t> bytes);
  static Json from_cbor(std::span<const std::byte> bytes);

 private:
  struct Members {
    std::vector<std::string> names;
    std::vector<Json> values;
    bool operator==(const Members& other) const = default;
  };
  using Stored = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Bytes,
                              std::vector<Json>, Members>;
  template <class T>
  using StoredAs =
      std::conditional_t<std::is_same_v<T, bool>, bool,
                         std::conditional_t<std::is_floating_point_v<T>, double,
                                            std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

  explicit Json(Stored value) noexcept;
  template <class Values>
  static Json array_of(const Values& values) {
    Json made = array();
    for (const auto& value : values) made.push_back(value);
    return made;
  }
  double real() const;
  int64_t integer() const;
  uint64_t count() const;
  const std::vector<Json>& elements() const;
  const Json& as_object() const;  // returns itself; throws if it is no object

  Stored value_;
};

// Like dump(), but bytes that are not UTF-8, as names of files may have, become U+FFFD.
std::string one_line(const Json& json);
// Like one_line(), but in ASCII: every other character becomes an escape such as \u00e9.
std::string ascii_line(const Json& json);
// Like one_line(), with one member on each line and `indent` more blanks for each level.
std::string indented(const Json& json, int indent);

}  // namespace penstock

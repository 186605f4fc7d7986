// Option tables: an option lives with its owner as one row; parsing, help, checking and what the record says
// come from it. Tiers, recipes (`--set key=value`), formats and commands all use the same rows.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

enum class OptionType : std::uint8_t {
  text,
  flag,     // given or not: no value
  integer,  // whole number
  real,
  size,  // bytes
  rate,  // bytes per second
  duration,
  boolean,  // 0|1 (also false|true, no|yes, off|on)
  choice,   // one of the words in `value`, divided by '|'
  list,     // of whole numbers: 1,2,4 or 1..64*2
};

// What an option means for the identity of what was measured. Every row of every table has one (a test
// checks).
enum class OptionRole : std::uint8_t {
  unset,
  work,    // what was measured, and how: results that differ in it are results of different work
  target,  // where: corpus, tiers, stores, plans, results of others
  repeat,  // how often and how surely it was measured
  output,  // how results are shown and kept
};

struct OptionSpec {
  std::string_view name;  // as written: "min-time", "read_limit"
  OptionRole role = OptionRole::unset;
  OptionType type = OptionType::text;
  std::string_view value = {};  // what the help shows for the value: "N", "SIZE"; for a choice, the choices
  std::string_view fallback = {};      // the default as text, parsed like a given one; "" means not given
  std::string_view help = {};          // one sentence, lower case, no full stop
  std::string_view group = "Options";  // the task that this option belongs to in --help
  bool repeated = false;               // may be given more than once (text only)
  std::string_view alias = {};         // the field's other name for it
  std::int64_t at_least = INT64_MIN;   // for integer, real, size, rate and every member of a list
};

using OptionTable = std::span<const OptionSpec>;

// One value of an option. Several of one key are in order.
struct OptionWord {
  std::string key;
  std::string value;
};

// The values that a table's owner reads. Reading a name that the table lacks, or with another type, is a bug
// and asserts. Immutable after parse; any thread.
class Options {
 public:
  static constexpr std::string_view kOnCommandLine = "--";

  // Checks every word against the tables: an unknown key is an error that names the nearest valid one and
  // lists them all; a bad value names the key and the owner ("tier option 'limit' of 'disk'": owner = "tier
  // option"; those of a command line are named as on the line, "--limit": owner = kOnCommandLine).
  static Result<Options> parse(std::span<const OptionTable> tables, std::span<const OptionWord> words,
                               std::string_view owner);
  static Result<Options> parse(OptionTable table, std::span<const OptionWord> words, std::string_view owner);

  bool given(std::string_view name) const;  // by the user, not by the default
  bool has(std::string_view name) const;    // a value exists: given or default
  bool flag(std::string_view name) const;
  const std::string& text(std::string_view name) const;                // text and choice; "" when absent
  const std::vector<std::string>& texts(std::string_view name) const;  // repeated text
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::uint64_t size(std::string_view name) const;  // size and rate
  std::chrono::nanoseconds duration(std::string_view name) const;
  bool boolean(std::string_view name) const;
  const std::vector<std::uint64_t>& list(std::string_view name) const;

  // Calls `take` for each option, in table order, with what was understood as text without abbreviations:
  // "4096" for 4KiB, "10000000ns" for 10ms, "1,2,4" for 1..4*2. Once for each value of a repeated option;
  // with null for an option that is neither given nor has a default.
  void visit(const std::function<void(const OptionSpec& option, const std::string* text)>& take) const;
  // The same texts of the options with a value.
  std::vector<OptionWord> resolved() const;

 private:
  struct Value {
    const OptionSpec* spec = nullptr;
    bool given = false;
    bool present = false;
    std::vector<std::string> texts;
    std::int64_t integer = 0;
    double real = 0;
    std::vector<std::uint64_t> list;
  };
  Result<void> set(Value& value, std::string_view text, std::string_view owner);
  const Value& get(std::string_view name) const;
  const Value& get(std::string_view name, std::initializer_list<OptionType> types) const;

  std::vector<Value> values_;
};

// As a record names the parameter of an option: "min-time" of type duration is "min_time_s".
std::string parameter_name(std::string_view option, OptionType type);

// "unknown tier option 'limt'; did you mean 'limit'? valid: capacity, fail, latency, limit"
Error unknown_name(std::string_view what, std::string_view word, const std::vector<std::string_view>& valid);

}  // namespace penstock

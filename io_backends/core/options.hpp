// Option tables: the code that owns an option declares it as one row. Parsing, help, checks and the
// parameters in records come from this row. Tiers, recipes (`--set key=value`), formats and commands use the
// same rows.
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

enum class OptionType : uint8_t {
  text,
  flag,     // an option without a value: present or absent
  integer,  // whole number
  real,
  size,  // a size in bytes
  rate,  // a rate in bytes per second
  duration,
  boolean,  // 0|1 (also false|true, no|yes, off|on)
  choice,   // one of the words in `value`, separated by '|'
  list,     // whole numbers: 1,2,4 or 1..64*2
};

// How an option matters when results are compared. Every row of every table has a role (a test checks this).
enum class OptionRole : uint8_t {
  unset,
  work,    // the work and how it is measured: different values mean different work
  target,  // what is read or written: corpus, tiers, stores, plans, result files
  repeat,  // the number and precision of repeats
  output,  // how results are shown and kept
};

struct OptionSpec {
  std::string_view name;  // as the user writes it: "min-time", "read_limit"
  OptionRole role = OptionRole::unset;
  OptionType type = OptionType::text;
  std::string_view value = {};         // the value in the help text: "N", "SIZE"; for a choice, the choices
  std::string_view fallback = {};      // the default as text, parsed like a given value; "": no default
  std::string_view help = {};          // one sentence, lower case, no full stop
  std::string_view group = "Options";  // the heading in --help under which this option is listed
  bool repeated = false;               // may be given more than once (text only)
  std::string_view alias = {};         // a second name for the option that users may know
  // The unit of a number without a unit if the option is given by its alias: "s" for fio's --runtime 30.
  std::string_view alias_unit = {};
  // smallest valid value, for integer, real, size, rate and members of a list
  int64_t at_least = INT64_MIN;
};

using OptionTable = std::span<const OptionSpec>;

// An option as the user gave it: its key, and its value as text.
struct OptionWord {
  std::string key;
  std::string value;
};

// Returns `word` with the option's own name as its key. If the key is the option's alias, a number without a
// unit gets OptionSpec::alias_unit: "runtime" with "30" becomes "duration" with "30s".
OptionWord with_own_name(const OptionSpec& option, OptionWord word);

// The values of parsed options. It is a bug to read an option that the table lacks, or to read it by the
// function for another type: an assert fails. The values never change after parse(), so any thread may read
// them.
class Options {
 public:
  static constexpr std::string_view kOnCommandLine = "--";

  // Parses `words` by the tables. For an unknown key the error names the nearest valid key and lists all
  // valid keys. For a bad value the error begins with `owner` and names the key: "tier option 'limit' ..."
  // with the owner "tier option". With the owner kOnCommandLine the error names keys as the user typed them:
  // "--limit".
  static Result<Options> parse(std::span<const OptionTable> tables, std::span<const OptionWord> words,
                               std::string_view owner);
  static Result<Options> parse(OptionTable table, std::span<const OptionWord> words, std::string_view owner);

  bool given(std::string_view name) const;  // whether the user gave the option; false for a default
  bool has(std::string_view name) const;    // whether the option has a value: from the user or a default
  bool flag(std::string_view name) const;
  // for the types text and choice; "" if there is no value
  const std::string& text(std::string_view name) const;
  // all values of an option that is `repeated`
  const std::vector<std::string>& texts(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  uint64_t size(std::string_view name) const;  // for the types size and rate
  std::chrono::nanoseconds duration(std::string_view name) const;
  bool boolean(std::string_view name) const;
  const std::vector<uint64_t>& list(std::string_view name) const;

  // Calls `visitor` for each option in table order. `text` is the parsed value without abbreviations: "4096"
  // for 4KiB, "10000000ns" for 10ms, "1,2,4" for 1..4*2. `text` is null if the option was not given and has
  // no default. A repeated option gets a call for each value.
  void visit(const std::function<void(const OptionSpec& option, const std::string* text)>& visitor) const;
  // The options that have a value, each with the text that visit() passes.
  std::vector<OptionWord> resolved() const;

 private:
  struct Value {
    const OptionSpec* spec = nullptr;
    bool given = false;
    bool present = false;
    std::vector<std::string> texts;
    int64_t integer = 0;
    double real = 0;
    std::vector<uint64_t> list;
  };
  Result<void> set(Value& value, std::string_view text, std::string_view owner);
  const Value& get(std::string_view name) const;
  const Value& get(std::string_view name, std::initializer_list<OptionType> types) const;

  std::vector<Value> values_;
};

// The name of an option's parameter in records: "min-time" of type duration is "min_time_s".
std::string parameter_name(std::string_view option, OptionType type);

// Makes the error "unknown tier option 'limt'; did you mean 'limit'? valid: capacity, fail, latency, limit".
Error unknown_name(std::string_view what, std::string_view word, const std::vector<std::string_view>& valid);

}  // namespace penstock

#include "io_backends/core/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "io_backends/core/text.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

bool has_choice(std::string_view choices, std::string_view word) {
  while (!choices.empty())
    if (take_part(choices, '|') == word) return true;
  return false;
}

Result<bool> parse_boolean(std::string_view text) {
  for (const std::string_view yes : {"1", "true", "yes", "on"})
    if (text == yes) return true;
  for (const std::string_view no : {"0", "false", "no", "off"})
    if (text == no) return false;
  return make_error(Errc::invalid_argument, "'{}' is neither 1 nor 0", text);
}

Result<int64_t> as_signed(Result<uint64_t> number, std::string_view text) {
  if (!number.ok()) return std::move(number).error();
  if (*number > uint64_t(INT64_MAX))
    return make_error(Errc::invalid_argument, "'{}' is too large: at most {}", text, INT64_MAX);
  return int64_t(*number);
}

Result<int64_t> parse_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  PENSTOCK_ASSIGN(const int64_t value, as_signed(parse_count(negative ? text.substr(1) : text), text));
  return negative ? -value : value;
}

std::string option_text(std::string_view option, std::string_view owner) {
  return owner == Options::kOnCommandLine ? fmt::format("--{}", option)
                                          : fmt::format("{} '{}'", owner, option);
}

}  // namespace

std::string parameter_name(std::string_view option, OptionType type) {
  std::string name(option);
  std::replace(name.begin(), name.end(), '-', '_');
  return type == OptionType::duration ? name + "_s" : name;
}

OptionWord with_own_name(const OptionSpec& option, OptionWord word) {
  if (word.key == option.name) return word;
  const bool has_unit = word.value.find_first_not_of("0123456789.") != std::string::npos;
  if (word.key == option.alias && !has_unit && !word.value.empty()) word.value += option.alias_unit;
  word.key = option.name;
  return word;
}

Error unknown_name(std::string_view what, std::string_view word, const std::vector<std::string_view>& valid) {
  std::string text = fmt::format("unknown {} '{}'", what, word);
  const std::string_view nearest = nearest_name(word, valid);
  if (!nearest.empty()) text += fmt::format("; did you mean '{}'?", nearest);
  std::vector<std::string_view> sorted = valid;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) {
    text += "; no value is valid here";
  } else {
    text += fmt::format("{} valid: {}", nearest.empty() ? ";" : "", fmt::join(sorted, ", "));
  }
  return make_error(Errc::invalid_argument, std::move(text));
}

Result<void> Options::set(Value& value, std::string_view text, std::string_view owner) {
  const OptionSpec& spec = *value.spec;
  const auto refuse = [&](std::string_view why) {
    return make_error(Errc::invalid_argument, "{}: {}", option_text(spec.name, owner), why);
  };
  const auto take_integer = [&](Result<int64_t> parsed) -> Result<void> {
    if (!parsed.ok()) return refuse(parsed.error().what);
    if (*parsed < spec.at_least)
      return refuse(fmt::format("must be at least {}, not {}", spec.at_least, text));
    value.integer = *parsed;
    return success();
  };
  value.present = true;
  if (!spec.repeated) value.texts.clear();
  value.texts.emplace_back(text);
  switch (spec.type) {
    case OptionType::text:
      return success();
    case OptionType::flag:
    case OptionType::boolean: {
      const Result<bool> parsed = parse_boolean(text);
      if (!parsed.ok()) return refuse(parsed.error().what);
      value.integer = *parsed ? 1 : 0;
      return success();
    }
    case OptionType::integer:
      return take_integer(parse_integer(text));
    case OptionType::real: {
      const Result<double> parsed = parse_real(text);
      if (!parsed.ok()) return refuse(parsed.error().what);
      if (spec.at_least != INT64_MIN && *parsed < double(spec.at_least))
        return refuse(fmt::format("must be at least {}, not {}", spec.at_least, text));
      value.real = *parsed;
      return success();
    }
    case OptionType::size:
      return take_integer(as_signed(parse_size(text), text));
    case OptionType::rate:
      return take_integer(as_signed(parse_rate(text), text));
    case OptionType::duration: {
      const Result<std::chrono::nanoseconds> parsed = parse_duration(text);
      if (!parsed.ok()) return refuse(parsed.error().what);
      value.integer = parsed->count();
      return success();
    }
    case OptionType::choice:
      if (!has_choice(spec.value, text))
        return refuse(fmt::format("'{}' is not one of {}", text, spec.value));
      return success();
    case OptionType::list: {
      Result<std::vector<uint64_t>> parsed = parse_list(text);
      if (!parsed.ok()) return refuse(parsed.error().what);
      for (const uint64_t member : *parsed) {
        if (spec.at_least > 0 && member < uint64_t(spec.at_least))
          return refuse(fmt::format("must be at least {}, not {}", spec.at_least, member));
      }
      value.list = *std::move(parsed);
      return success();
    }
  }
  return make_error(Errc::internal, "unknown option type");
}

Result<Options> Options::parse(std::span<const OptionTable> tables, std::span<const OptionWord> words,
                               std::string_view owner) {
  Options options;
  for (const OptionTable table : tables) {
    for (const OptionSpec& spec : table) {
      Value& value = options.values_.emplace_back();
      value.spec = &spec;
      if (!spec.fallback.empty()) PENSTOCK_TRY(options.set(value, spec.fallback, owner));
    }
  }
  for (const OptionWord& word : words) {
    const auto found = std::find_if(options.values_.begin(), options.values_.end(),
                                    [&](const Value& value) { return value.spec->name == word.key; });
    if (found == options.values_.end()) {
      std::vector<std::string_view> valid;
      for (const Value& value : options.values_) valid.push_back(value.spec->name);
      return unknown_name(owner, word.key, valid);
    }
    if (found->given && !found->spec->repeated)
      return make_error(Errc::invalid_argument, "{} is given twice", option_text(word.key, owner));
    if (!found->given) found->texts.clear();
    found->given = true;
    PENSTOCK_TRY(options.set(*found, word.value, owner));
  }
  return options;
}

Result<Options> Options::parse(OptionTable table, std::span<const OptionWord> words, std::string_view owner) {
  const OptionTable tables[] = {table};
  return parse(tables, words, owner);
}

const Options::Value& Options::get(std::string_view name) const {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const Value& value) { return value.spec->name == name; });
  assert(found != values_.end() && "the option table has no such row");
  return *found;
}

const Options::Value& Options::get(std::string_view name,
                                   [[maybe_unused]] std::initializer_list<OptionType> types) const {
  const Value& value = get(name);
  assert(std::find(types.begin(), types.end(), value.spec->type) != types.end() && "read as another type");
  return value;
}

bool Options::given(std::string_view name) const {
  return get(name).given;
}
bool Options::has(std::string_view name) const {
  return get(name).present;
}
bool Options::flag(std::string_view name) const {
  return get(name, {OptionType::flag}).integer != 0;
}
bool Options::boolean(std::string_view name) const {
  return get(name, {OptionType::boolean}).integer != 0;
}
int64_t Options::integer(std::string_view name) const {
  return get(name, {OptionType::integer}).integer;
}
double Options::real(std::string_view name) const {
  return get(name, {OptionType::real}).real;
}

const std::string& Options::text(std::string_view name) const {
  static const std::string empty;
  const Value& value = get(name, {OptionType::text, OptionType::choice});
  return value.texts.empty() ? empty : value.texts.front();
}

const std::vector<std::string>& Options::texts(std::string_view name) const {
  return get(name, {OptionType::text}).texts;
}

uint64_t Options::size(std::string_view name) const {
  return uint64_t(get(name, {OptionType::size, OptionType::rate}).integer);
}

std::chrono::nanoseconds Options::duration(std::string_view name) const {
  return std::chrono::nanoseconds{get(name, {OptionType::duration}).integer};
}

const std::vector<uint64_t>& Options::list(std::string_view name) const {
  return get(name, {OptionType::list}).list;
}

void Options::visit(
    const std::function<void(const OptionSpec& option, const std::string* text)>& visitor) const {
  for (const Value& value : values_) {
    const auto visit_text = [&](const std::string& text) { visitor(*value.spec, &text); };
    if (!value.present) {
      visitor(*value.spec, nullptr);
      continue;
    }
    switch (value.spec->type) {
      case OptionType::integer:
      case OptionType::size:
      case OptionType::rate:
      case OptionType::flag:
      case OptionType::boolean:
        visit_text(std::to_string(value.integer));
        break;
      case OptionType::duration:
        visit_text(fmt::format("{}ns", value.integer));
        break;
      case OptionType::list:
        visit_text(fmt::format("{}", fmt::join(value.list, ",")));
        break;
      case OptionType::text:
      case OptionType::choice:
      case OptionType::real:
        for (const std::string& text : value.texts) visit_text(text);
        break;
    }
  }
}

std::vector<OptionWord> Options::resolved() const {
  std::vector<OptionWord> words;
  visit([&](const OptionSpec& option, const std::string* text) {
    if (text != nullptr) words.push_back({std::string(option.name), *text});
  });
  return words;
}

}  // namespace penstock

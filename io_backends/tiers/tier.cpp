#include "io_backends/tiers/tier.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/decorators/capped.hpp"
#include "io_backends/decorators/faulty.hpp"
#include "io_backends/decorators/throttled.hpp"
#include "io_backends/decorators/traced.hpp"
#include "io_backends/tiers/named_tiers.hpp"

namespace penstock {
namespace {

constexpr OptionSpec kTierOptions[] = {
    {.name = "limit",
     .role = OptionRole::work,
     .type = OptionType::rate,
     .value = "RATE",
     .help = "limit of the read and of the write bandwidth",
     .at_least = 1},
    {.name = "read_limit",
     .role = OptionRole::work,
     .type = OptionType::rate,
     .value = "RATE",
     .help = "limit of the read bandwidth",
     .at_least = 1},
    {.name = "write_limit",
     .role = OptionRole::work,
     .type = OptionType::rate,
     .value = "RATE",
     .help = "limit of the write bandwidth",
     .at_least = 1},
    {.name = "latency",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .help = "minimum time of every operation"},
    {.name = "capacity",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .help = "capacity: the tier is full when its objects have this size"},
    {.name = "fail",
     .role = OptionRole::work,
     .type = OptionType::text,
     .value = "FAULT@WHEN",
     .help = "make operations fail, for tests: eio@0.01, write:enospc@#3 ... (docs/reference/tiers.md)"},
    {.name = "times",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "time every call and add the distributions to the records"},
    {.name = "trace",
     .role = OptionRole::output,
     .type = OptionType::text,
     .value = "FILE",
     .help = "like times=1, and write every call with its object, offset and bytes to FILE, for Perfetto or "
             "chrome://tracing"},
    {.name = "fail_seed",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1",
     .help = "seed for faults with a probability"},
};

bool is_tier_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

bool is_option_letter(char c) {
  return (c >= 'a' && c <= 'z') || c == '_' || c == '.';
}

// The position at which the options of a TIER begin: the first ',' that is followed by `[a-z_.]+=`.
size_t find_options(std::string_view text) {
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',', comma + 1)) {
    size_t end = comma + 1;
    while (end < text.size() && is_option_letter(text[end])) ++end;
    if (end > comma + 1 && end < text.size() && text[end] == '=') return comma;
  }
  return text.size();
}

std::string unescape_commas(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i, 3);
    if (rest == "%2C" || rest == "%2c") {
      out += ',';
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

Error tier_error(std::string_view text, std::string_view why) {
  return make_error(Errc::invalid_argument, "bad tier '" + std::string(text) + "': " + std::string(why));
}

Result<void> split_options(std::string_view text, std::string_view options, TierSpec& spec) {
  while (!options.empty()) {
    options.remove_prefix(1);  // skip the comma before the option
    const size_t end = std::min(options.find(','), options.size());
    const std::string_view word = options.substr(0, end);
    const size_t equals = word.find('=');
    if (equals == 0 || equals == std::string_view::npos)
      return tier_error(text,
                        "'" + std::string(word) + "' is not option=value (write a literal comma as %2C)");
    spec.options.push_back({std::string(word.substr(0, equals)), unescape_commas(word.substr(equals + 1))});
    options.remove_prefix(end);
  }
  return success();
}

// The three parts of a TIER: the name ("" if the text has none), the part between name and options, and the
// options.
struct TierText {
  std::string_view name;
  std::string_view head;
  std::string_view options;  // the options, from the comma before the first one
};
Result<TierText> split_text(std::string_view text) {
  const size_t options = find_options(text);
  TierText parts{{}, text.substr(0, options), text.substr(options)};
  const size_t equals = parts.head.find('=');
  if (equals == 0) return tier_error(text, "the name before '=' is empty");
  if (equals != std::string_view::npos && equals < parts.head.find(':') &&
      is_tier_name(parts.head.substr(0, equals))) {
    parts.name = parts.head.substr(0, equals);
    parts.head.remove_prefix(equals + 1);
  }
  return parts;
}

bool is_backend(std::string_view word) {
  const auto has_name = [&](const auto& row) { return row.name == word; };
  const auto& registry = backend_registry();
  return std::any_of(registry.missing().begin(), registry.missing().end(), has_name) ||
         std::any_of(registry.present().begin(), registry.present().end(),
                     [&](const BackendInfo* info) { return info->name == word; });
}

Result<void> split_backend(std::string_view text, std::string_view head, TierSpec& spec) {
  const size_t colon = head.find(':');
  const std::string_view word = head.substr(0, colon);
  if (colon == std::string_view::npos || word.find('/') != std::string_view::npos) {
    spec.path = unescape_commas(head);  // the text has no BACKEND, only a path
    if (spec.path.empty()) return tier_error(text, "it has no path");
    return success();
  }
  spec.path = unescape_commas(head.substr(colon + 1));
  if (word == "direct") {
    spec.options.insert(spec.options.begin(), {"direct", "1"});
  } else if (is_backend(word)) {
    spec.backend = word;
  } else {
    std::vector<std::string_view> names{"direct"};
    for (const BackendInfo* info : backend_registry().present()) names.push_back(info->name);
    Error error = unknown_name("back end", word, names);
    error.what += " (in tier '" + std::string(text) + "'; a path that contains ':' must start with / or ./)";
    return error;
  }
  return success();
}

// A name for a tier, from its mount point: "disk" for /mnt/disk, "shm" for /dev/shm, "root" for /.
std::string name_of_mount(const TierFacts& facts) {
  const std::string last_part = std::filesystem::path(facts.mount_point).filename().string();
  return last_part.empty() ? "root" : last_part;
}

Result<std::unique_ptr<Backend>> decorate(std::unique_ptr<Backend> backend, const Options& options) {
  if (options.has("capacity")) backend = capped(std::move(backend), options.size("capacity"));
  const Throttling throttling = Throttling::from_options(options);
  if (throttling.has_limits()) backend = throttled(std::move(backend), throttling);
  if (options.has("fail")) {
    PENSTOCK_ASSIGN(const auto faults, parse_faults(options.text("fail")));
    const auto seed = uint64_t(options.integer("fail_seed"));
    backend = faulty(std::move(backend), faults, seed);
  }
  if (options.boolean("times") || options.has("trace")) {
    const std::string file = options.has("trace") ? options.text("trace") : "";
    PENSTOCK_ASSIGN(backend, traced(std::move(backend), file));
  }
  return backend;
}

}  // namespace

OptionTable tier_options() {
  return kTierOptions;
}

std::string options_text(std::span<const OptionWord> words, std::string_view between) {
  std::string text;
  for (const OptionWord& word : words)
    text.append(text.empty() ? "" : between).append(word.key).append("=").append(word.value);
  return text;
}

namespace {

// Replaces a named TIER by its value. `given` is what the user wrote. A name in `given` replaces that of the
// named TIER, and each option in it replaces the same option there.
Result<TierSpec> expand_named_tier(const OptionWord& named, const TierText& given) {
  PENSTOCK_ASSIGN(const TierText named_parts, split_text(named.value));
  std::string text(given.name.empty() ? std::string_view(named.key) : given.name);
  text.append("=").append(named_parts.head);
  PENSTOCK_ASSIGN(const TierSpec named_spec, parse_tier(named.value, kNoNamedTiers));
  PENSTOCK_ASSIGN(const TierSpec given_spec, parse_tier("/" + std::string(given.options), kNoNamedTiers));
  std::string_view unread_options = named_parts.options;
  for (const OptionWord& option : named_spec.options) {
    const size_t end = std::min(unread_options.find(',', 1), unread_options.size());
    // Skip the option direct=1 if the named TIER does not contain it as text. parse_tier() made it from the
    // start "direct:", and `text` has this start already.
    if (option.key == "direct" && !unread_options.starts_with(",direct=")) continue;
    const auto same_key = [&](const OptionWord& word) { return word.key == option.key; };
    if (std::none_of(given_spec.options.begin(), given_spec.options.end(), same_key))
      text += unread_options.substr(0, end);
    unread_options.remove_prefix(end);
  }
  text += given.options;
  return parse_tier(text, kNoNamedTiers);
}

// Tells the user how a word was understood, in two cases where this may surprise. First: the word is the
// named tier `match`, and a folder has the same name. Second: no tier has the name (`match` is null), so the
// word was taken as a path, but there is no such path.
void describe_choice(std::string_view head, NamedTiers named, const OptionWord* match) {
  if (named.empty() || !is_tier_name(head)) return;
  std::error_code ignored;
  const std::string word(head);
  if (std::filesystem::exists(word, ignored) == (match == nullptr)) return;
  std::string names;
  for (const OptionWord& tier : named) names += (names.empty() ? "" : ", ") + tier.key;
  note_once(match == nullptr
                ? "'" + word + "' is a folder, and no tier has this name (tiers: " + names + ")"
                : "'" + word + "' is the tier " + match->value + "; to use the folder, write ./" + word);
}

}  // namespace

Result<void> check_named_tier(std::string_view name, std::string_view spec) {
  if (!is_tier_name(name))
    return make_error(
        Errc::invalid_argument,
        "'" + std::string(name) + "' is not a valid tier name: use letters, digits, '_', '-' and '.'");
  PENSTOCK_ASSIGN(const TierText parts, split_text(spec));
  if (parts.head.find(':') == std::string_view::npos && parts.head.find('/') == std::string_view::npos)
    return tier_error(spec, "tier '" + std::string(name) + "' needs BACKEND:PATH or a path with a '/'");
  PENSTOCK_TRY(parse_tier(spec, kNoNamedTiers));
  return success();
}

Result<TierSpec> parse_tier(std::string_view text, NamedTiers named) {
  TierSpec spec;
  spec.text = text;
  PENSTOCK_ASSIGN(const TierText parts, split_text(text));
  const auto match = std::find_if(named.begin(), named.end(),
                                  [&](const OptionWord& tier) { return tier.key == parts.head; });
  describe_choice(parts.head, named, match == named.end() ? nullptr : &*match);
  if (match != named.end()) return expand_named_tier(*match, parts);
  spec.name = parts.name;
  PENSTOCK_TRY(split_backend(text, parts.head, spec));
  PENSTOCK_TRY(split_options(text, parts.options, spec));
  return spec;
}

Result<Tier> open_tier(std::string_view text, NamedTiers named) {
  PENSTOCK_ASSIGN(const TierSpec spec, parse_tier(text, named));
  return open_tier(spec);
}

Result<Tier> open_tier(const TierSpec& spec) {
  PENSTOCK_ASSIGN(const BackendInfo* const info, backend_registry().find(spec.backend));
  const OptionTable tables[] = {info->options, tier_options()};
  PENSTOCK_ASSIGN(const Options options, Options::parse(tables, spec.options, "tier option"));
  Tier tier;
  tier.spec = spec.text;
  tier.backend_name = spec.backend;
  PENSTOCK_ASSIGN(tier.backend, info->make(spec.path, options));
  const auto native_root = tier.backend->native_path("");
  tier.root = native_root ? native_root->string() : spec.path;
  if (native_root) tier.facts = inspect_path(*native_root);
  tier.facts.memory = tier.facts.memory || tier.backend->caps().volatile_memory;
  tier.facts.network = tier.facts.network || tier.backend->caps().on_network;
  tier.name = !spec.name.empty() ? spec.name : native_root ? name_of_mount(tier.facts) : spec.backend;
  PENSTOCK_ASSIGN(tier.backend, decorate(std::move(tier.backend), options));
  return tier;
}

Result<std::vector<Tier>> open_tiers(std::span<const std::string> texts, const std::string& taken_name,
                                     NamedTiers named) {
  std::vector<Tier> tiers;
  std::set<std::string> names;
  for (const std::string& text : texts) {
    PENSTOCK_ASSIGN(const TierSpec spec, parse_tier(text, named));
    PENSTOCK_ASSIGN(Tier tier, open_tier(spec));
    if (!spec.name.empty() && names.contains(spec.name))
      return tier_error(text, "another tier has the name '" + spec.name + "', too");
    const std::string default_name = tier.name;
    for (int n = 2; tier.name == taken_name || !names.insert(tier.name).second; ++n)
      tier.name = default_name + "-" + std::to_string(n);
    if (!spec.name.empty()) names.insert(spec.name);
    tiers.push_back(std::move(tier));
  }
  return tiers;
}

}  // namespace penstock

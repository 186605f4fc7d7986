#include "datagen/format/object_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "datagen/manifest/name_hash.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {

Result<Dirs> Dirs::parse(const Options& options) {
  const std::string& dirs = options.text("dirs");
  if (dirs == "class") return Dirs(true, 0);
  if (dirs == "flat") return Dirs(false, 0);
  constexpr std::string_view kHash = "hash:";
  std::optional<uint64_t> folder_count;
  if (dirs.starts_with(kHash)) folder_count = parse_digits<uint64_t>(dirs.substr(kHash.size()));
  if (!folder_count || *folder_count == 0 || *folder_count > 1'000'000)
    return make_error(Errc::invalid_argument, "dirs={}: use class, flat or hash:K with K from 1 to 1000000",
                      dirs);
  return Dirs(false, *folder_count);
}

std::string Dirs::name(std::string_view key, std::string_view extension) const {
  std::string name = fmt::format("{}{}", key, extension);
  if (by_class_) return name;
  std::replace(name.begin(), name.end(), '/', '_');
  if (folder_count_ == 0) return name;
  const size_t digits = fmt::formatted_size("{:x}", folder_count_ - 1);
  return fmt::format("{:0{}x}/{}", name_hash(key) % folder_count_, digits, name);
}

Result<Shards> Shards::parse(const Options& options) {
  PENSTOCK_ASSIGN(const Dirs dirs, Dirs::parse(options));
  const auto option_or_0 = [&](std::string_view name) {
    return options.given(name) ? uint64_t(options.integer(name)) : 0;
  };
  const uint64_t shard_count = option_or_0("shards");
  const uint64_t samples_per_object = option_or_0("samples_per_file");
  if (shard_count != 0 && samples_per_object != 0)
    return make_error(Errc::invalid_argument, "set either shards or samples_per_file, not both");
  if (options.given("dirs") && samples_per_object != 1)
    return make_error(Errc::invalid_argument,
                      "dirs={} has no effect on objects with several samples, which have numbers as names: "
                      "leave it out, or set samples_per_file=1 or --format files",
                      options.text("dirs"));
  return Shards(dirs, shard_count, samples_per_object);
}

uint64_t Shards::objects(uint64_t samples) const {
  if (samples_per_object_ != 0)
    return samples / samples_per_object_ + (samples % samples_per_object_ != 0 ? 1 : 0);
  return std::clamp<uint64_t>(shard_count_, 1, std::max<uint64_t>(samples, 1));
}

uint64_t Shards::first_sample(uint64_t object, uint64_t samples) const {
  if (samples_per_object_ != 0) return object * samples_per_object_;
  // If `samples` is not a multiple of `count`, the first `samples % count` objects each contain one sample
  // more than the others.
  const uint64_t count = objects(samples);
  return object * (samples / count) + std::min(object, samples % count);
}

std::string Shards::name(uint64_t object, uint64_t objects, std::string_view recipe,
                         std::string_view first_key, std::string_view extension) const {
  if (samples_per_object_ == 1) return dirs_.name(first_key, extension);
  return fmt::format("{}-{:05}-of-{:05}{}", recipe, object, objects, extension);
}

std::optional<std::string_view> before_shard_number(std::string_view text) {
  const auto digits_begin = [&](size_t end) {
    const size_t begin = text.find_last_not_of("0123456789", end - 1);
    return begin == std::string_view::npos || end - begin - 1 < 5 ? std::string_view::npos : begin + 1;
  };
  constexpr std::string_view kOf = "-of-";
  const size_t count_begin = text.empty() ? std::string_view::npos : digits_begin(text.size());
  if (count_begin == std::string_view::npos || count_begin <= kOf.size() ||
      !text.substr(0, count_begin).ends_with(kOf))
    return std::nullopt;
  const size_t number_begin = digits_begin(count_begin - kOf.size());
  if (number_begin == std::string_view::npos || !text.substr(0, number_begin).ends_with('-'))
    return std::nullopt;
  return text.substr(0, number_begin - 1);
}

bool is_shard_name(std::string_view object_name) {
  // If the name has no '/', rfind() returns npos, npos + 1 is 0, and the whole name is taken.
  const std::string_view base_name = object_name.substr(object_name.rfind('/') + 1);
  return before_shard_number(base_name.substr(0, base_name.rfind('.'))).has_value();
}

}  // namespace penstock

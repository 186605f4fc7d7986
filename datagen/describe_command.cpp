// penstock describe: shows the content of a corpus, or of any folder.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "datagen/commands/command_output.hpp"
#include "datagen/content/bad_samples.hpp"
#include "datagen/content/content.hpp"
#include "datagen/corpus/copy_engine.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/generate/generate_state.hpp"
#include "datagen/manifest/layout.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/histogram.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {

extern const CommandInfo command_describe;

namespace {

constexpr OptionSpec kDescribeOptions[] = {
    {.name = "scan",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "use any folder of files as the data set, read-only (only --save FILE is written)",
     .group = "Corpus"},
    kTypesOption,
    kFollowLinksOption,
    kFieldOption,
    {.name = "checksum",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "with --scan: read every sample and store its CRC32C, so that verify can check it",
     .group = "Corpus"},
    kManifestOption,
    {.name = "save",
     .role = OptionRole::output,
     .value = "FILE",
     .help = "with --scan: save the manifest to this file, for --manifest; replaces only an empty file or a "
             "manifest",
     .group = "Corpus"},
    kThreadsOption,
    {.name = "content",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "read samples and report decoding cost, compressibility, and empty or duplicate blocks",
     .group = "Content"},
    {.name = "list-bad",
     .role = OptionRole::output,
     .value = "FILE",
     .help =
         "read every sample, decode pictures, and write those that fail to FILE: name, offset and reason, "
         "separated by tabs",
     .group = "Content"},
    {.name = "samples",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "with --content: number of samples to read, evenly spread (default: up to 256 MiB)",
     .group = "Content",
     .at_least = 1},
    {.name = "seed",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "0",
     .help = "with --content: seed for the choice of samples",
     .group = "Content",
     .at_least = 0},
};

constexpr double kPercentiles[] = {1, 5, 10, 25, 50, 75, 90, 95, 99};

struct Description {
  Histogram sizes;
  // The histogram of sizes: size -> how many samples have it or up to twice as many bytes; 0 -> how many are
  // empty. From the smallest to the largest with samples, including those between them.
  std::map<uint64_t, uint64_t> bins;
  uint64_t bytes = 0;  // of all samples
  // Samples in compressed streams or in chunks: their number, their bytes, and the sum of the stored bytes
  // that a read of each fetches.
  uint64_t samples_in_forms = 0;
  uint64_t bytes_in_forms = 0;
  uint64_t fetched_bytes = 0;
  uint64_t labels_used = 0;
  uint64_t unlabelled_samples = 0;
  uint64_t fewest_per_label = 0;  // the number of samples of the label that has the fewest
  uint64_t most_per_label = 0;
};

Result<Description> inspect(const Manifest& manifest) {
  Description out;
  out.sizes = sample_sizes(manifest);
  std::vector<uint64_t> samples_of_label(manifest.facts().label_names.size());
  std::vector<uint64_t> samples_of_bin(65);
  for (uint64_t i = 0; i < manifest.samples(); ++i) {
    if (i % 65536 == 0) PENSTOCK_TRY(check_interrupt());
    const SampleEntry& sample = manifest.sample(i);
    const uint64_t bytes = manifest.extent(i).bytes;
    out.bytes += bytes;
    if (sample.form != 0) {
      ++out.samples_in_forms;
      out.bytes_in_forms += bytes;
      out.fetched_bytes += sample.length;
    }
    ++samples_of_bin[bytes == 0 ? 0 : 64 - unsigned(__builtin_clzll(bytes))];
    if (sample.label < samples_of_label.size())
      ++samples_of_label[sample.label];
    else
      ++out.unlabelled_samples;
  }
  const auto is_not_empty = [](uint64_t count) { return count > 0; };
  const auto first_bin = std::find_if(samples_of_bin.begin(), samples_of_bin.end(), is_not_empty);
  const auto last_bin = std::find_if(samples_of_bin.rbegin(), samples_of_bin.rend(), is_not_empty).base();
  for (auto bin = first_bin; bin < last_bin; ++bin) {
    const auto power = bin - samples_of_bin.begin();
    out.bins.emplace(power == 0 ? 0 : uint64_t{1} << (power - 1), *bin);
  }
  for (const uint64_t count : samples_of_label) {
    if (count == 0) continue;
    out.fewest_per_label = out.labels_used == 0 ? count : std::min(out.fewest_per_label, count);
    out.most_per_label = std::max(out.most_per_label, count);
    ++out.labels_used;
  }
  return out;
}

Json to_json(const Corpus& corpus, const Description& found, const std::optional<Content>& content,
             const std::optional<BadList>& bad) {
  const Manifest& manifest = corpus.manifest;
  Json sizes{{"min", found.sizes.min()}, {"mean", found.sizes.mean()}, {"max", found.sizes.max()}};
  for (const double percent : kPercentiles)
    sizes[fmt::format("p{:g}", percent)] = found.sizes.percentile(percent);
  Json histogram = Json::array();
  for (const auto& [from, count] : found.bins)
    histogram.push_back({{"from", from}, {"to", from == 0 ? 1 : from * 2}, {"samples", count}});
  Json out{{"kind", "corpus"},
           {"name", corpus.name},
           {"root", corpus.tier.root},
           {"recipe", manifest.facts().recipe},
           {"format", manifest.facts().format},
           {"codec", manifest.facts().codec},
           {"seed", manifest.facts().seed},
           {"settings", manifest.facts().settings},
           {"samples", manifest.samples()},
           {"objects", manifest.objects()},
           {"bytes", found.bytes},
           {"size_bytes", std::move(sizes)},
           {"histogram", std::move(histogram)},
           {"labels",
            {{"named", manifest.facts().label_names.size()},
             {"used", found.labels_used},
             {"fewest_samples", found.fewest_per_label},
             {"most_samples", found.most_per_label},
             {"unlabelled_samples", found.unlabelled_samples}}},
           {"checksums", manifest.facts().checksums},
           {"manifest_bytes", manifest.bytes().size()},
           {"checksum", manifest.checksum()}};
  if (found.samples_in_forms > 0)
    out["stored_forms"] = {{"samples", found.samples_in_forms},
                           {"bytes", found.bytes_in_forms},
                           {"fetched_bytes", found.fetched_bytes}};
  if (corpus.scan) out["scan"] = scan_json(*corpus.scan);
  if (corpus.scan && !corpus.scan->array.empty())
    out["array"] = corpus.scan->array_names_differ ? Json() : Json(corpus.scan->array);
  if (corpus.scan) out["extensions"] = count_extensions(manifest);
  if (content) out["content"] = content_json(*content);
  if (bad)
    out["bad"] = {{"checked", manifest.samples() - bad->unchecked()},
                  {"samples", bad->samples()},
                  {"objects", bad->objects()},
                  {"unchecked", bad->unchecked()}};
  return out;
}

std::string describe_origin(const ManifestFacts& facts) {
  if (facts.recipe == "scan") return "scanned folder";
  std::string text = fmt::format("generate {}, seed {}", facts.recipe, facts.seed);
  for (const auto& [key, value] : facts.settings) text += fmt::format(", {}={}", key, value);
  return text;
}

// A text about the labels. `from_folders` is the number of samples whose label is the name of their folder.
std::string describe_labels(const ManifestFacts& facts, const Description& found, uint64_t from_folders,
                            const Output& output) {
  if (found.labels_used == 0) return "none";
  const std::string most = count_of(found.most_per_label, "sample", output);
  std::string text = found.fewest_per_label == found.most_per_label
                         ? fmt::format("{}, {} each", format_count(found.labels_used, output), most)
                         : fmt::format("{}, {} to {} each", format_count(found.labels_used, output),
                                       format_count(found.fewest_per_label, output), most);
  if (facts.label_names.size() > found.labels_used)
    text += fmt::format("; {} without samples",
                        format_count(facts.label_names.size() - found.labels_used, output));
  if (found.unlabelled_samples > 0)
    text += fmt::format("; {} without a label", count_of(found.unlabelled_samples, "sample", output));
  if (from_folders > 0) text += fmt::format("; by folder name: {}", format_count(from_folders, output));
  return text;
}

void print_table(const Corpus& corpus, const Description& found, const Output& output) {
  const Manifest& manifest = corpus.manifest;
  const uint64_t links = corpus.scan ? corpus.scan->linked_objects : 0;
  const auto bytes = [&](double count) { return format_bytes(count, output); };
  Table facts({{"corpus", Align::left}, {printable(corpus.name), Align::left}});
  facts.row({"where", fmt::format("{} ({}, tier {})", printable(corpus.tier.root), corpus.tier.backend_name,
                                  corpus.tier.name)});
  facts.row({"source", describe_origin(manifest.facts())});
  facts.row(
      {"samples",
       fmt::format("{} {} in {} ({}{})", format_count(manifest.samples(), output), manifest.facts().codec,
                   count_of(manifest.objects(), "object", output), manifest.facts().format,
                   links == 0 ? "" : fmt::format("; by link: {}", format_count(links, output)))});
  if (corpus.scan) facts.row({"extensions", extensions_text(count_extensions(manifest), output)});
  facts.row(
      {"bytes", fmt::format("{} ({})", bytes(double(found.bytes)), count_of(found.bytes, "byte", output))});
  if (found.samples_in_forms > 0)
    facts.row(
        {"stored",
         fmt::format("{0} in compressed streams or chunks; on average, reading {2} of sample fetches {1}",
                     count_of(found.samples_in_forms, "sample", output),
                     bytes(double(found.fetched_bytes) / double(found.samples_in_forms)),
                     bytes(double(found.bytes_in_forms) / double(found.samples_in_forms)))});
  if (corpus.scan && !corpus.scan->array.empty())
    facts.row({"array", printable(corpus.scan->array) +
                            (corpus.scan->array_names_differ ? ", and others in other objects" : "")});
  facts.row({"labels", describe_labels(manifest.facts(), found,
                                       corpus.scan ? corpus.scan->folder_labelled_samples : 0, output)});
  facts.row({"checksums", !manifest.facts().checksums         ? "none"
                          : manifest.facts().object_checksums ? "CRC32C of every sample and of every object"
                                                              : "CRC32C of every sample"});
  facts.row({"manifest",
             fmt::format("{}, {:.1f} bytes per sample; checksum {}", bytes(double(manifest.bytes().size())),
                         double(manifest.bytes().size()) / double(manifest.samples()), manifest.checksum())});
  if (corpus.scan && !corpus.scan->text.empty()) facts.row({"not samples", printable(corpus.scan->text)});
  print_text(facts.text());

  std::vector<Table::Column> columns{{"", Align::left}, {"min"}};
  std::vector<std::string> cells{"sample size", bytes(double(found.sizes.min()))};
  for (const double percent : kPercentiles) {
    columns.push_back({fmt::format("p{:g}", percent)});
    cells.push_back(bytes(found.sizes.percentile(percent)));
  }
  columns.push_back({"max"});
  cells.push_back(bytes(double(found.sizes.max())));
  columns.push_back({"mean"});
  cells.push_back(bytes(found.sizes.mean()));
  Table sizes(std::move(columns));
  sizes.row(std::move(cells));
  print_text("\n" + sizes.text());

  uint64_t largest_count = 1;
  for (const auto& [from, count] : found.bins) largest_count = std::max(largest_count, count);
  Table histogram({{"size", Align::right}, {"samples"}, {"share"}, {"", Align::left}});
  for (const auto& [from, count] : found.bins) {
    if (count == 0) continue;
    const double share = double(count) / double(manifest.samples());
    const auto bar = size_t(40.0 * double(count) / double(largest_count));
    histogram.row({from == 0 ? "empty" : fmt::format("{} to {}", format_size(from), format_size(from * 2)),
                   format_count(count, output), format_percent(share), std::string(bar, '#')});
  }
  print_text("\n" + histogram.text());
}

TierSpec folder_spec(const std::filesystem::path& folder) {
  TierSpec spec;
  spec.path = spec.text = folder.string();
  return spec;
}

Result<void> check_names_file(std::string_view option, const std::filesystem::path& file) {
  std::error_code failed;
  if (file.has_filename() && !std::filesystem::is_directory(file, failed)) return success();
  return make_error(Errc::invalid_argument, "--{} names a file, not the folder '{}'", option, file.string());
}

// Refuses to write the manifest of a folder with an unfinished data set or copy, whose objects may be
// missing. With a manifest, the folder would be a corpus, and generate and copy would not continue with it.
Result<void> check_is_finished(const std::string& file) {
  std::error_code failed;
  const std::filesystem::path path(file);
  const auto folder = std::filesystem::canonical(path.has_parent_path() ? path.parent_path() : ".", failed);
  const auto full_path = folder / path.filename();
  if (failed || !full_path.native().ends_with(fmt::format("/{}", kManifestName))) return success();
  const auto root = full_path.parent_path().parent_path();
  for (const std::string_view name : {kGenerationStateName, kCopyingName}) {
    if (!std::filesystem::exists(root / name, failed)) continue;
    PENSTOCK_ASSIGN(Tier tier, open_tier(folder_spec(root)));
    const std::string unfinished = finish_advice(tier);
    return make_error(
        Errc::invalid_argument, "if the existing objects are the whole data set, remove '{}' first; '{}' {}",
        (root / name).native(), root.native(), unfinished.empty() ? "is unfinished" : unfinished);
  }
  return success();
}

// Refuses to replace a file that is no manifest, because it is the user's data. A damaged manifest may be
// replaced; it is recognized by its name or by its first bytes. An empty file may be replaced too.
Result<void> check_replaceable(const std::string& file) {
  std::error_code failed;
  const std::filesystem::path path(file);
  const auto status = std::filesystem::status(path, failed);
  if (!std::filesystem::exists(status)) return success();
  if (std::filesystem::is_regular_file(status)) {
    if (std::filesystem::absolute(path, failed)
            .lexically_normal()
            .native()
            .ends_with(fmt::format("/{}", kManifestName)))
      return success();
    std::ifstream existing(path, std::ios::binary);
    if (!existing) return errno_error(errno, "--save would replace a file that cannot be read:", file);
    std::array<char, manifest_layout::kMagic.size()> begin{};
    existing.read(begin.data(), begin.size());
    if (existing.gcount() == 0 || begin == manifest_layout::kMagic) return success();
  }
  return make_error(
      Errc::invalid_argument,
      "'{}' exists and is not a manifest, and --save replaces only manifests: name another file", file);
}

// Refuses to replace an object of the corpus. check_replaceable() does not notice an object that is empty, or
// that is itself a manifest.
Result<void> check_is_no_object(Corpus& corpus, const std::string& file, std::string_view option) {
  const auto root = corpus.tier.backend->native_path("");
  std::error_code failed;
  const std::filesystem::path path(file);
  if (!root || !std::filesystem::exists(path, failed)) return success();
  const auto folder = std::filesystem::canonical(path.has_parent_path() ? path.parent_path() : ".", failed);
  if (failed) return success();
  const auto real_root = std::filesystem::canonical(*root, failed);
  const std::string full_path = (folder / path.filename()).native();
  const std::string root_prefix = (real_root / "").native();
  if (failed || !full_path.starts_with(root_prefix)) return success();
  const std::string_view name = std::string_view(full_path).substr(root_prefix.size());
  std::string scratch;
  for (uint64_t i = 0; i < corpus.manifest.objects(); ++i)
    if (corpus.manifest.object_name(i, scratch) == name)
      return make_error(
          Errc::invalid_argument,
          "'{}' is an object of the data set, and --{} does not replace those: name a file outside '{}'",
          file, option, corpus.tier.root);
  return success();
}

// Refuses a --save that would lose facts. A manifest of generated data must not be replaced by one of foreign
// data. A manifest with checksums must not be replaced by one without. A damaged manifest is not protected,
// because its facts cannot be read.
Result<void> check_save(const Options& options) {
  if (!options.given("save")) return success();
  const std::string& file = options.text("save");
  PENSTOCK_TRY(check_names_file("save", file));
  PENSTOCK_TRY(check_replaceable(file));
  PENSTOCK_TRY(check_is_finished(file));
  const auto existing = Manifest::open(file);
  if (existing.ok() && existing->facts().recipe != "scan" && existing->check().ok())
    return make_error(Errc::invalid_argument,
                      "'{}' is the manifest of a data set of recipe '{}' with seed {}, and --save would lose "
                      "both: name another file, or remove it first",
                      file, existing->facts().recipe, existing->facts().seed);
  if (options.flag("checksum") || !existing.ok() || !existing->facts().checksums) return success();
  return make_error(Errc::already_exists,
                    "'{}' is a manifest with checksums, and --save without --checksum would lose them: add "
                    "--checksum, or name another file",
                    file);
}

// Refuses to replace a manifest by one without the damaged objects: verify could then not report them.
Result<void> check_nothing_left_out(const Corpus& corpus, const std::string& file) {
  if (!corpus.scan || corpus.scan->unreadable_objects == 0 || !std::filesystem::exists(file))
    return success();
  return make_error(Errc::already_exists,
                    "'{}' exists, and the new manifest would lack the {} that could not be read: repair or "
                    "remove them, or name another file",
                    file, count_of(corpus.scan->unreadable_objects, "object"));
}

Result<void> save(const Manifest& manifest, const std::filesystem::path& file) {
  PENSTOCK_ASSIGN(const Tier tier, open_tier(folder_spec(file.has_parent_path() ? file.parent_path() : ".")));
  PENSTOCK_TRY(
      put_object(*tier.backend, file.filename().string(), manifest.bytes(), Durability::file_and_name));
  note(fmt::format("the manifest is in '{}'", file.string()));
  return success();
}

Result<int> run_describe(const CommandContext& context) {
  const Options& options = context.options;
  const bool scan = options.flag("scan");
  for (const char* name : {"samples", "seed"})
    if (!options.flag("content") && options.given(name))
      return make_error(Errc::invalid_argument, "--{} goes with --content", name);
  for (const char* name : {"checksum", "save"})
    if (!scan && options.given(name))
      return make_error(Errc::invalid_argument,
                        "--{} goes with --scan (to check a corpus that has a manifest: penstock verify)",
                        name);
  PENSTOCK_TRY(check_save(options));
  if (options.given("list-bad")) {
    PENSTOCK_TRY(check_names_file("list-bad", options.text("list-bad")));
    PENSTOCK_TRY(BadList::check_file(options.text("list-bad")));
  }
  PENSTOCK_TRY(check_field_option(options));
  CorpusRequest request = corpus_request(options);
  request.add_checksums = options.flag("checksum");
  request.threads = threads_of(context);
  request.progress = context.output.progress;
  request.named_tiers = context.named_tiers;
  request.log = note;
  std::optional<BadList> bad;
  if (options.given("list-bad")) {
    bad.emplace();
    request.on_unreadable_object = [&](std::string_view object, const Error& why) {
      bad->add_object(object, why);
    };
  }
  Result<Corpus> opened = open_corpus(context.positionals[0], request);
  // If no object can be read, the list still names all of them.
  if (!opened.ok() && bad && bad->objects() > 0) PENSTOCK_TRY(bad->write(options.text("list-bad")));
  PENSTOCK_ASSIGN(Corpus corpus, std::move(opened));
  if (bad) {
    PENSTOCK_TRY(check_is_no_object(corpus, options.text("list-bad"), "list-bad"));
    PENSTOCK_TRY(bad->add_samples(*corpus.tier.backend, corpus.manifest, threads_of(context),
                                  context.output.progress));
    PENSTOCK_TRY(bad->write(options.text("list-bad")));
    if (bad->unchecked() > 0)
      warn(fmt::format("{} could not be checked here; the first: {}", count_of(bad->unchecked(), "sample"),
                       bad->first_unchecked()));
  }
  PENSTOCK_ASSIGN(const Description found, inspect(corpus.manifest));
  if (options.given("save")) {
    PENSTOCK_TRY(check_is_no_object(corpus, options.text("save"), "save"));
    PENSTOCK_TRY(check_nothing_left_out(corpus, options.text("save")));
    PENSTOCK_TRY(save(corpus.manifest, options.text("save")));
  }
  std::optional<Content> content;
  if (options.flag("content")) {
    const auto samples = options.has("samples") ? uint64_t(options.integer("samples")) : uint64_t{0};
    if (samples > corpus.manifest.samples())
      note(fmt::format("{} has {}: all of them are read", printable(corpus.name),
                       count_of(corpus.manifest.samples(), "sample")));
    PENSTOCK_ASSIGN(content, measure_content(*corpus.tier.backend, corpus.manifest,
                                             {.samples = samples,
                                              .seed = uint64_t(options.integer("seed")),
                                              .progress = context.output.progress}));
    if (content->unreadable_samples > 0)
      warn(fmt::format(
          "{} of {} could not be read and were skipped; the first: {}",
          format_count(content->unreadable_samples),
          count_of(content->samples + content->empty_samples + content->unreadable_samples, "sample"),
          content->first_failure));
  }
  if (context.output.json) {
    print_json(to_json(corpus, found, content, bad));
    return 0;
  }
  print_table(corpus, found, context.output);
  if (bad) print_text("\n" + bad->summary(corpus.manifest.samples(), options.text("list-bad")));
  if (content) print_text("\n" + content_text(*content, corpus.manifest.samples(), context.output));
  return 0;
}

}  // namespace

const CommandInfo command_describe{
    .name = "describe",
    .summary = "describe a corpus or any folder: sample count, bytes, sizes, formats, labels",
    .options = kDescribeOptions,
    .run = run_describe,
    .synopsis = "penstock describe CORPUS|DIR [--scan] [--checksum] [--content] [options]",
    .examples =
        {"penstock describe corpora/imagenet --content       # reads a corpus made by `generate` or `copy`",
         "penstock describe /data/photos --scan --checksum --save photos.manifest   # any folder"},
    .arguments = "CORPUS",
};

}  // namespace penstock

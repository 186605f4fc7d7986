#include "benchmarks/read/read_subject.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "benchmarks/read/block_manifest.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/corpus/tier_copy.hpp"
#include "datagen/format/sample_opener.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"

namespace penstock {
namespace {

Result<void> check_collective(const Tier& tier) {
  if (tier.backend->caps().collective_reads) return success();
  return make_error(Errc::invalid_argument,
                    "tier '{}' has no collective reads: only the back end mpiio has (mpiio:PATH)", tier.name);
}

Result<void> check_codec(const Corpus& corpus) {
  PENSTOCK_TRY(SampleOpener::make(corpus.manifest));
  const std::string_view codec = payload_codec(corpus.manifest.facts().codec);
  if (codec == "png") return png_available();
  if (codec.empty() || codec == "mixed" || codec == "jpeg") return success();
  // Accept every corpus of `scan`: it calls all codecs 'raw', because a scan knows only file names. The
  // decoder fails later if the bytes are not pictures.
  if (corpus.manifest.facts().recipe == "scan") return success();
  return make_error(Errc::invalid_argument,
                    "'{}' contains {} samples, and --decode full supports only jpeg and png: leave it out to "
                    "read without decoding",
                    corpus.name, codec);
}

}  // namespace

std::vector<Tier*> ReadSubject::tiers(bool with_corpus_tier) {
  std::vector<Tier*> measured_tiers;
  if (with_corpus_tier) measured_tiers.push_back(&corpus.tier);
  for (Tier& tier : given_tiers) measured_tiers.push_back(&tier);
  return measured_tiers;
}

Result<ReadSubject> open_subject(const CommandContext& context, const ReadOptions& requested) {
  const Options& options = context.options;
  const std::string& corpus_path = context.positionals.front();
  PENSTOCK_TRY(check_field_option(options));
  CorpusRequest request = corpus_request(options);
  request.named_tiers = context.named_tiers;
  request.log = context.log;
  PENSTOCK_ASSIGN(Corpus corpus, open_corpus(corpus_path, request));
  if (options.has("block")) {
    if (requested.decode || requested.verify)
      return make_error(Errc::invalid_argument,
                        "--block reads parts of objects, which cannot be decoded or verified: leave out "
                        "--decode and --verify");
    PENSTOCK_ASSIGN(corpus.manifest, block_manifest(corpus.manifest, options.size("block")));
  }
  if (requested.decode) PENSTOCK_TRY(check_codec(corpus));
  PENSTOCK_ASSIGN(SampleList samples, corpus_samples(corpus.manifest));
  if (requested.verify && !corpus.manifest.facts().checksums)
    return make_error(Errc::unsupported,
                      "'{}' has no checksums to verify: leave out --verify, or make a FILE for --manifest: "
                      "penstock describe {} --checksum --save FILE",
                      corpus_path,
                      corpus.scan ? corpus.arguments : fmt::format("{} --scan", shell_word(corpus_path)));
  if (options.flag("only-tiers") && options.texts("tier").empty())
    return make_error(Errc::invalid_argument, "--only-tiers needs a --tier to measure");
  if (options.flag("only-tiers") && options.given("overlay"))
    return make_error(Errc::invalid_argument,
                      "--overlay replaces the corpus's own tier, and --only-tiers does not measure it: leave "
                      "out one of them");
  if (options.given("overlay")) PENSTOCK_TRY(apply_overlay(corpus, options.text("overlay")));
  PENSTOCK_ASSIGN(std::vector<Tier> given_tiers,
                  open_tiers(options.texts("tier"), corpus.tier.name, context.named_tiers));
  if (requested.collective) {
    if (!options.flag("only-tiers")) PENSTOCK_TRY(check_collective(corpus.tier));
    for (const Tier& tier : given_tiers) PENSTOCK_TRY(check_collective(tier));
  }
  PENSTOCK_TRY(check_cache_request(corpus.tier, requested.cache));
  for (const Tier& tier : given_tiers) PENSTOCK_TRY(check_cache_request(tier, requested.cache));
  if (!requested.skip_errors)
    for (Tier& tier : given_tiers)
      PENSTOCK_TRY(
          check_copy(tier, corpus, samples.objects(), [&](uint32_t object) { return samples.name(object); }));
  return ReadSubject{std::move(corpus), std::move(given_tiers), std::move(samples)};
}

}  // namespace penstock

#include "io_backends/configuration/yaml_document.hpp"

#include <yaml-cpp/eventhandler.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

namespace penstock {
namespace {

constexpr int kDeepestValue = 32;
constexpr int kMostValues = 100'000;
constexpr const char* kMergeKey = "<<";

Result<void> resolve_keys(YAML::Node at, int& values_left, int depth) {
  if (--values_left < 0 || depth > kDeepestValue)
    return make_error(Errc::invalid_argument, "it has too many values, or values that are nested too deeply");
  if (at.IsSequence())
    for (YAML::Node item : at) PENSTOCK_TRY(resolve_keys(item, values_left, depth + 1));
  if (!at.IsMap()) return success();
  std::set<std::string> names;
  for (const auto& entry : at) {
    const auto name = entry.first.as<std::string>();
    if (!names.insert(name).second)
      return make_error(Errc::invalid_argument, "it has the key '" + name + "' twice in one mapping");
    PENSTOCK_TRY(resolve_keys(entry.second, values_left, depth + 1));
  }
  const YAML::Node merged = std::as_const(at)[kMergeKey];
  if (!merged) return success();
  at.remove(kMergeKey);
  for (const YAML::Node& source : merged.IsSequence() ? std::vector<YAML::Node>(merged.begin(), merged.end())
                                                      : std::vector<YAML::Node>{merged}) {
    if (!source.IsMap())
      return make_error(Errc::invalid_argument, "its merge key '<<' has a value that is not a mapping");
    for (const auto& entry : source)
      if (names.insert(entry.first.as<std::string>()).second)
        at[entry.first.as<std::string>()] = YAML::Clone(entry.second);
  }
  return success();
}

// Finds out whether a document has a value, and where it begins.
class FirstValue : public YAML::EventHandler {
 public:
  std::optional<YAML::Mark> mark;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& at, YAML::anchor_t) override { keep_first(at); }
  void OnScalar(const YAML::Mark& at, const std::string&, YAML::anchor_t, const std::string&) override {
    keep_first(at);
  }
  void OnSequenceStart(const YAML::Mark& at, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    keep_first(at);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& at, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    keep_first(at);
  }
  void OnMapEnd() override {}

 private:
  void keep_first(const YAML::Mark& at) {
    if (!mark) mark = at;
  }
};

// An end mark or a separator after the last document begins one without a value. yaml-cpp takes some
// malformed texts for endlessly many of them.
constexpr int kMostDocuments = 1000;

}  // namespace

YAML::Node parse_yaml(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  FirstValue first;
  for (int documents = 0; parser.HandleNextDocument(first); ++documents) {
    if (documents == kMostDocuments)
      throw YAML::Exception(YAML::Mark::null_mark(), "this is not a YAML document");
    if (documents > 0 && first.mark)
      throw YAML::Exception(*first.mark,
                            "a second document starts here (after '---'): move it to a separate file");
    first.mark.reset();
  }
  return YAML::Load(text);
}

YAML::Node load_yaml(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw YAML::BadFile(file.string());
  return parse_yaml(text);
}

Result<void> resolve_yaml_keys(YAML::Node node) {
  int values_left = kMostValues;
  return resolve_keys(std::move(node), values_left, 0);
}

}  // namespace penstock

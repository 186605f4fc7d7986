#include "datagen/staging/staged_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "datagen/staging/sealed_object.hpp"

namespace penstock {
namespace {

constexpr std::string_view kStagedKind = "staged files";
constexpr uint64_t kStagedFormat = 1;

std::string checked_name(const Json& json) {
  auto name = json.get<std::string>();
  if (!check_object_name(name).ok()) throw std::invalid_argument("a name that is not an object's");
  return name;
}

StagedState state_from_json(const Json& json) {
  StagedState state;
  state.plan_id = json.at("plan").get<std::string>();
  for (const Json& name : json.at("found")) state.earlier_files.push_back(checked_name(name));
  if (!std::is_sorted(state.earlier_files.begin(), state.earlier_files.end()))
    throw std::invalid_argument("names not in order");
  for (const Json& name : json.at("folders")) state.new_folders.push_back(checked_name(name));
  for (const Json& farm : json.at("farms")) {
    state.link_farms.push_back(farm.get<std::string>());
    if (!state.link_farms.back().starts_with('/')) throw std::invalid_argument("a link farm without a path");
  }
  for (const Json& one : json.at("copied")) {
    PublishedObject copy{.bytes = count_member(one, "bytes")};
    const uint64_t crc = count_member(one, "crc32c");
    if (crc > UINT32_MAX) throw std::invalid_argument("'crc32c' is not a checksum");
    copy.crc32c = uint32_t(crc);
    state.copied.emplace(checked_name(one.at("name")), copy);
  }
  state.may_have_unlisted_copies = json.value("unsure", true);
  return state;
}

}  // namespace

bool StagedState::is_earlier_file(const std::string& name) const {
  return std::binary_search(earlier_files.begin(), earlier_files.end(), name);
}

void StagedState::remove_earlier_file(const std::string& name) {
  const auto at = std::lower_bound(earlier_files.begin(), earlier_files.end(), name);
  if (at != earlier_files.end() && *at == name) earlier_files.erase(at);
}

std::string staged_state_text(const StagedState& state) {
  Json copied = Json::array();
  for (const auto& [name, copy] : state.copied)
    copied.push_back({{"name", name}, {"bytes", copy.bytes}, {"crc32c", copy.crc32c}});
  return sealed_object_text(kStagedKind, kStagedFormat,
                            {{"plan", state.plan_id},
                             {"found", state.earlier_files},
                             {"folders", state.new_folders},
                             {"farms", state.link_farms},
                             {"copied", std::move(copied)},
                             {"unsure", state.may_have_unlisted_copies}});
}

Result<StagedState> parse_staged_state(std::string_view text, std::string_view where) {
  PENSTOCK_ASSIGN(const Json json, parse_sealed_object(kStagedKind, kStagedFormat, text, where));
  try {
    return state_from_json(json);
  } catch (const std::exception& problem) {
    return make_error(Errc::corrupt, "'{}' is not a list of {} ({})", where, kStagedKind, problem.what());
  }
}

std::string staged_state_name(std::string_view plan_id) {
  return fmt::format("{}/{}.json", kStagedFolder, plan_id);
}

std::string staged_lock_name(std::string_view plan_id) {
  return fmt::format("{}/{}.lock", kStagedFolder, plan_id);
}

Result<StagedState> load_staged_state(Backend& fast, std::string_view plan_id) {
  const std::string name = staged_state_name(plan_id);
  PENSTOCK_ASSIGN(const std::string text, read_text(fast, name, kMostSealedBytes));
  PENSTOCK_ASSIGN(StagedState state, parse_staged_state(text, name));
  if (state.plan_id != plan_id)
    return make_error(Errc::corrupt, "'{}' belongs to another plan, {}", name, state.plan_id);
  return state;
}

Result<void> save_staged_state(Backend& fast, const StagedState& state) {
  const std::string text = staged_state_text(state);
  return put_object(fast, staged_state_name(state.plan_id), std::as_bytes(std::span(text)),
                    Durability::file_and_name);
}

}  // namespace penstock

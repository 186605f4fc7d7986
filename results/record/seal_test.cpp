#include <gtest/gtest.h>

#include "results/record/sealed_runs.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

std::string line_of(size_t line, size_t of) {
  Record record;
  record.id = "a-0";
  record.started = "2026-11-20T09:30:00Z";
  record.command = "read";
  return seal_line(record_line(record), line, of);
}

TEST(Seal, IsTheLastMemberAndChangesNothingElse) {
  const std::string line = line_of(2, 3);
  const Json json = Json::parse(line);
  EXPECT_EQ(json.at("seal").at("line"), 2);
  EXPECT_EQ(json.at("seal").at("of"), 3);
  EXPECT_EQ(json.at("seal").at("crc32c").get<std::string>().size(), 8U);
  const auto parsed = parse_sealed_line(line);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(parsed->seal->line, 2U);
  EXPECT_EQ(record_line(parsed->record).find("seal"), std::string::npos);
}

TEST(Seal, EveryFlippedBitIsFound) {
  const std::string whole = line_of(1, 1);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string line = whole;
    line[bit / 8] = char(line[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(parse_sealed_line(line).ok()) << "bit " << bit << ": " << line;
  }
}

TEST(Seal, AReformattedOrChangedLineIsRefused) {
  std::string line = line_of(1, 1);
  Json json = Json::parse(line);
  json["reason"] = "a better one";
  for (const std::string& text : {json.dump(), Json::parse(line).dump(2)}) {
    const auto parsed = parse_sealed_line(text);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().code, Errc::corrupt);
    EXPECT_NE(parsed.error().message().find("checksum"), std::string::npos);
  }
  json.erase("seal");
  EXPECT_TRUE(parse_sealed_line(json.dump()).ok());
  EXPECT_TRUE(parse_sealed_line(line + " \r").ok());
}

TEST(Seal, InvalidLineNumbersAreRefused) {
  for (const auto& [line, of] : {std::pair<size_t, size_t>(0, 1), {2, 1}, {0, 0}})
    EXPECT_FALSE(parse_sealed_line(line_of(line, of)).ok());
}

// The texts that SealedRuns returns for lines with these seals, and at the end of the file. {0, 0} is a line
// that could not be read.
std::vector<std::string> missing_line_texts(std::initializer_list<SealedPosition> seals) {
  SealedRuns runs;
  std::vector<std::string> texts;
  for (const SealedPosition& seal : seals) {
    if (seal.line == 0)
      runs.skip_unreadable_line();
    else if (std::string missing = runs.next_line(seal); !missing.empty())
      texts.push_back(std::move(missing));
  }
  if (std::string missing = runs.end_of_file(); !missing.empty()) texts.push_back(std::move(missing));
  return texts;
}

TEST(SealedRuns, NameTheMissingLines) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(missing_line_texts({}), Texts{});
  EXPECT_EQ(missing_line_texts({{1, 3}, {2, 3}, {3, 3}}), Texts{});
  EXPECT_EQ(missing_line_texts({{1, 3}, {2, 3}}), Texts{"line 3 of 3 of a run is missing"});
  EXPECT_EQ(missing_line_texts({{3, 3}}), Texts{"lines 1 to 2 of 3 of a run are missing"});
  EXPECT_EQ(missing_line_texts({{1, 4}, {4, 4}}), Texts{"lines 2 to 3 of 4 of a run are missing"});
}

TEST(SealedRuns, CanFollowEachOtherInAFile) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(missing_line_texts({{1, 2}, {2, 2}, {1, 1}, {1, 2}, {2, 2}}), Texts{});
  EXPECT_EQ(missing_line_texts({{1, 2}, {1, 1}}), Texts{"line 2 of 2 of a run is missing"});
  EXPECT_EQ(missing_line_texts({{1, 3}, {2, 3}, {2, 3}, {3, 3}}),
            Texts{"line 3 of 3 of a run is missing; line 1 of 3 of a run is missing"});
}

TEST(SealedRuns, AnUnreadableLineIsNotReportedAsMissing) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(missing_line_texts({{1, 3}, {0, 0}, {3, 3}}), Texts{});
  EXPECT_EQ(missing_line_texts({{0, 0}, {2, 3}, {3, 3}}), Texts{});
  EXPECT_EQ(missing_line_texts({{1, 3}, {2, 3}, {0, 0}}), Texts{});
  EXPECT_EQ(missing_line_texts({{1, 2}, {0, 0}, {1, 2}, {2, 2}}), Texts{});
}

}  // namespace
}  // namespace penstock

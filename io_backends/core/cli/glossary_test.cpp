#include "io_backends/core/cli/glossary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

std::string first_name(std::string_view word) {
  const std::vector<GlossaryTerm> terms = find_terms(word);
  return terms.empty() ? "" : terms.front().name;
}

TEST(Glossary, RowsOfTablesAreTerms) {
  const auto terms = parse_glossary(
      "# Words\n\n| term | meaning |\n|---|---|\n| tier | Where `data` is, see [here](x.md). |\n"
      "| a\\|b | *Two* parts. |\n\ntext | of no table |\n\n| one | two | three |\n|:--|---|--:|\n| 1 | 2 | 3 "
      "|\n");
  ASSERT_EQ(terms.size(), 2U);
  EXPECT_EQ(terms[0].name, "tier");
  EXPECT_EQ(terms[0].meaning, "Where data is, see here.");
  EXPECT_EQ(terms[1].name, "a|b");
  EXPECT_EQ(terms[1].meaning, "Two parts.");
  EXPECT_TRUE(parse_glossary("").empty());
  EXPECT_TRUE(parse_glossary("| term | meaning |\n").empty());
}

TEST(Glossary, OfTheProgramIsComplete) {
  std::set<std::string> names;
  for (const GlossaryTerm& term : glossary()) {
    EXPECT_TRUE(names.insert(term.name).second) << term.name;
    EXPECT_GT(term.meaning.size(), 10U) << term.name;
    EXPECT_EQ(first_name(term.name), term.name) << "each term is found by its full name";
  }
  EXPECT_GT(names.size(), 50U);
}

TEST(Glossary, FindsATermHoweverItIsWritten) {
  EXPECT_EQ(first_name("epoch"), "epoch");
  EXPECT_EQ(first_name("Epochs"), "epoch");
  EXPECT_EQ(first_name("batches"), "batch");
  EXPECT_EQ(first_name("corpora"), "corpus");
  EXPECT_EQ(first_name("corpus"), "corpus");
  EXPECT_EQ(first_name("queue-depth"), "queue depth");
  EXPECT_EQ(first_name("QUEUE DEPTHS"), "queue depth");
  EXPECT_EQ(first_name("AU"), "accelerator utilization (AU)");
  EXPECT_EQ(first_name("accelerator utilization"), "accelerator utilization (AU)");
  EXPECT_EQ(first_name("p99"), "percentile");
  EXPECT_EQ(first_name("p99.9"), "percentile");
  EXPECT_EQ(first_name("o_direct"), "direct I/O");
  EXPECT_EQ(first_name("p"), "");
  EXPECT_EQ(first_name(""), "");
  EXPECT_EQ(first_name("nonsense"), "");
}

TEST(Glossary, SynonymsLeadToTerms) {
  for (const char* word : {"ci", "dataset", "data set", "gpu", "iodepth", "numjobs", "prefetch", "qd",
                           "quantile", "response time", "utilization"})
    EXPECT_NE(first_name(word), "") << word;
}

TEST(Glossary, CompletionsFindTheirTerms) {
  for (const std::string& word : terms_to_complete()) {
    EXPECT_EQ(word.find(' '), std::string::npos) << word;
    EXPECT_NE(first_name(word), "") << word;
  }
}

TEST(Glossary, AnUnknownTermGetsTheNearest) {
  const Error error = unknown_term("percentil", {"read", "report"});
  EXPECT_EQ(error.code, Errc::invalid_argument);
  EXPECT_NE(error.what.find("the nearest: percentile"), std::string::npos) << error.what;
  EXPECT_NE(unknown_term("reprot", {"read", "report"}).what.find("report"), std::string::npos);
  EXPECT_NE(unknown_term("depth", {}).what.find("queue depth"), std::string::npos);
  EXPECT_EQ(unknown_term("zzzzzzzz", {"read"}).what.find("nearest"), std::string::npos);
}

}  // namespace
}  // namespace penstock

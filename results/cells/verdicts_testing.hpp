// For tests only: makes records with spread, and finds the sentences of one kind, such as "scaling".
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/cells/verdicts.hpp"
#include "results/record/records_testing.hpp"

namespace penstock {

inline Record noisy(Record record, double apart) {
  std::vector<double>& repeats = record.metrics["payload_bytes_per_s"].samples;
  const double middle = repeats[1];
  repeats = {middle * (1 - apart / 2), middle, middle * (1 + apart / 2)};
  return record;
}

inline std::vector<std::string> sentence_texts(const std::vector<Record>& records, const std::string& kind,
                                               Output output = {}) {
  std::vector<std::string> texts;
  for (const Sentence& sentence : sentences(records, output))
    if (sentence.kind == kind) texts.push_back(sentence.text);
  return texts;
}

inline std::string only_sentence(const std::vector<Record>& records, const std::string& kind,
                                 Output output = {}) {
  const auto texts = sentence_texts(records, kind, output);
  EXPECT_EQ(texts.size(), 1U) << kind;
  return texts.empty() ? "" : texts.front();
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace penstock

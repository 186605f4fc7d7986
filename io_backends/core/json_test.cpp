#include "io_backends/core/json.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace penstock {
namespace {

TEST(Json, KeepsTheOrderOfMembersAndTheKindsOfNumbers) {
  const Json json{{"z", 1}, {"a", 2U}, {"m", 1.0}, {"t", true}, {"n", nullptr}, {"s", "x"}};
  EXPECT_EQ(json.dump(), R"({"z":1,"a":2,"m":1.0,"t":true,"n":null,"s":"x"})");
  EXPECT_TRUE(json["z"].is_number_integer());
  EXPECT_FALSE(json["z"].is_number_unsigned());
  EXPECT_TRUE(json["a"].is_number_unsigned());
  EXPECT_TRUE(json["m"].is_number_float());
  EXPECT_EQ(Json(std::numeric_limits<uint64_t>::max()).dump(), "18446744073709551615");
  EXPECT_EQ(Json(std::numeric_limits<int64_t>::min()).dump(), "-9223372036854775808");
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null");
}

TEST(Json, BracesMakeAnObjectOnlyOfPairsThatBeginWithText) {
  EXPECT_EQ(Json({{"a", 1}, {"b", 2}}).dump(), R"({"a":1,"b":2})");
  EXPECT_EQ(Json({{1, 2}, {"b", 2}}).dump(), R"([[1,2],["b",2]])");
  EXPECT_EQ(Json::array({"a", 1}).dump(), R"(["a",1])");
  EXPECT_EQ(Json::array({{"a", 1}}).dump(), R"([["a",1]])");
  EXPECT_EQ(Json::object({{"a", Json::array()}}).dump(), R"({"a":[]})");
  EXPECT_EQ(Json::object().dump(), "{}");
}

TEST(Json, AddsReplacesAndErasesMembers) {
  Json json;
  EXPECT_EQ(json.size(), 0U);
  json["a"]["b"] = 1;
  json["c"] = {1, 2};
  json["a"]["b"] = 3;
  json["d"].push_back("x");
  EXPECT_EQ(json.dump(), R"({"a":{"b":3},"c":[1,2],"d":["x"]})");
  json.update({{"c", 4}, {"e", 5}});
  EXPECT_EQ(json.erase("a"), 1U);
  EXPECT_EQ(json.erase("a"), 0U);
  EXPECT_EQ(json.dump(), R"({"c":4,"d":["x"],"e":5})");
  EXPECT_EQ(json.find("a"), json.end());
  EXPECT_TRUE(json.contains("d"));
  EXPECT_EQ(json.value("c", 0), 4);
  EXPECT_EQ(json.value("a", "none"), "none");
  std::string names;
  for (const auto& [name, value] : json.items()) names += name + "=" + value.dump() + " ";
  EXPECT_EQ(names, R"(c=4 d=["x"] e=5 )");
}

TEST(Json, TakesAPartOfItself) {
  Json json = Json::parse(R"({"a":{"b":[1,{"c":2}]}})");
  json.update(json["a"]);
  EXPECT_EQ(json.dump(), R"({"a":{"b":[1,{"c":2}]},"b":[1,{"c":2}]})");
  json["b"].push_back(json["b"]);
  EXPECT_EQ(json["b"].dump(), R"([1,{"c":2},[1,{"c":2}]])");
  json["b"] = json["b"][2];
  EXPECT_EQ(json["b"].dump(), R"([1,{"c":2}])");
  json = json["a"];
  EXPECT_EQ(json.dump(), R"({"b":[1,{"c":2}]})");
  json = std::move(json["b"]);
  EXPECT_EQ(json.dump(), R"([1,{"c":2}])");
}

TEST(Json, GivesTheValuesOfItsTypes) {
  const Json json = Json::parse(R"({"v":[1,2.5,-3],"m":{"a":"b"},"i":7,"f":true})");
  EXPECT_EQ(json.at("v").get<std::vector<double>>(), (std::vector{1.0, 2.5, -3.0}));
  EXPECT_EQ((json.at("v").get<std::array<int, 3>>()), (std::array{1, 2, -3}));
  EXPECT_EQ((json.at("m").get<std::map<std::string, std::string>>()),
            (std::map<std::string, std::string>{{"a", "b"}}));
  EXPECT_EQ(json.at("i").get<uint8_t>(), 7);
  EXPECT_TRUE(json.at("f").get<bool>());
  EXPECT_EQ(Json(std::vector{1, 2}).dump(), "[1,2]");
  EXPECT_EQ(Json(std::map<std::string, int>{{"a", 1}}).dump(), R"({"a":1})");
  EXPECT_EQ(json["v"].front(), 1);
  EXPECT_EQ(json["v"].back(), -3);
}

TEST(Json, ThrowsWhereTheKindOrTheMemberIsAnother) {
  const Json json = Json::parse(R"({"v":[1],"s":"x","i":7})");
  EXPECT_THROW(json.at("w"), JsonError);
  EXPECT_THROW(json["w"], JsonError);
  EXPECT_THROW(json.at("v").at(1), JsonError);
  EXPECT_THROW(json.at("s").at("x"), JsonError);
  EXPECT_THROW(json.at("s").get<int>(), JsonError);
  EXPECT_THROW(json.at("i").get<std::string>(), JsonError);
  EXPECT_THROW(json.at("i").get<bool>(), JsonError);
  EXPECT_THROW(json.at("i").get<std::vector<int>>(), JsonError);
  EXPECT_THROW((json.at("v").get<std::array<int, 2>>()), JsonError);
  EXPECT_THROW(Json().get<double>(), JsonError);
  EXPECT_THROW(Json(1)["a"], JsonError);
  EXPECT_THROW(Json("x").push_back(1), JsonError);
  EXPECT_THROW(Json::array().front(), JsonError);
}

TEST(Json, ComparesNumbersByTheirValue) {
  EXPECT_EQ(Json(1), Json(1U));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_NE(Json(-1), Json(std::numeric_limits<uint64_t>::max()));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_NE(Json(1), Json("1"));
  EXPECT_EQ(Json::parse(R"({"a":[1,{"b":null}]})"), Json({{"a", Json::array({1U, Json{{"b", nullptr}}})}}));
  EXPECT_NE(Json::parse(R"({"a":1,"b":2})"), Json::parse(R"({"b":2,"a":1})"));
}

TEST(Json, SaysAtWhichByteATextIsNoJson) {
  const auto fault = [](const std::string& text) {
    try {
      return Json::parse(text).dump();
    } catch (const JsonError& error) {
      return std::to_string(error.byte) + ": " + error.what();
    }
  };
  EXPECT_EQ(fault("").substr(0, 3), "1: ");
  EXPECT_EQ(fault("{\"a\":1").substr(0, 3), "7: ");
  EXPECT_EQ(fault("[1] 2").substr(0, 3), "5: ");
  EXPECT_EQ(fault("[1e999]").substr(0, 3), "6: ");
  EXPECT_EQ(fault("\"\xff\"").substr(0, 3), "2: ");
  EXPECT_EQ(fault(R"({"a":1,"b":2,"a":3})"), R"({"a":3,"b":2})");  // the last counts
  EXPECT_FALSE(Json::try_parse("[").has_value());
}

TEST(Json, RefusesTextThatIsNestedTooDeeply) {
  const auto nested = [](size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(Json::parse(nested(Json::kMostDepth)).dump(), nested(Json::kMostDepth));
  EXPECT_THROW(Json::parse(nested(Json::kMostDepth + 1)), JsonError);
  EXPECT_THROW(Json::parse(nested(10'000'000)), JsonError);
  EXPECT_THROW(Json::from_cbor(std::vector<uint8_t>(10'000'000, 0x81)), JsonError);
}

TEST(Json, WritesNamesThatAreNoUtf8) {
  const Json json{{"n", "a\xff\xc3\xa9"}};
  EXPECT_THROW(json.dump(), JsonError);
  EXPECT_EQ(one_line(json), "{\"n\":\"a\xef\xbf\xbd\xc3\xa9\"}");
  EXPECT_EQ(ascii_line(json), R"({"n":"a\ufffd\u00e9"})");
  EXPECT_EQ(indented(Json{{"a", {1}}}, 1), "{\n \"a\": [\n  1\n ]\n}");
}

TEST(Json, SurvivesCbor) {
  const Json json{
      {"b", Json::binary({0, 255, 1})}, {"v", {1, -1, 2.5, "x", nullptr, false}}, {"o", Json::object()}};
  const Json back = Json::from_cbor(Json::to_cbor(json));
  EXPECT_EQ(back, json);
  EXPECT_EQ(back["b"].get_binary(), (Json::Bytes{0, 255, 1}));
  const Json::Bytes bytes = Json::to_cbor(json);
  for (size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_THROW(Json::from_cbor(std::span(bytes).first(cut)), JsonError) << cut;
}

}  // namespace
}  // namespace penstock

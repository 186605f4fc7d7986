// Tests the parsing of answers of object stores, correct and wrong ones.
#include "io_backends/s3/answers.hpp"

#include "io_backends/testing/testing.hpp"

namespace penstock::s3 {
namespace {

using namespace std::string_view_literals;

std::string listing(const std::string& inner) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3/\">" + inner +
         "</ListBucketResult>";
}

std::string complete(const std::string& inner) {
  return listing(inner + "<IsTruncated>false</IsTruncated>");
}

TEST(Answers, AListing) {
  const auto page = parse_listing(listing(
      "<Name>bucket</Name><Prefix>a/</Prefix><KeyCount>3</KeyCount><IsTruncated>true</IsTruncated>"
      "<Contents><Key>a/&lt;one&gt; &amp; &#x41;&#66;</Key><LastModified>x</LastModified><Size>12</Size>"
      "<Owner><ID>me</ID></Owner></Contents>\n  <Contents ><Size>0</Size><Key>a/two</Key></Contents >"
      "<CommonPrefixes><Prefix>a/b/</Prefix></CommonPrefixes><Empty/>"
      "<NextContinuationToken>to/ken==</NextContinuationToken><!-- <Contents> --><![CDATA[<x>]]>"));
  ASSERT_OK(page);
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[0].key, "a/<one> & AB");
  EXPECT_EQ(page->objects[0].bytes, 12U);
  EXPECT_EQ(page->objects[1].key, "a/two");
  EXPECT_EQ(page->prefixes, std::vector<std::string>{"a/b/"});
  EXPECT_EQ(page->next_token, "to/ken==");
}

TEST(Answers, EncodedNamesAreDecoded) {
  const std::string one =
      "<Contents><Key>a%0Ab+c%2Bd%20e</Key><Size>1</Size></Contents><IsTruncated>false</IsTruncated>";
  const auto encoded = parse_listing(listing(one + "<EncodingType>url</EncodingType>"));
  ASSERT_OK(encoded);
  EXPECT_EQ(encoded->objects[0].key, "a\nb c+d e");
  const auto plain = parse_listing(listing(one));
  ASSERT_OK(plain);
  EXPECT_EQ(plain->objects[0].key, "a%0Ab+c%2Bd%20e");
}

TEST(Answers, OtherTextIsACorruptListing) {
  const std::string deep = [] {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "<a>";
    return text;
  }();
  for (const std::string& xml :
       {std::string(),
        std::string("plain"),
        std::string("<html></html>"),
        std::string("<a><b></a></b>"),
        std::string("<a>"),
        std::string("</a>"),
        std::string("<>"),
        std::string("<"),
        std::string("<!--"),
        std::string("<![CDATA["),
        complete("&nbsp;"),
        complete("&#xffffffff;"),
        complete("& "),
        deep,
        complete("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
        complete("<Contents><Key>a</Key><Size>99999999999999999999999</Size></Contents>"),
        complete("<Contents><Key>a</Key><Size>1x</Size></Contents>"),
        listing("<IsTruncated>true</IsTruncated>"),
        listing("<Contents><Key>a</Key><Size>1</Size></Contents>"),
        complete("<Contents><Key>a</Key></Contents>"),
        complete("<Contents><Size>1</Size></Contents>"),
        complete("<Contents><Key>a</Key><Size>1</Size></Contents><Contents><Key>b</Key></Contents>"),
        listing("<IsTruncated>maybe</IsTruncated>"),
        listing("<IsTruncated></IsTruncated>"),
        complete("") + complete(""),
        complete("") + '\0',
        "Welcome " + complete("")})
    EXPECT_ERRC(Errc::corrupt, parse_listing(xml)) << xml.substr(0, 80);
}

TEST(Answers, Refusals) {
  const Refusal refusal = parse_refusal(
      "<Error><Code>AuthorizationHeaderMalformed</Code><Message>wrong</Message><Region>eu-west-1</Region></"
      "Error>");
  EXPECT_EQ(refusal.code, "AuthorizationHeaderMalformed");
  EXPECT_EQ(refusal.message, "wrong");
  EXPECT_EQ(refusal.region, "eu-west-1");
  EXPECT_EQ(parse_refusal("502 Bad Gateway").code, "");
  EXPECT_EQ(parse_refusal("<Error><Code>half").code, "");
  EXPECT_EQ(parse_refusal("<Error><Code>SlowDown</Code></Error>\0\0"sv).code, "SlowDown");
}

TEST(Answers, Results) {
  constexpr std::string_view kName = "CopyObjectResult";
  for (const std::string_view xml :
       {"<CopyObjectResult><ETag>x</ETag></CopyObjectResult>",
        " \n <?xml version=\"1.0\"?>\n<CopyObjectResult/>",
        "<CopyObjectResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"></CopyObjectResult>\n",
        "<CopyObjectResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'><Unknown/></CopyObjectResult>",
        "\xef\xbb\xbf<CopyObjectResult></CopyObjectResult>"})
    EXPECT_TRUE(is_result(xml, kName)) << xml;
  for (const std::string_view xml : {""sv,
                                     " \n "sv,
                                     "CopyObjectResult"sv,
                                     "<html><body>Welcome</body></html>"sv,
                                     "<CopyObjectResult>"sv,
                                     "<CopyObjectResult><ETag>x</ETag>"sv,
                                     "<a><CopyObjectResult></CopyObjectResult></a>"sv,
                                     "<CopyObjectResultOther></CopyObjectResultOther>"sv,
                                     "<CopyObjectResult></CopyObjectResult><Error></Error>"sv,
                                     "<Error><Code>InternalError</Code></Error>"sv,
                                     "Welcome <CopyObjectResult/>"sv,
                                     "<CopyObjectResult/> Welcome"sv,
                                     "<![CDATA[ ]]><CopyObjectResult/>"sv,
                                     "<CopyObjectResult/><CopyObjectResult/>"sv,
                                     "<CopyObjectResult/>&#32;"sv,
                                     "<CopyObjectResult/>\0\0"sv,
                                     "\0<CopyObjectResult/>"sv,
                                     "<s3:CopyObjectResult xmlns:s3=\"http://s3/\"/>"sv,
                                     "<copyobjectresult/>"sv,
                                     "<!-- <CopyObjectResult/> -->"sv,
                                     "<?xml version=\"1.0\"?>"sv,
                                     "</CopyObjectResult>"sv,
                                     "\xff\xfe<\0C\0/\0>\0"sv,
                                     "\x1f\x8b\x08"sv})
    EXPECT_FALSE(is_result(xml, kName)) << xml;
}

TEST(Answers, Uploads) {
  const auto id = parse_upload_id(
      "<InitiateMultipartUploadResult><Bucket>b</Bucket><UploadId>a&amp;b</UploadId></"
      "InitiateMultipartUploadResult>");
  ASSERT_OK(id);
  EXPECT_EQ(*id, "a&b");
  EXPECT_ERRC(Errc::corrupt, parse_upload_id("<InitiateMultipartUploadResult/>"));
}

TEST(Answers, ContentRanges) {
  const auto expect = [](std::string_view text, std::optional<uint64_t> first,
                         std::optional<uint64_t> whole) {
    const ContentRange range = parse_content_range(text);
    EXPECT_EQ(range.first, first) << text;
    EXPECT_EQ(range.object_bytes, whole) << text;
  };
  expect("bytes 0-99/1000", 0, 1000);
  expect("bytes 18446744073709551615-18446744073709551615/18446744073709551615", ~uint64_t{0}, ~uint64_t{0});
  expect("bytes 5-9/*", 5, std::nullopt);
  expect("bytes */1000", std::nullopt, 1000);
  expect("bytes -1-9/x10", std::nullopt, std::nullopt);
  expect("bytes 18446744073709551616-1/", std::nullopt, std::nullopt);
  for (const std::string_view text :
       {"", "bytes", "bytes ", "bytes 0-99", "lines 0-99/1000", "/", "0-99/1000"})
    expect(text, std::nullopt, std::nullopt);
}

}  // namespace
}  // namespace penstock::s3

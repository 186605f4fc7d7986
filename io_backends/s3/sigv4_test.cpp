// Tests SHA-256, HMAC and signatures with the examples that their standards and AWS publish.
#include "io_backends/s3/sigv4.hpp"

#include <gtest/gtest.h>

namespace penstock::s3 {
namespace {

std::string hash_of(std::string_view text) {
  return hex(sha256(std::as_bytes(std::span(text))));
}

std::string hmac_of(std::string_view key, std::string_view text) {
  return hex(hmac_sha256(std::span(reinterpret_cast<const uint8_t*>(key.data()), key.size()), text));
}

TEST(Sha256, HashesAsTheStandardSays) {  // FIPS 180-4, examples
  EXPECT_EQ(hash_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash_of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, HashesOfPiecesEqualTheHashOfTheWhole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += char(i % 251);
  for (size_t length = 0; length <= text.size(); ++length) {
    const std::string_view part = std::string_view(text).substr(0, length);
    for (const size_t cut : {length / 3, length / 2, std::min<size_t>(length, 64)}) {
      Sha256 hash;
      hash.add(part.substr(0, cut));
      hash.add(part.substr(cut));
      ASSERT_EQ(hex(hash.finish()), hash_of(part)) << length << " cut at " << cut;
    }
  }
}

TEST(Sha256, HmacAsRfc4231Says) {
  EXPECT_EQ(hmac_of(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac_of("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac_of(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// The examples of docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
class PublishedSignatures : public testing::Test {
 protected:
  std::string sign(const std::string& method, const std::string& path, const Pairs& query, Pairs headers,
                   const std::string& hash = hash_of("")) {
    headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
    headers.emplace_back("x-amz-content-sha256", hash);
    headers.emplace_back("x-amz-date", "20130524T000000Z");
    const SignedRequest request{method, uri_encode(path, true), query_string(query), headers, hash};
    const Credentials who{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
    return authorization(request, who, "us-east-1", "s3", "20130524T000000Z");
  }
};

TEST_F(PublishedSignatures, GetARange) {
  EXPECT_EQ(sign("GET", "/test.txt", {}, {{"range", "bytes=0-9"}}),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_F(PublishedSignatures, PutWithABodyAndANameToEncode) {
  EXPECT_TRUE(sign("PUT", "/test$file.text", {},
                   {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                   hash_of("Welcome to Amazon S3."))
                  .ends_with("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST_F(PublishedSignatures, QueriesWithAndWithoutValues) {
  EXPECT_TRUE(sign("GET", "/", {{"lifecycle", ""}}, {})
                  .ends_with("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  EXPECT_TRUE(sign("GET", "/", {{"prefix", "J"}, {"max-keys", "2"}}, {})
                  .ends_with("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(Encoding, EveryByteIsEncodedAndDecoded) {
  std::string all;
  for (int i = 1; i < 256; ++i) all += char(i);
  EXPECT_EQ(uri_decode(uri_encode(all, true), true), all);
  EXPECT_EQ(uri_decode(uri_encode(all, false), false), all);
  EXPECT_EQ(uri_encode("a b,c=d\n\xc3\xa9+%/~", true), "a%20b%2Cc%3Dd%0A%C3%A9%2B%25/~");
  EXPECT_EQ(uri_encode("a/b", false), "a%2Fb");
  EXPECT_EQ(uri_decode("100%", false), "100%");
  EXPECT_EQ(uri_decode("%4", false), "%4");
  EXPECT_EQ(uri_decode("%zz+", true), "%zz ");
  EXPECT_EQ(uri_decode("a+b", false), "a+b");
}

TEST(Encoding, Dates) {
  EXPECT_EQ(amz_date(1369353600), "20130524T000000Z");
}

}  // namespace
}  // namespace penstock::s3

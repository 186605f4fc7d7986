// Tests which object store and credentials are used.
#include "io_backends/s3/account.hpp"

#include <fstream>
#include <map>

#include "io_backends/s3/store.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock::s3 {
namespace {

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST(S3Account, Urls) {
  const auto plain = parse_endpoint("http://10.0.0.1:9000/bucket/some folder/here/");
  ASSERT_OK(plain);
  EXPECT_EQ(plain->server, "http://10.0.0.1:9000");
  EXPECT_EQ(plain->host, "10.0.0.1:9000");
  EXPECT_EQ(plain->bucket, "bucket");
  EXPECT_EQ(plain->prefix, "some folder/here/");
  EXPECT_FALSE(plain->tls);
  const auto tls = parse_endpoint("https://s3.example.org:443/b");
  ASSERT_OK(tls);
  EXPECT_EQ(tls->host, "s3.example.org");
  EXPECT_EQ(tls->prefix, "");
  EXPECT_TRUE(tls->tls);
  for (const char* const bad :
       {"", "bucket/prefix", "ftp://host/b", "http://", "http:///b", "http://host", "http://host/",
        "http://key:secret@host/b", "http://host/b//c", "http://ho st/b"})
    EXPECT_ERRC(Errc::invalid_argument, parse_endpoint(bad)) << bad;
}

TEST(S3Account, TheEnvironmentComesFirst) {
  const auto found = find_credentials(environment_of(
      {{"AWS_ACCESS_KEY_ID", "key"}, {"AWS_SECRET_ACCESS_KEY", "secret"}, {"AWS_SESSION_TOKEN", "token"}}));
  ASSERT_OK(found);
  EXPECT_EQ(found->key_id, "key");
  EXPECT_EQ(found->secret, "secret");
  EXPECT_EQ(found->session_token, "token");
  EXPECT_ERRC(Errc::invalid_argument, find_credentials(environment_of({{"AWS_ACCESS_KEY_ID", "key"}})),
              "secret key");
}

TEST(S3Account, ThenTheProfileFiles) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / ".aws");
  std::ofstream(folder.path() / ".aws/credentials")
      << "# mine\n[default]\naws_access_key_id = one\n aws_secret_access_key=s=1 \r\n"
         "[ other ]\naws_access_key_id=two\naws_secret_access_key=s2\naws_session_token=t2\n[half]\n"
         "aws_access_key_id=three\n";
  std::ofstream(folder.path() / ".aws/config")
      << "[default]\nregion = eu-north-1\n[profile other]\nregion=us-west-2\n";
  const std::string home = folder.path().string();
  const auto first = find_credentials(environment_of({{"HOME", home}}));
  ASSERT_OK(first);
  EXPECT_EQ(first->key_id, "one");
  EXPECT_EQ(first->secret, "s=1");
  const auto other = environment_of({{"HOME", home}, {"AWS_PROFILE", "other"}});
  const auto second = find_credentials(other);
  ASSERT_OK(second);
  EXPECT_EQ(second->secret, "s2");
  EXPECT_EQ(second->session_token, "t2");
  EXPECT_ERRC(Errc::invalid_argument,
              find_credentials(environment_of({{"HOME", home}, {"AWS_PROFILE", "half"}})));
  EXPECT_ERRC(Errc::invalid_argument,
              find_credentials(environment_of({{"HOME", home}, {"AWS_PROFILE", "nobody"}})));
  EXPECT_EQ(find_region("", environment_of({{"HOME", home}})).name, "eu-north-1");
  EXPECT_EQ(find_region("", other).name, "us-west-2");
  const auto elsewhere = environment_of({{"HOME", "/nowhere"},
                                         {"AWS_SHARED_CREDENTIALS_FILE", home + "/.aws/credentials"},
                                         {"AWS_DEFAULT_REGION", "b"}});
  EXPECT_EQ(find_credentials(elsewhere)->key_id, "one");
  EXPECT_EQ(find_region("", elsewhere).name, "b");
  EXPECT_EQ(find_region("a", elsewhere).name, "a");
}

TEST(S3Account, KeysOfTheConfigFileAndOfAProgramAreUsed) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / ".aws");
  const std::string home = folder.path().string();
  const auto config = [&](const std::string& text) { std::ofstream(folder.path() / ".aws/config") << text; };
  config(
      "[default]\naws_access_key_id=one\naws_secret_access_key=s1\n[profile b]\naws_access_key_id=two\n"
      "aws_secret_access_key=s2\n");
  EXPECT_EQ(find_credentials(environment_of({{"HOME", home}}))->secret, "s1");
  EXPECT_EQ(find_credentials(environment_of({{"HOME", home}, {"AWS_DEFAULT_PROFILE", "b"}}))->secret, "s2");
  config(R"([default]
credential_process = echo '{"Version": 1, "AccessKeyId": "k", "SecretAccessKey": "s", "SessionToken": "t"}'
)");
  const auto made = find_credentials(environment_of({{"HOME", home}}));
  ASSERT_OK(made);
  EXPECT_EQ(made->key_id + made->secret + made->session_token, "kst");
  config("[default]\ncredential_process = exit 3\n");
  EXPECT_ERRC(Errc::invalid_argument, find_credentials(environment_of({{"HOME", home}})),
              "exited with code 3");
  config("[default]\ncredential_process = echo nothing\n");
  EXPECT_ERRC(Errc::invalid_argument, find_credentials(environment_of({{"HOME", home}})), "no JSON");
}

TEST(S3Account, WhatThereIsInPlaceOfAKeyIsSaid) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / ".aws");
  const std::string home = folder.path().string();
  std::ofstream(folder.path() / ".aws/credentials") << "[training]\naws_access_key_id=one\n[ b ]\n";
  const auto none = find_credentials(environment_of({{"HOME", home}}));
  ASSERT_OK(none);
  EXPECT_EQ(none->key_id, "");
  EXPECT_NE(none->why_none.find("'training', 'b'"), std::string::npos) << none->why_none;
  std::ofstream(folder.path() / ".aws/config") << "[default]\nsso_session = mine\n";
  EXPECT_NE(find_credentials(environment_of({{"HOME", home}}))->why_none.find("sso_session"),
            std::string::npos);
  const auto web =
      find_credentials(environment_of({{"HOME", "/nowhere"}, {"AWS_WEB_IDENTITY_TOKEN_FILE", "x"}}));
  EXPECT_NE(web->why_none.find("AWS_WEB_IDENTITY_TOKEN_FILE"), std::string::npos);
}

TEST(S3Account, SourcesAreInTheOrderOfBotocore) {
  const ScratchFolder folder;
  const std::string credentials = (folder.path() / "my keys").string();
  const std::string config = (folder.path() / "my config").string();
  const auto find = [&] {
    return find_credentials(environment_of(
        {{"AWS_SHARED_CREDENTIALS_FILE", credentials}, {"AWS_CONFIG_FILE", config}, {"HOME", "/nowhere"}}));
  };
  const std::string process = R"(credential_process = echo '{"AccessKeyId": "p", "SecretAccessKey": "s"}'
)";
  std::ofstream(credentials) << "[default]\naws_access_key_id=one\naws_secret_access_key=s1\n";
  std::ofstream(config) << "[default]\naws_access_key_id=two\naws_secret_access_key=s2\n" + process;
  EXPECT_EQ(find()->key_id, "one");
  std::ofstream(credentials) << "[b]\n";
  EXPECT_EQ(find()->key_id, "p");
  std::ofstream(config) << "[default]\naws_access_key_id=two\naws_secret_access_key=s2\n";
  EXPECT_EQ(find()->key_id, "two");
  std::ofstream(config) << "[default]\naws_access_key_id=two\naws_secret_access_key=s2\nrole_arn=r\n";
  ASSERT_OK(find());
  EXPECT_EQ(find()->key_id, "") << "the AWS tools use the role";
  EXPECT_NE(find()->why_none.find("'" + config + "' has role_arn"), std::string::npos) << find()->why_none;
}

TEST(S3Account, MessagesNameTheFilesThatWereRead) {
  const ScratchFolder folder;
  const std::string credentials = (folder.path() / "my keys").string();
  const std::string config = (folder.path() / "my config").string();
  std::map<std::string, std::string> variables{{"AWS_SHARED_CREDENTIALS_FILE", credentials},
                                               {"AWS_CONFIG_FILE", config}};
  std::ofstream(credentials) << "[default]\n[a]\n";
  std::ofstream(config) << "[profile b]\n";
  const std::string why = find_credentials(environment_of(variables))->why_none;
  EXPECT_NE(why.find("'" + credentials + "' has the profiles 'a'; '" + config + "' has the profiles 'b'"),
            std::string::npos)
      << why;
  std::filesystem::remove(config);
  std::filesystem::create_directory(config);
  const std::string unread = find_credentials(environment_of(variables))->why_none;
  EXPECT_NE(unread.find("'" + config + "' (AWS_CONFIG_FILE)"), std::string::npos)
      << "the key may be in it: " << unread;
  std::filesystem::remove(config);
  std::ofstream(config) << "";
  std::ofstream(credentials) << "";
  variables["AWS_PROFILE"] = "c";
  EXPECT_ERRC(Errc::invalid_argument, find_credentials(environment_of(variables)), "'" + credentials + "'");
}

TEST(S3Account, AnUnreadableConfigFileIsWhyTheRegionIsTheDefault) {
  const ScratchFolder folder;
  const std::string config = (folder.path() / "config").string();
  const auto region = [&](std::map<std::string, std::string> more) {
    more["AWS_CONFIG_FILE"] = config;
    return find_region("", environment_of(more));
  };
  EXPECT_NE(region({}).why_default.find("'" + config + "' (AWS_CONFIG_FILE): No such file"),
            std::string::npos)
      << region({}).why_default;
  std::filesystem::create_directory(config);
  EXPECT_EQ(region({}).name, "us-east-1");
  EXPECT_NE(region({}).why_default.find("Is a directory"), std::string::npos) << region({}).why_default;
  EXPECT_EQ(region({{"AWS_REGION", "a"}}).why_default, "");
  Settings settings;
  settings.region = region({});
  Answer answer;
  answer.status = 301;
  answer.refusal.region = "eu-west-1";
  const std::string refused = refusal_error(answer, settings, "read", "x").message();
  EXPECT_NE(refused.find("set region=eu-west-1"), std::string::npos) << refused;
  EXPECT_NE(refused.find(config), std::string::npos) << refused;
  std::filesystem::remove(config);
  std::ofstream(config) << "[default]\n";
  EXPECT_EQ(region({}).why_default, "") << "it has none";
  EXPECT_EQ(find_region("", environment_of({{"HOME", folder.path().string()}})).why_default, "")
      << "no file, and none is named";
}

TEST(S3Account, NoKeyIsAnonymous) {
  const auto none = find_credentials(environment_of({{"HOME", "/nowhere"}}));
  ASSERT_OK(none);
  EXPECT_EQ(none->key_id, "");
  EXPECT_EQ(find_region("", environment_of({})).name, "us-east-1");
}

}  // namespace
}  // namespace penstock::s3

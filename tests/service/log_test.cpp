// The lines that the daemon writes: text and JSON, and that no value breaks out of its field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "daemon/log.hpp"
#include "proto/codec/json.hpp"
#include "tests/service/daemon_process.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;

TEST(LogText, ShowsFieldsAsTheyAreOrQuoted) {
  EXPECT_EQ(log_text("ended", {}, LogFormat::text), "ended");
  EXPECT_EQ(
      log_text("run state", {{"job", 7U}, {"state", "RUNNING"}, {"message", ""}}, LogFormat::text),
      "run state job=7 state=RUNNING message=\"\"");
  EXPECT_EQ(log_text("x", {{"a", "two words"}, {"b", "q\"\n u=1"}}, LogFormat::text),
            "x a=\"two words\" b=\"q\\\"\\n u=1\"");
}

TEST(LogText, IsTheInsideOfAJsonObject) {
  const std::string evil = "\",\"level\":\"\x01\n\xff{}";
  const std::string line =
      "{" + log_text("run state", {{"job", -7}, {"user", evil}}, LogFormat::json) + "}";
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Value value = value_from_json(line);
  EXPECT_EQ(value.as_map().size(), 3u) << line;
  EXPECT_EQ(value.at("message").as_text(), "run state");
  EXPECT_EQ(value.at("job").as_integer(), -7);
  EXPECT_THAT(value.at("user").as_text(), HasSubstr("\",\"level\":\""));
}

using LogProcess = DaemonProcess;

TEST_F(LogProcess, WritesOneJsonObjectPerLineWhenAskedTo) {
  const auto daemon = launch({"--port", "0", "--log-format", "json", "--log-access"});
  const Client client = client_of(*daemon);
  submit(client, small_job(1, "a \"name\"\n"));
  client.get("/v1/jobs?limit=3");
  client.send("GET", "/v1/jobs", "", {{"Authorization", "Bearer wrong"}});
  EXPECT_EQ(daemon->kill(SIGTERM), 0);
  std::istringstream lines(read_file(log));
  std::map<std::string, Value> last;  // by message
  for (std::string line; std::getline(lines, line);) {
    const Value value = value_from_json(line);
    EXPECT_TRUE(value.at("time").is_text());
    EXPECT_TRUE(value.at("level").is_text());
    last[value.at("message").as_text()] = value;
  }
  EXPECT_THAT(last.at("listening").at("url").as_text(), HasSubstr("http://127.0.0.1:"));
  EXPECT_EQ(last.at("job accepted").at("job").as_integer(), 1);
  EXPECT_EQ(last.at("job accepted").at("user").as_text(), "admin");
  EXPECT_EQ(last.at("token refused").at("level").as_text(), "warning");
  const Value& request = last.at("request");
  EXPECT_EQ(request.at("route").as_text(), "/v1/jobs");
  EXPECT_EQ(request.at("status").as_integer(), 401);
  EXPECT_EQ(request.at("peer").as_text(), "127.0.0.1");
  EXPECT_TRUE(last.contains("ended"));
}

}  // namespace
}  // namespace pipewright::test

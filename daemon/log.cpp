#include "daemon/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/base/utf8.hpp"
#include "core/base/value.hpp"

namespace pipewright {
namespace {

LogFormat format_in_use = LogFormat::text;

std::string quoted(std::string_view text) {
  return to_json(Value(clean_utf8(text)), -1);
}

bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c > ' ' && c < 127 && c != '"' && c != '=' && c != '\\';
  });
}

void write(spdlog::level::level_enum level, std::string_view event,
           std::initializer_list<LogField> fields) {
  if (!spdlog::should_log(level)) return;
  spdlog::log(level, "{}", log_text(event, fields, format_in_use));
}

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void start_logging(LogLevel least, LogFormat format) {
  format_in_use = format;
  const auto logger = spdlog::stderr_logger_mt("pipewrightd");
  logger->set_pattern(format == LogFormat::json
                          ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                          : "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_level(level_of(least));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(logger);
}

std::string log_text(std::string_view event, std::initializer_list<LogField> fields,
                     LogFormat format) {
  const bool json = format == LogFormat::json;
  std::string text = json ? "\"message\":" + quoted(event) : std::string(event);
  for (const LogField& field : fields) {
    const bool bare = field.is_number || (!json && is_plain(field.value));
    const std::string value = bare ? field.value : quoted(field.value);
    text += json ? ",\"" : " ";
    text += field.name;
    text += json ? "\":" : "=";
    text += value;
  }
  return text;
}

void log_debug(std::string_view event, std::initializer_list<LogField> fields) {
  write(spdlog::level::debug, event, fields);
}
void log_info(std::string_view event, std::initializer_list<LogField> fields) {
  write(spdlog::level::info, event, fields);
}
void log_warning(std::string_view event, std::initializer_list<LogField> fields) {
  write(spdlog::level::warn, event, fields);
}
void log_error(std::string_view event, std::initializer_list<LogField> fields) {
  write(spdlog::level::err, event, fields);
}

}  // namespace pipewright

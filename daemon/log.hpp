// What the daemon writes to standard error: one line per event, its words first and what it is
// about as fields, as text (`run state job=7 run=0 state=RUNNING`) or as one JSON object with time,
// level, message and the fields. Values never break a line or a field, whoever chose them.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace pipewright {

enum class LogFormat { text, json };
enum class LogLevel { debug, info, warning, error };

struct LogField {
  LogField(std::string_view field, std::string_view text) : name(field), value(text) {}
  LogField(std::string_view field, const char* text) : name(field), value(text) {}
  LogField(std::string_view field, const std::string& text) : name(field), value(text) {}
  LogField(std::string_view field, std::integral auto number)
      : name(field), value(std::to_string(number)), is_number(true) {}

  std::string_view name;
  std::string value;
  bool is_number = false;
};

/// To be called once, before anything is written; without it, text of level info and above.
void start_logging(LogLevel least, LogFormat format);

void log_debug(std::string_view event, std::initializer_list<LogField> fields = {});
void log_info(std::string_view event, std::initializer_list<LogField> fields = {});
void log_warning(std::string_view event, std::initializer_list<LogField> fields = {});
void log_error(std::string_view event, std::initializer_list<LogField> fields = {});

/// The line behind time and level: `event name=value ...`, or the inner part of the JSON object.
std::string log_text(std::string_view event, std::initializer_list<LogField> fields,
                     LogFormat format);

}  // namespace pipewright

#include "client/cli/view/facts.hpp"

#include <algorithm>
#include <map>

#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

constexpr std::size_t bars_max = 48;

std::string number(const Value* value, int digits = 6) {
  if (value == nullptr || !value->is_number()) return "-";
  return value->is_integer() ? std::to_string(value->as_integer())
                             : format_short(value->as_real(), digits);
}

/// "7 6 5 4", or "31 30 .. 1 0" for more than ten.
std::string numbers(const Value& value) {
  if (!value.is_list()) return number(&value);
  const Value::List& list = value.as_list();
  std::vector<std::string> words;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list.size() > 10 && i > 1 && i + 2 < list.size()) continue;
    if (list.size() > 10 && i + 2 == list.size()) words.emplace_back("..");
    words.push_back(number(&list[i]));
  }
  return join(words, " ");
}

/// Counts by value; the key is the least value of a bin.
struct Bins {
  std::int64_t width = 1;
  std::int64_t max = -1;
  std::map<std::int64_t, std::int64_t> counts;
};

void add_phase(Bins& bins, const Value* phase) {
  const Value* histogram = phase == nullptr ? nullptr : phase->find("histogram");
  const Value* width = phase == nullptr ? nullptr : phase->find("bin_width");
  const Value* max = phase == nullptr ? nullptr : phase->find("max");
  if (histogram == nullptr || width == nullptr || max == nullptr || !max->is_integer()) return;
  bins.width = std::max(bins.width, width->as_integer());
  bins.max = std::max(bins.max, max->as_integer());
  for (const Value& bin : histogram->as_list()) {
    bins.counts[bin.as_list().at(0).as_integer()] += bin.as_list().at(1).as_integer();
  }
}

std::string bars_of(const Bins& bins) {
  static constexpr const char* heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::int64_t width = bins.width;
  while (bins.max / width >= static_cast<std::int64_t>(bars_max)) width *= 2;
  std::vector<std::int64_t> bars(static_cast<std::size_t>(bins.max / width) + 1);
  for (const auto& [value, count] : bins.counts) {
    bars[static_cast<std::size_t>(value / width)] += count;
  }
  const std::int64_t highest = *std::max_element(bars.begin(), bars.end());
  std::string text;
  for (const std::int64_t bar : bars) {
    // What was seen at all is seen.
    text += bar == 0 ? " " : heights[(bar * 8 - 1) / std::max<std::int64_t>(1, highest)];
  }
  return text;
}

void add_line(std::string& out, const std::string& name, const Bins& bins) {
  if (bins.max < 0) return;
  out += pad_right(name, 21) + "0 " + bars_of(bins) + " " + std::to_string(bins.max) + "\n";
}

std::string link_line(const Value& links) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> kinds;  // bytes, by link
  for (const Value& link : links.as_list()) {
    kinds[{link.at("from").as_integer(), link.at("to").as_integer()}] =
        link.at("bytes").as_integer();
  }
  std::int64_t least = INT64_MAX;
  std::int64_t most = 0;
  for (const auto& [ends, bytes] : kinds) {
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  if (kinds.empty()) return {};
  std::string text = std::to_string(kinds.size()) + " links, ";
  if (least != most) text += format_bytes(static_cast<double>(least)) + " to ";
  return text + format_bytes(static_cast<double>(most)) + " each";
}

std::string target_line(const Value& target) {
  const std::string value = number(target.find("value"));
  const Value* tick = target.find("tick");
  if (tick == nullptr || !tick->is_integer()) return value + " was not reached";
  const Value* bytes = target.find("bytes_sent");
  return "below " + value + " at tick " + number(tick) + ": " + number(target.find("updates")) +
         " updates, " + number(target.find("microbatches")) + " microbatches, " +
         (bytes != nullptr && bytes->is_number() ? format_bytes(bytes->as_real()) : "-") + " sent";
}

void add_theory(std::vector<std::pair<std::string, std::string>>& lines, const Value& theory) {
  const auto text = [&](const char* key) { return number(theory.find(key)); };
  lines.emplace_back("gradient", "||grad f||^2 " + text("gradient_norm_sq") + " at the end, mean " +
                                     text("gradient_norm_sq_mean"));
  const Value* why = theory.find("bound_left_out");
  lines.emplace_back("RPD bound", why != nullptr && why->is_text()
                                      ? "left out: " + printable(why->as_text())
                                      : text("bound") + " on that mean (L " + text("smoothness") +
                                            ", G " + text("gradient_norm_max") + ", delta " +
                                            text("delay_max") + ")");
  lines.emplace_back("gap", "f - f* " + text("gap") + ", f* " + text("optimum"));
}

void add_language(std::vector<std::pair<std::string, std::string>>& lines, const Value& summary) {
  if (const Value* last = summary.find("validation_last")) {
    lines.emplace_back("validation", number(last) + " at the end, best " +
                                         number(summary.find("validation_best")));
  }
  const Value* perplexity = summary.find("perplexity");
  if (perplexity == nullptr) return;
  std::string text = number(perplexity->find("last_stage")) + " of the last batch";
  for (const auto& [key, what] : {std::pair{"objective", " of the training text"},
                                  std::pair{"validation", " of the validation text"}}) {
    const Value* one = perplexity->find(key);
    if (one != nullptr && one->is_number()) text += ", " + number(one) + what;
  }
  lines.emplace_back("perplexity", text);
  const Value* rate = summary.find("tokens_per_second");
  lines.emplace_back("tokens", number(summary.find("tokens")) +
                                   (rate == nullptr ? "" : ", " + number(rate) + " per second"));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> fact_lines(const Value& summary) {
  std::vector<std::pair<std::string, std::string>> lines;
  const Value* bytes = summary.find("bytes_sent");
  const Value* links = summary.find("links");
  if (bytes != nullptr && bytes->is_integer() && links != nullptr && links->is_list()) {
    const std::string each = link_line(*links);
    lines.emplace_back("sent", format_bytes(bytes->as_real()) + (each.empty() ? "" : " over ") +
                                   each + " (activations and gradients)");
  }
  if (const Value* target = summary.find("target")) {
    lines.emplace_back("target", target_line(*target));
  }
  add_language(lines, summary);
  if (const Value* theory = summary.find("theory")) add_theory(lines, *theory);
  if (const Value* note = summary.find("note"); note != nullptr && note->is_text()) {
    lines.emplace_back("note", printable(note->as_text()));
  }
  return lines;
}

std::string histogram_lines(const Value& summary) {
  std::string out;
  const Value* stages = summary.find("per_stage");
  for (const auto& [phase, name] :
       {std::pair{"start_up", "start-up"}, std::pair{"steady", "steady"}}) {
    Bins delay;
    add_phase(delay, find_path(summary, std::string("delay_updates.") + phase));
    add_line(out, std::string("delay, ") + name, delay);
  }
  for (const auto& [phase, name] :
       {std::pair{"start_up", "start-up"}, std::pair{"steady", "steady"}}) {
    Bins staleness;
    for (const Value& stage : stages == nullptr ? Value::List() : stages->as_list()) {
      add_phase(staleness, find_path(stage, std::string("staleness_versions.") + phase));
    }
    add_line(out, std::string("staleness, ") + name, staleness);
  }
  return out;
}

std::string known_table(const Value& summary, int columns_max) {
  const Value* known = summary.find("known");
  if (known == nullptr || !known->is_list() || known->as_list().empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const Value& one : known->as_list()) {
    rows.push_back({one.at("what").as_text(), one.at("formula").as_text(),
                    numbers(one.at("expected")), numbers(one.at("measured")),
                    one.at("holds").as_bool() ? "yes" : "NO"});
  }
  return format_table({{"KNOWN", Align::left, true},
                       {"FORMULA", Align::left},
                       {"EXPECTED", Align::right},
                       {"MEASURED", Align::right},
                       {"HOLDS", Align::left}},
                      rows, columns_max);
}

}  // namespace pipewright::cli

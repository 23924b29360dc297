#include "client/cli/figure/run_folder.hpp"

#include <algorithm>
#include <array>

#include "client/cli/figure/number_table.hpp"
#include "client/cli/offline/report.hpp"
#include "core/base/error.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* objective_file = "objective.csv";
constexpr const char* loss_file = "last_stage_loss.csv";
constexpr const char* validation_file = "validation.csv";
constexpr const char* theory_file = "theory.csv";

std::string file_in(const RunFolder& folder, const char* name, const std::string& what_for) {
  const fs::path path = folder.path / name;
  if (fs::is_regular_file(path)) return path.string();
  std::string message =
      folder.path.string() + ": it has no " + name + ", which " + what_for + " is read from";
  if (name == std::string_view(theory_file)) message += " (run the job with observe.theory=true)";
  if (name == std::string_view(validation_file)) {
    message +=
        " (a transformer with a validation_fraction has it, where the objective is observed)";
  }
  throw ConfigError(message);
}

/// How many microbatches had been through the last stage by each tick.
std::vector<double> microbatches_by(const RunFolder& folder, const std::vector<double>& ticks) {
  const std::array<std::string, 1> tick{"tick"};
  const auto passed =
      read_columns(file_in(folder, loss_file, "the number of microbatches"), tick)[0];
  std::vector<double> counts;
  for (const double until : ticks) {
    counts.push_back(static_cast<double>(std::upper_bound(passed.begin(), passed.end(), until) -
                                         passed.begin()));
  }
  return counts;
}

FigureCurve curve_of(const std::vector<double>& x, const std::vector<double>& y) {
  FigureCurve curve;
  curve.points.reserve(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) curve.points.push_back({x[i], y[i]});
  return curve;
}

FigureCurve loss_curve(const RunFolder& folder, const std::string& x) {
  if (x == "updates") {
    throw ConfigError(
        "the loss of the last stage is known by tick and by microbatch, not by updates: "
        "give --x tick or --x microbatches");
  }
  const std::array<std::string, 2> names{x == "tick" ? "tick" : "microbatch", "value"};
  auto columns = read_columns(file_in(folder, loss_file, "the loss of the last stage"), names);
  // The loss of microbatch 0 is known when 1 microbatch has been through the last stage.
  if (x == "microbatches") {
    for (double& microbatch : columns[0]) microbatch += 1;
  }
  return curve_of(columns[0], columns[1]);
}

}  // namespace

RunFolder open_run_folder(const fs::path& path) {
  RunFolder folder{path, {}, false, {}};
  const fs::path summary_path = path / "summary.json";
  if (!fs::is_regular_file(summary_path)) {
    if (fs::is_regular_file(path / objective_file)) return folder;
    throw ConfigError(
        path.string() +
        ": no run lies there (no summary.json and no objective.csv); give a folder that "
        "`run` or `export` has written");
  }
  const JobFile file = JobFile::read(summary_path.string());
  const Value* name = file.tree().find("name");
  if (name != nullptr && name->is_text()) folder.name = name->as_text();
  if (const Value* job = file.tree().find("job")) folder.in_durations = uses_durations(*job);
  const Value* optimum = find_path(file.tree(), "theory.optimum");
  if (optimum != nullptr && optimum->is_number()) folder.optimum = optimum->as_real();
  return folder;
}

FigureCurve read_curve(const RunFolder& folder, const std::string& x, const std::string& series,
                       std::optional<double> optimum) {
  if (series == "loss") return loss_curve(folder, x);
  const bool is_gap = series == "gap";
  const char* file = is_gap || series == "objective" ? objective_file
                     : series == "validation"        ? validation_file
                                                     : theory_file;
  const std::array<std::string, 2> names{x == "updates" ? "updates" : "tick",
                                         file == theory_file ? series : "value"};
  auto columns = read_columns(file_in(folder, file, "the series " + series), names);
  if (x == "microbatches") columns[0] = microbatches_by(folder, columns[0]);
  if (is_gap) {
    if (!optimum) optimum = folder.optimum;
    if (!optimum) {
      throw ConfigError(folder.path.string() +
                        ": its summary.json does not say the optimum f* (run the job with "
                        "observe.theory=true), and there is no --optimum");
    }
    for (double& value : columns[1]) value -= *optimum;
  }
  return curve_of(columns[0], columns[1]);
}

std::string label_of_x(const std::string& x) {
  if (x == "tick") return "time (ticks)";
  if (x == "updates") return "block updates";
  return x;
}

std::string label_of_series(const std::string& series) {
  static const std::array<std::array<const char*, 2>, 7> labels{
      {{"objective", "objective f(w)"},
       {"gap", "f(w) − f*"},
       {"loss", "loss of the last stage"},
       {"validation", "loss on the validation data"},
       {"gradient_norm_sq", "‖∇f(w)‖²"},
       {"gradient_norm_sq_mean", "mean of ‖∇f(w)‖² so far"},
       {"bound", "bound"}}};
  for (const auto& [name, label] : labels) {
    if (series == name) return label;
  }
  return series;
}

}  // namespace pipewright::cli

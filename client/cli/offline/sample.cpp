// sample: a text from the weights of a language model that `run` or `export` has written.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "client/cli/command.hpp"
#include "client/cli/offline/run_folder.hpp"
#include "client/cli/offline/shown_files.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/data/npy.hpp"
#include "core/train/sampling.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string folder;
  std::string prompt;
  std::int64_t tokens = 200;
  SamplingOptions sampling;
  std::uint64_t seed = 0;
  bool json = false;
};

Value read_summary(const std::string& folder) {
  std::error_code fault;
  const fs::path path = fs::path(folder) / "summary.json";
  if (fs::exists(fs::path(folder) / "runs.csv", fault)) {
    throw ConfigError(folder + ": holds many runs (summary.json there says which is the best); " +
                      "sample from one of them, as " + folder_of_run(folder, 0));
  }
  if (!fs::is_regular_file(path, fault)) {
    throw ConfigError(folder +
                      ": no run lies there (no summary.json); give a folder that `run` or "
                      "`export` has written");
  }
  const Value summary = JobFile::read(path.string()).tree();
  for (const char* key : {"job", "stages", "diverged"}) {
    if (!summary.has(key)) {
      throw ConfigError(path.string() + ": is not the summary of a run, it has no '" + key + "'");
    }
  }
  if (const Value& diverged = summary.at("diverged"); diverged.is_map()) {
    throw ConfigError(folder + ": the run diverged at tick " +
                      std::to_string(diverged.at("tick").as_integer()) + " (" +
                      diverged.at("what").as_text() + "), so it left no weights to write with");
  }
  return summary;
}

Tensor read_weights(const std::string& folder) {
  const std::string path = (fs::path(folder) / "weights.npy").string();
  std::error_code fault;
  if (!fs::is_regular_file(path, fault)) {
    throw ConfigError(folder + ": has no weights.npy, so there is nothing to write with");
  }
  ShownFiles files;
  const NpyArray<float> array = read_npy<float>(*files.open(path), path);
  Tensor weights(DType::float32, {static_cast<std::int64_t>(array.values.size())});
  std::copy(array.values.begin(), array.values.end(), weights.data<float>());
  return weights;
}

/// The objective's kind and its checked parameters, of a run's job.
std::pair<std::string, Value> objective_of(const Value& job, const std::string& folder) {
  const Value* given = job.find("objective");
  if (given == nullptr) throw ConfigError(folder + ": the job in its summary has no objective");
  const ParamSpec spec = ObjectiveRegistry::instance().spec("objective", "");
  const Value checked = check_params(spec, *given, "objective");
  return checked.as_map().front();
}

std::unique_ptr<TextGenerator> open_generator(const std::string& folder) {
  const Value summary = read_summary(folder);
  const auto [kind, parameters] = objective_of(summary.at("job"), folder);
  const ObjectiveKind& objective = ObjectiveRegistry::instance().at(kind);
  if (!objective.generator) {
    std::vector<std::string> writers;
    for (const ObjectiveKind& each : ObjectiveRegistry::instance().all()) {
      if (each.generator) writers.push_back(each.kind);
    }
    throw ConfigError(folder + ": the run's objective is '" + kind +
                      "', which writes no text; `sample` is for language models" +
                      (writers.empty() ? "" : " (" + join(writers, ", ") + ")"));
  }
  const Value* facts = summary.find("objective_facts");
  if (facts == nullptr) {
    throw ConfigError(folder +
                      ": its summary.json has no 'objective_facts', which say the "
                      "vocabulary; run the job again with this version");
  }
  return objective.generator(parameters, static_cast<int>(summary.at("stages").as_integer()),
                             *facts, read_weights(folder));
}

std::string prompt_of(const Options& options) {
  if (options.prompt != "-") return options.prompt;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

/// What a text without a prompt follows: the end of a line, or what is first in the vocabulary.
std::vector<std::int32_t> beginning(const TextGenerator& generator) {
  try {
    const auto tokens = generator.encode("\n");
    if (!tokens.empty()) return tokens;
  } catch (const DataError&) {
    // There are no lines in this vocabulary.
  }
  return {0};
}

int sample(const Options& options) {
  if (!std::isfinite(options.sampling.temperature)) {
    throw ConfigError("--temperature: must be a finite number, at least 0");
  }
  const auto generator = open_generator(options.folder);
  const std::string prompt = prompt_of(options);
  std::vector<std::int32_t> tokens = generator->encode(prompt);
  if (tokens.empty()) tokens = beginning(*generator);
  std::string text;
  if (!options.json) std::cout << prompt << std::flush;
  continue_text(*generator, std::move(tokens), options.tokens, options.sampling, options.seed,
                [&](std::int32_t token) {
                  const std::string piece = generator->decode(token);
                  if (options.json) {
                    text += piece;
                  } else {
                    std::cout << piece << std::flush;
                  }
                  return std::cout.good();
                });
  if (options.json) {
    Value answer = Value::map();
    answer.set("prompt", prompt);
    answer.set("text", text);
    answer.set("tokens", options.tokens);
    answer.set("temperature", options.sampling.temperature);
    answer.set("top_k", options.sampling.top_k);
    answer.set("seed", static_cast<std::int64_t>(options.seed));
    std::cout << to_json(answer);
  }
  std::cout << std::endl;
  if (!std::cout) throw Error("standard output cannot be written");
  return exit_ok;
}

/// CLI11's own prints the largest double there is.
CLI::Validator not_negative() {
  return {[](const std::string& text) {
            return text.starts_with('-') ? "expected 0 or more, found " + text : std::string();
          },
          ""};
}

}  // namespace

void add_sample(Program& program) {
  CLI::App* command = program.add_command(
      "sample",
      "Write a text with a language model that was trained: the prompt and what follows it, token "
      "by token, as the weights of the run have it. The same seed gives the same text",
      "pipewright sample results --prompt \"The licensee \" --tokens 300 --temperature 0.7");
  auto options = std::make_shared<Options>();
  command->add_option("DIR", options->folder, "Folder that `run` or `export` has written")
      ->required();
  command
      ->add_option("--prompt", options->prompt,
                   "What the text begins with (- for standard input, all of it); without it a text "
                   "begins as a line does")
      ->type_name("TEXT");
  command->add_option("--tokens", options->tokens, "How many tokens (characters) to write")
      ->type_name("N")
      ->check(not_negative())
      ->capture_default_str();
  command
      ->add_option("--temperature", options->sampling.temperature,
                   "What the model's logits are divided by: below 1 likely characters become "
                   "likelier; 0 takes the likeliest always")
      ->type_name("T")
      ->check(not_negative())
      ->capture_default_str();
  command
      ->add_option("--top-k", options->sampling.top_k,
                   "Draw among the K likeliest tokens only; 0: among all")
      ->type_name("K")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Every draw comes from it")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Prompt, text and settings as JSON");
  program.on(command, [options] { return sample(*options); });
}

}  // namespace pipewright::cli

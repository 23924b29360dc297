// The language model of the size (8 stages, 6 layers, 1.2 million parameters, batches of
// 16 x 64 tokens), trained by PipeDream in one process, against its matrix products alone. Prints
// tokens per second, GFLOP/s counted as 6 * parameters * tokens, and the ratio of the two rates.
//   build/release/bench/bench_language_model [RUNS] [MICROBATCHES]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <sstream>
#include <vector>

#include "bench/measure.hpp"
#include "core/objectives/transformer/linear.hpp"
#include "core/train/run.hpp"

namespace pipewright {
namespace {

constexpr Index batch_size = 16;
constexpr Index sequence_length = 64;
constexpr Index embedding = 128;
constexpr Index layers = 6;
constexpr Index vocabulary = 65;

/// A text of as many different characters as tinyshakespeare.
class MadeUpText : public FileSource {
 public:
  std::unique_ptr<std::istream> open(const std::string& /*path*/) override {
    std::string text;
    std::uint32_t state = 1;
    for (int i = 0; i < 200'000; ++i) {
      state = state * 1664525 + 1013904223;
      text += static_cast<char>(' ' + (state >> 16) % vocabulary);
    }
    return std::make_unique<std::istringstream>(text);
  }
};

Value job(std::int64_t microbatches) {
  Value job = Value::map();
  set_path(job, "objective.transformer.data.text", "made up");
  set_path(job, "objective.transformer.batch_size", batch_size);
  set_path(job, "objective.transformer.sequence_length", sequence_length);
  set_path(job, "objective.transformer.embedding", embedding);
  set_path(job, "objective.transformer.heads", 4);
  set_path(job, "schedule.pipedream.stages", static_cast<int>(layers + 2));
  set_path(job, "schedule.pipedream.microbatches", microbatches);
  set_path(job, "optimizer.sgd.learning_rate", 0.05);
  return check_job(job);
}

/// The products of one linear layer's forward and backward, [m, in] by [out, in].
struct Linear {
  Index m, in, out;
  Tensor x, w, y, dw;

  Linear(Index rows, Index inputs, Index outputs)
      : m(rows),
        in(inputs),
        out(outputs),
        x(Tensor::zeros(DType::float32, {m, in})),
        w(Tensor::zeros(DType::float32, {out, in})),
        y(Tensor::zeros(DType::float32, {m, out})),
        dw(Tensor::zeros(DType::float32, {out, in})) {}

  void run() {
    using namespace transformer;
    linear_forward<float>(x.data<float>(), w.data<float>(), nullptr, y.data<float>(), m, in, out);
    linear_backward_input<float>(w.data<float>(), y.data<float>(), x.data<float>(), m, in, out);
    linear_backward_weights<float>(x.data<float>(), y.data<float>(), dw.data<float>(), nullptr, m,
                                   in, out);
  }
  double operations() const { return 3 * 2 * static_cast<double>(m * in * out); }
};

/// Of one microbatch, on storage of its own for every layer.
std::vector<Linear> products() {
  constexpr Index m = batch_size * sequence_length;
  std::vector<Linear> all;
  for (Index i = 0; i < layers; ++i) {
    all.emplace_back(m, embedding, 3 * embedding);
    all.emplace_back(m, embedding, embedding);
    all.emplace_back(m, embedding, 4 * embedding);
    all.emplace_back(m, 4 * embedding, embedding);
  }
  all.emplace_back(m, embedding, vocabulary);
  return all;
}

int run(int runs, std::int64_t microbatches) {
  const JobConfig config = JobConfig::from(job(microbatches));
  MadeUpText files;
  const auto objective = config.load_objective(files);
  const auto tokens = static_cast<double>(microbatches * batch_size * sequence_length);
  const double operations = 6 * static_cast<double>(objective->shape().parameters()) * tokens;
  std::vector<Linear> linears = products();
  double alone_operations = 0;
  for (const Linear& linear : linears) alone_operations += linear.operations();
  std::vector<double> speeds, rates, alone_rates, ratios;
  for (int i = 0; i < runs; ++i) {
    const double seconds =
        processor_seconds([&] { run_in_process(config, *objective, files, {}); });
    const double alone = processor_seconds([&] {
      for (std::int64_t m = 0; m < microbatches; ++m) {
        for (Linear& linear : linears) linear.run();
      }
    });
    speeds.push_back(tokens / seconds);
    rates.push_back(operations / seconds / 1e9);
    alone_rates.push_back(alone_operations * static_cast<double>(microbatches) / alone / 1e9);
    ratios.push_back(rates.back() / alone_rates.back());
  }
  std::printf(
      "%lld parameters, medians of %d: %.0f tokens/s, %.1f GFLOP/s (6 * parameters * tokens); the "
      "matrix products alone %.1f GFLOP/s; ratio %.2f\n",
      static_cast<long long>(objective->shape().parameters()), runs, median(speeds), median(rates),
      median(alone_rates), median(ratios));
  return 0;
}

}  // namespace
}  // namespace pipewright

int main(int argc, char** argv) {
  return pipewright::run(argc > 1 ? std::atoi(argv[1]) : 7, argc > 2 ? std::atoll(argv[2]) : 40);
}

// Job files: YAML, the schema, sweeps; and that a checked job says the same in all of its forms.
#include "proto/codec/job_file.hpp"
#include "core/train/job.hpp"
#include "core/train/sweep.hpp"
#include "proto/codec/api.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::may_refuse([&] {
    const Value checked = JobFile::parse(fuzz::text_of(data, size), "job.yaml").checked();
    fuzz::claim(check_job(checked) == checked, "a checked job is checked");
    for (const WireFormat format : {WireFormat::protobuf, WireFormat::json}) {
      const std::string body = encode(JobSpecBody{checked}, format);
      fuzz::claim(check_job(decode<JobSpecBody>(body, format).spec) == checked,
                  "a job comes out of a message as it went in");
    }
    const JobRuns runs(checked);
    fuzz::claim(runs.size() > 0, "a job has runs");
    runs.run(0);
    runs.run(runs.size() - 1);
  });
  return 0;
}

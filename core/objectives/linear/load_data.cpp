#include "core/base/error.hpp"
#include "core/data/npy.hpp"
#include "core/data/npy_header.hpp"
#include "core/objectives/linear/linear_objective.hpp"

namespace pipewright::linear {

namespace {

Data load_npy(const std::string& x_path, const std::string& y_path, FileSource& files) {
  NpyArray<double> x = read_npy<double>(*files.open(x_path), x_path);
  if (x.shape.rank != 2 || x.values.empty()) {
    throw DataError(x_path + ": shape " + npy_shape_text(x.shape) +
                    ", expected (examples, parameters), both at least 1");
  }
  NpyArray<double> y = read_npy<double>(*files.open(y_path), y_path);
  if (y.shape.rank != 1 || y.shape.dims[0] != x.shape.dims[0]) {
    throw DataError(y_path + ": shape " + npy_shape_text(y.shape) + ", expected (" +
                    std::to_string(x.shape.dims[0]) + ",): one value per row of " + x_path);
  }
  Data data;
  data.examples = x.shape.dims[0];
  data.parameters = x.shape.dims[1];
  data.dense = std::move(x.values);
  data.targets = std::move(y.values);
  data.where_target = [y_path](std::size_t i) {
    return y_path + ": element [" + std::to_string(i) + "]";
  };
  return data;
}

Data load_libsvm(const std::string& path, FileSource& files) {
  LibsvmData read = read_libsvm(*files.open(path), path);
  if (read.rows.column_count == 0) {
    throw DataError(path + ": no line has an INDEX:VALUE, so there is nothing to learn from");
  }
  Data data;
  data.examples = read.rows.row_count();
  data.parameters = read.rows.column_count;
  data.is_sparse = true;
  data.sparse = std::move(read.rows);
  data.targets = std::move(read.labels);
  data.where_target = [path, lines = std::move(read.lines)](std::size_t i) {
    return path + ":" + std::to_string(lines[i]);
  };
  return data;
}

}  // namespace

ParamSpec data_parameter() {
  return ParamSpec::one_of(
      "data", "where X and y come from",
      {ParamSpec::path_of("libsvm",
                          "LIBSVM text: a label or target per line, then INDEX:VALUE ..."),
       ParamSpec::group_of("npy", "two NumPy files",
                           {ParamSpec::path_of("x", "X, of shape (examples, parameters)").needed(),
                            ParamSpec::path_of("y", "y, of shape (examples,)").needed()})});
}

ParamSpec batch_size_parameter() {
  return ParamSpec::integer_of("batch_size", "consecutive rows in one microbatch", "examples")
      .at_least(1)
      .needed();
}

Data load_data(const Value& data, FileSource& files) {
  if (const Value* path = data.find("libsvm")) return load_libsvm(path->as_text(), files);
  const Value& npy = data.at("npy");
  return load_npy(npy.at("x").as_text(), npy.at("y").as_text(), files);
}

}  // namespace pipewright::linear

// A thin owner of SQLite's handles. Every fault is a StoreError that says what was being done and
// why it failed; a constraint or a full disk included.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace pipewright {

/// The disk or the data base refuses: nothing of what was asked is stored.
class StoreError : public Error {
 public:
  using Error::Error;
};

/// A file cannot be written, for want of space or because the disk is read-only at the moment: the
/// same may go well later.
class CannotWriteNow : public StoreError {
 public:
  using StoreError::StoreError;
};

namespace sqlite {

struct Blob {
  std::string_view bytes;
};

class Database;

/// A prepared statement. Bind all of its parameters, then step.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Makes it ready to be used again and binds its parameters ?1, ?2, ...
  template <class... Values>
  Statement& bind(const Values&... values) {
    reset();
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }

  /// True while there is a row.
  bool step();
  /// For a statement that gives no rows.
  void run();
  void reset();

  std::int64_t integer(int column) const;
  std::string_view text(int column) const;  // valid until the next step
  std::string_view blob(int column) const;
  /// NULL is nothing; a NaN, which SQLite has no room for, is stored as the text 'nan'.
  std::optional<double> real(int column) const;

 private:
  void bind_one(int index, std::int64_t value);
  void bind_one(int index, std::string_view text);
  void bind_one(int index, Blob blob);
  void bind_one(int index, const std::optional<double>& value);

  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
};

class Database {
 public:
  explicit Database(const std::filesystem::path& file);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const std::string& sql);
  std::int64_t pragma(const std::string& name);
  std::int64_t last_insert_id() const;
  [[noreturn]] void fail(std::string_view doing) const;
  sqlite3* handle() { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
  std::string file_;
};

enum class Does { read, write };

/// Rolls back unless it is committed. One that reads makes many small selects cheaper, which need
/// not lock the file one by one.
class Transaction {
 public:
  explicit Transaction(Database& database, Does what = Does::write);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace sqlite
}  // namespace pipewright

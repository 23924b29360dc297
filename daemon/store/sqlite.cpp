#include "daemon/store/sqlite.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

namespace pipewright::sqlite {

Database::Database(const std::filesystem::path& file) : file_(file.string()) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(file_.c_str(), &handle_, flags, nullptr) != SQLITE_OK) {
    const std::string why = handle_ != nullptr ? sqlite3_errmsg(handle_) : "out of memory";
    sqlite3_close(handle_);
    throw StoreError(file_ + ": cannot be opened: " + why);
  }
  sqlite3_busy_timeout(handle_, 2000);  // somebody may be looking at it with another program
}

Database::~Database() {
  sqlite3_close(handle_);
}

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail(sql);
}

std::int64_t Database::pragma(const std::string& name) {
  Statement statement(*this, "PRAGMA " + name);
  return statement.step() ? statement.integer(0) : 0;
}

std::int64_t Database::last_insert_id() const {
  return sqlite3_last_insert_rowid(handle_);
}

void Database::fail(std::string_view doing) const {
  std::string why = sqlite3_errmsg(handle_);
  // "disk I/O error" alone does not say that the disk is read-only.
  if (sqlite3_errcode(handle_) == SQLITE_IOERR && ::access(file_.c_str(), W_OK) != 0) {
    why += std::string(": ") + std::strerror(errno);
  }
  throw StoreError(file_ + ": " + why + " (while doing: " + std::string(doing.substr(0, 80)) + ")");
}

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  if (sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &handle_,
                         nullptr) != SQLITE_OK) {
    database.fail(sql);
  }
}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

void Statement::reset() {
  sqlite3_reset(handle_);  // repeats the error of the last step, which has been thrown already
  sqlite3_clear_bindings(handle_);
}

bool Statement::step() {
  switch (sqlite3_step(handle_)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      sqlite3_reset(handle_);  // a statement left open would keep its transaction open
      return false;
    default:
      const std::string sql = sqlite3_sql(handle_);
      try {
        database_.fail(sql);
      } catch (...) {
        sqlite3_reset(handle_);
        throw;
      }
  }
}

void Statement::run() {
  while (step()) {
  }
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_, column);
}

std::string_view Statement::text(int column) const {
  return blob(column);
}

std::string_view Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(handle_, column);
  const int size = sqlite3_column_bytes(handle_, column);
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

std::optional<double> Statement::real(int column) const {
  switch (sqlite3_column_type(handle_, column)) {
    case SQLITE_NULL:
      return std::nullopt;
    case SQLITE_TEXT:
      return std::numeric_limits<double>::quiet_NaN();
    default:
      return sqlite3_column_double(handle_, column);
  }
}

void Statement::bind_one(int index, std::int64_t value) {
  if (sqlite3_bind_int64(handle_, index, value) != SQLITE_OK) database_.fail("bind");
}

void Statement::bind_one(int index, std::string_view text) {
  if (sqlite3_bind_text64(handle_, index, text.data() == nullptr ? "" : text.data(), text.size(),
                          SQLITE_TRANSIENT, SQLITE_UTF8) != SQLITE_OK) {
    database_.fail("bind");
  }
}

void Statement::bind_one(int index, Blob blob) {
  if (sqlite3_bind_blob64(handle_, index, blob.bytes.data(), blob.bytes.size(), SQLITE_TRANSIENT) !=
      SQLITE_OK) {
    database_.fail("bind");
  }
}

void Statement::bind_one(int index, const std::optional<double>& value) {
  if (value && std::isnan(*value)) {
    bind_one(index, std::string_view("nan"));
  } else if (value && sqlite3_bind_double(handle_, index, *value) != SQLITE_OK) {
    database_.fail("bind");
  }
}

Transaction::Transaction(Database& database, Does what) : database_(database) {
  database.execute(what == Does::write ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  if (open_ && sqlite3_get_autocommit(database_.handle()) == 0) {
    sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace pipewright::sqlite

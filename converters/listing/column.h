// Column and TextColumn: a column of a listing: values of its own, or values borrowed from a mapped
// plan.
//
//   Column<uint64_t> bytes;  bytes.push_back(4711);                    // a source fills it
//   auto mapped = Column<uint64_t>::Borrow(values);  use(mapped[row]); // a plan file lends it
//
// Filled and read like std::vector and std::string.
//
// Lifetime: a borrowing column, and its copies, must not outlive what they borrow from.
// Thread-safety: const from any thread.
// Errors: only columns that borrow nothing may be changed, through any member that is not const.
#ifndef SHARDPACK_CONVERTERS_LISTING_COLUMN_H_
#define SHARDPACK_CONVERTERS_LISTING_COLUMN_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardpack {

template <typename T>
class Column {
 public:
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = const T*;
  using reference = T&;
  using const_reference = const T&;
  using size_type = size_t;
  using difference_type = ptrdiff_t;

  Column() = default;
  Column(std::vector<T> values) : own_(std::move(values)) {}  // NOLINT(google-explicit-constructor)
  Column(std::initializer_list<T> values) : own_(values) {}
  static Column Borrow(std::span<const T> values) {
    Column column;
    column.borrowed_ = values;
    return column;
  }

  size_t size() const { return borrowed_.data() != nullptr ? borrowed_.size() : own_.size(); }
  bool empty() const { return size() == 0; }
  const T* data() const { return borrowed_.data() != nullptr ? borrowed_.data() : own_.data(); }
  const T& operator[](size_t i) const { return data()[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& back() const { return data()[size() - 1]; }
  operator std::span<const T>() const {  // NOLINT(google-explicit-constructor)
    return {data(), size()};
  }
  friend bool operator==(const Column& a, const Column& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  // The values, to be changed.
  std::vector<T>& own() { return own_; }
  T& operator[](size_t i) { return own_[i]; }
  iterator begin() { return own_.begin(); }
  iterator end() { return own_.end(); }
  T& back() { return own_.back(); }
  void push_back(const T& value) { own_.push_back(value); }
  void reserve(size_t count) { own_.reserve(count); }
  void resize(size_t count) { own_.resize(count); }
  void assign(size_t count, const T& value) { own_.assign(count, value); }
  void clear() { own_.clear(); }

 private:
  std::vector<T> own_;
  std::span<const T> borrowed_;  // its data is null: own_ has the values
};

class TextColumn {
 public:
  TextColumn() = default;
  TextColumn(std::string text) : own_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  TextColumn(const char* text) : own_(text) {}             // NOLINT(google-explicit-constructor)
  static TextColumn Borrow(std::string_view text) {
    TextColumn column;
    column.borrowed_ = text;
    return column;
  }

  operator std::string_view() const {  // NOLINT(google-explicit-constructor)
    return borrowed_.data() != nullptr ? borrowed_ : std::string_view(own_);
  }
  size_t size() const { return std::string_view(*this).size(); }
  bool empty() const { return size() == 0; }
  friend bool operator==(const TextColumn& a, const TextColumn& b) {
    return std::string_view(a) == std::string_view(b);
  }

  // The text, to be changed.
  std::string& own() { return own_; }
  void append(std::string_view text) { own_.append(text); }
  TextColumn& operator+=(std::string_view text) {
    own_.append(text);
    return *this;
  }
  void reserve(size_t bytes) { own_.reserve(bytes); }

 private:
  std::string own_;
  std::string_view borrowed_;  // its data is null: own_ has the text
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_COLUMN_H_

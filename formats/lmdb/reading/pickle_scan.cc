#include "formats/lmdb/reading/pickle_scan.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shardpack {
namespace {

using Kind = PickleValue::Kind;

// Enough for a pair of values or an unfinished list.
constexpr size_t kMaxStack = 8;
// CPython memoizes each object that it writes; these pickles refer back to a few at most.
constexpr size_t kMaxMemo = 64;

enum Opcode : uint8_t {
  kMarkOp = '(',
  kStopOp = '.',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinBytes8 = 0x8e,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kTuple2 = 0x86,
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kProto = 0x80,
  kFrame = 0x95,
};

struct Item {
  Kind kind = Kind::kNone;
  uint64_t offset = 0, length = 0, items = 0;
  int64_t integer = 0;
};

class Machine {
 public:
  Machine(Bytes pickle, const std::function<void(uint64_t, Bytes)>& on_item)
      : pickle_(pickle), on_item_(on_item) {}

  PickleValue Run() {
    while (problem_.empty() && !stopped_) Step();
    PickleValue value;
    if (problem_.empty() && at_ != pickle_.size()) problem_ = "bytes follow its end";
    if (problem_.empty() && (depth_ != 1 || stack_[0].kind == Kind::kMark)) {
      problem_ = "it is not a single value";
    }
    if (!problem_.empty()) {
      value.problem = absl::StrCat(problem_, " at byte ", at_);
      return value;
    }
    const Item& top = stack_[0];
    value.kind = top.kind;
    value.offset = top.offset;
    value.length = top.length;
    value.integer = top.integer;
    value.items = top.items;
    return value;
  }

 private:
  void Refuse(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
  }

  // Little-endian, up to eight bytes.
  uint64_t Number(size_t bytes) {
    if (bytes > pickle_.size() - at_) {
      Refuse("it ends early");
      return 0;
    }
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; ++i) {
      number |= std::to_integer<uint64_t>(pickle_[at_ + i]) << (8 * i);
    }
    at_ += bytes;
    return number;
  }

  int64_t Signed(size_t bytes) {
    const uint64_t number = Number(bytes);
    if (bytes == 0) return 0;
    const int unused = static_cast<int>(64 - 8 * bytes);
    return static_cast<int64_t>(number << unused) >> unused;
  }

  void Push(const Item& item) {
    if (!problem_.empty()) return;
    last_ = item;
    // An item of an unfinished list is passed on, not kept: lists are long.
    const bool in_list = depth_ >= 2 && stack_[depth_ - 1].kind == Kind::kMark &&
                         stack_[depth_ - 2].kind == Kind::kList;
    if (in_list) return AddToList(stack_[depth_ - 2], item);
    if (depth_ == kMaxStack) return Refuse("it holds more than a pair or a list");
    stack_[depth_++] = item;
  }

  void AddToList(Item& list, const Item& item) {
    if (item.kind != Kind::kBytes) return Refuse("a list of something else than bytes objects");
    if (on_item_) on_item_(list.items, pickle_.subspan(item.offset, item.length));
    ++list.items;
  }

  void PushBytes(size_t size_bytes) {
    const uint64_t length = Number(size_bytes);
    if (!problem_.empty()) return;
    if (length > pickle_.size() - at_) return Refuse("a bytes object passes its end");
    Push({.kind = Kind::kBytes, .offset = at_, .length = length});
    at_ += length;
  }

  void PushLong() {
    const uint64_t bytes = Number(1);
    if (bytes > 8) return Refuse("an integer of more than 64 bits");
    Push({.kind = Kind::kInteger, .integer = Signed(bytes)});
  }

  void MakePair() {
    if (depth_ < 2 || stack_[depth_ - 2].kind != Kind::kBytes ||
        stack_[depth_ - 1].kind != Kind::kInteger) {
      return Refuse("a pair of something else than bytes and an integer");
    }
    Item pair = stack_[depth_ - 2];
    pair.kind = Kind::kPair;
    pair.integer = stack_[depth_ - 1].integer;
    depth_ -= 2;
    Push(pair);
  }

  void Append() {
    if (depth_ < 2 || stack_[depth_ - 2].kind != Kind::kList) return Refuse("no list to append to");
    const Item item = stack_[--depth_];
    AddToList(stack_[depth_ - 1], item);
    last_ = stack_[depth_ - 1];
  }

  void Appends() {
    if (depth_ < 2 || stack_[depth_ - 1].kind != Kind::kMark ||
        stack_[depth_ - 2].kind != Kind::kList) {
      return Refuse("no list to append to");
    }
    last_ = stack_[--depth_ - 1];
  }

  void Put(uint64_t number) {
    if (depth_ == 0) return Refuse("nothing to remember");
    if (number < kMaxMemo) memo_[number] = last_;
  }

  void Get(uint64_t number) {
    if (number >= kMaxMemo || memo_[number].kind == Kind::kNone) {
      return Refuse("it refers back to what is not kept");
    }
    const Kind kind = memo_[number].kind;
    if (kind != Kind::kBytes && kind != Kind::kInteger) return Refuse("it refers to a container");
    Push(memo_[number]);
  }

  void Step() {
    const auto opcode = static_cast<uint8_t>(Number(1));
    if (!problem_.empty()) return;
    switch (opcode) {
      case kProto:
        if (const uint64_t protocol = Number(1); protocol < 2 || protocol > 5) {
          Refuse(absl::StrCat("protocol ", protocol));
        }
        return;
      case kFrame:
        (void)Number(8);
        return;
      case kBinInt:
        return Push({.kind = Kind::kInteger, .integer = Signed(4)});
      case kBinInt1:
        return Push({.kind = Kind::kInteger, .integer = static_cast<int64_t>(Number(1))});
      case kBinInt2:
        return Push({.kind = Kind::kInteger, .integer = static_cast<int64_t>(Number(2))});
      case kLong1:
        return PushLong();
      case kShortBinBytes:
        return PushBytes(1);
      case kBinBytes:
        return PushBytes(4);
      case kBinBytes8:
        return PushBytes(8);
      case kEmptyList:
        return Push({.kind = Kind::kList});
      case kMarkOp:
        return Push({.kind = Kind::kMark});
      case kAppend:
        return Append();
      case kAppends:
        return Appends();
      case kTuple2:
        return MakePair();
      case kBinPut:
        return Put(Number(1));
      case kLongBinPut:
        return Put(Number(4));
      case kMemoize:
        return Put(memoized_++);
      case kBinGet:
        return Get(Number(1));
      case kLongBinGet:
        return Get(Number(4));
      case kStopOp:
        stopped_ = true;
        return;
      default:
        return Refuse(absl::StrFormat("opcode 0x%02x, which is not one of plain data", opcode));
    }
  }

  const Bytes pickle_;
  const std::function<void(uint64_t, Bytes)>& on_item_;
  size_t at_ = 0;
  std::array<Item, kMaxStack> stack_;
  size_t depth_ = 0;
  std::array<Item, kMaxMemo> memo_;
  uint64_t memoized_ = 0;
  Item last_;
  bool stopped_ = false;
  std::string problem_;
};

}  // namespace

PickleValue ScanPickle(Bytes pickle,
                       const std::function<void(uint64_t number, Bytes item)>& on_item) {
  return Machine(pickle, on_item).Run();
}

}  // namespace shardpack

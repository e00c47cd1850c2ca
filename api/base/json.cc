#include "api/base/json.h"

#define RAPIDJSON_HAS_STDSTRING 0
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cmath>

namespace lockkeeper {
namespace {

constexpr int kMaxDepth = 200;

const Json& SharedNull() {
  static const Json null;
  return null;
}

// Builds a Json from SAX events.
class Builder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Builder> {
 public:
  explicit Builder(std::vector<std::string>* duplicates) : duplicates_(duplicates) {}

  bool Null() { return Add(Json()); }
  bool Bool(bool b) { return Add(Json(b)); }
  bool Int(int i) { return Add(Json(i)); }
  bool Uint(unsigned i) { return Add(Json(i)); }
  bool Int64(int64_t i) { return Add(Json(i)); }
  bool Uint64(uint64_t i) {
    return i > static_cast<uint64_t>(INT64_MAX) ? Add(Json(static_cast<double>(i)))
                                                : Add(Json(static_cast<int64_t>(i)));
  }
  bool Double(double d) { return Add(Json(d)); }
  bool String(const char* s, rapidjson::SizeType n, bool) { return Add(Json(std::string(s, n))); }
  bool Key(const char* s, rapidjson::SizeType n, bool) {
    keys_.back().assign(s, n);
    return true;
  }
  bool StartObject() { return Open(Json(Json::Object{})); }
  bool StartArray() { return Open(Json(Json::Array{})); }
  bool EndObject(rapidjson::SizeType) { return Close(); }
  bool EndArray(rapidjson::SizeType) { return Close(); }

  Json root;

 private:
  bool Open(Json value) {
    if (stack_.size() >= kMaxDepth) return false;
    stack_.push_back(std::move(value));
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    Json value = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    return Add(std::move(value));
  }
  bool Add(Json value) {
    if (stack_.empty()) {
      root = std::move(value);
      return true;
    }
    Json& top = stack_.back();
    if (top.IsArray()) {
      top.MutableArray().push_back(std::move(value));
      return true;
    }
    if (Json* old = top.Find(keys_.back())) {
      if (duplicates_ != nullptr) duplicates_->push_back(Path());
      *old = std::move(value);
      return true;
    }
    top.MutableObject().emplace_back(keys_.back(), std::move(value));
    return true;
  }
  std::string Path() const {
    std::string path;
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (stack_[i].IsArray()) {
        path += "[" + std::to_string(stack_[i].size()) + "]";
      } else {
        if (!path.empty()) path += ".";
        path += keys_[i];
      }
    }
    return path;
  }

  std::vector<Json> stack_;
  std::vector<std::string> keys_;  // one per open container: the key being read
  std::vector<std::string>* duplicates_;
};

// The length of the well-formed UTF-8 sequence that `text` starts with, else 0. Overlong forms, surrogates and
// code points over 10FFFF are not well formed.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

template <typename Writer>
void WriteString(std::string_view text, Writer& w) {
  size_t good = 0;
  while (good < text.size()) {
    const size_t n = Utf8Length(text.substr(good));
    if (n == 0) break;
    good += n;
  }
  if (good == text.size()) {
    w.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
    return;
  }
  // Bytes of others (a process's output, a file) may be no UTF-8: each becomes U+FFFD, so that what we print is
  // JSON whatever happens.
  std::string mended(text.substr(0, good));
  while (good < text.size()) {
    const size_t n = Utf8Length(text.substr(good));
    if (n == 0) {
      mended += "\xef\xbf\xbd";
    } else {
      mended += text.substr(good, n);
    }
    good += n == 0 ? 1 : n;
  }
  w.String(mended.data(), static_cast<rapidjson::SizeType>(mended.size()));
}

bool IsWhole(double d) { return std::trunc(d) == d && std::abs(d) < 9.2e18; }

template <typename Writer>
void Write(const Json& json, bool sorted, Writer& w) {
  if (json.IsNull()) {
    w.Null();
  } else if (json.IsBool()) {
    w.Bool(json.AsBool());
  } else if (json.IsInt()) {
    w.Int64(json.AsInt());
  } else if (json.IsDouble()) {
    const double d = json.AsDouble();
    if (sorted && IsWhole(d)) {
      w.Int64(static_cast<int64_t>(d));  // equal values print alike
    } else if (std::isfinite(d)) {
      w.Double(d);
    } else {
      w.Null();
    }
  } else if (json.IsString()) {
    WriteString(json.AsString(), w);
  } else if (json.IsArray()) {
    w.StartArray();
    for (const Json& item : json.AsArray()) Write(item, sorted, w);
    w.EndArray();
  } else {
    w.StartObject();
    const auto member = [&](const Json::Member& m) {
      WriteString(m.first, w);
      Write(m.second, sorted, w);
    };
    if (sorted) {
      std::vector<const Json::Member*> order;
      for (const auto& m : json.AsObject()) order.push_back(&m);
      std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->first < b->first; });
      for (const auto* m : order) member(*m);
    } else {
      for (const auto& m : json.AsObject()) member(m);
    }
    w.EndObject();
  }
}

std::string DumpWith(const Json& json, bool sorted) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  Write(json, sorted, writer);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace

Result<Json> Json::Parse(std::string_view text, std::vector<std::string>* duplicates) {
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  Builder builder(duplicates);
  constexpr unsigned kFlags =
      rapidjson::kParseValidateEncodingFlag | rapidjson::kParseFullPrecisionFlag | rapidjson::kParseIterativeFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, builder);
  if (result.IsError()) {
    return Status(Code::kInvalid, "not JSON at offset " + std::to_string(result.Offset()) + ": " +
                                      (result.Code() == rapidjson::kParseErrorTermination
                                           ? "nested deeper than " + std::to_string(kMaxDepth)
                                           : std::string(rapidjson::GetParseError_En(result.Code()))));
  }
  // To the library a NUL is the end of the text; to us it is a byte that does not belong there.
  if (stream.Tell() < text.size()) {
    return Status(Code::kInvalid, "not JSON at offset " + std::to_string(stream.Tell()) + ": a NUL after the value");
  }
  return std::move(builder.root);
}

std::string Json::Dump() const { return DumpWith(*this, false); }
std::string Json::DumpCanonical() const { return DumpWith(*this, true); }

std::string Json::DumpPretty() const {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer(buffer);
  writer.SetIndent(' ', 2);
  Write(*this, false, writer);
  return {buffer.GetString(), buffer.GetSize()};
}

bool Json::AsBool(bool other) const {
  const bool* b = std::get_if<bool>(&value_);
  return b != nullptr ? *b : other;
}

int64_t Json::AsInt(int64_t other) const {
  if (const int64_t* i = std::get_if<int64_t>(&value_)) return *i;
  if (const double* d = std::get_if<double>(&value_)) {
    if (IsWhole(*d)) return static_cast<int64_t>(*d);
  }
  return other;
}

double Json::AsDouble(double other) const {
  if (const double* d = std::get_if<double>(&value_)) return *d;
  if (const int64_t* i = std::get_if<int64_t>(&value_)) return static_cast<double>(*i);
  return other;
}

const std::string& Json::AsString() const {
  static const std::string empty;
  const std::string* s = std::get_if<std::string>(&value_);
  return s != nullptr ? *s : empty;
}

const Json::Array& Json::AsArray() const {
  static const Array empty;
  const Array* a = std::get_if<Array>(&value_);
  return a != nullptr ? *a : empty;
}

const Json::Object& Json::AsObject() const {
  static const Object empty;
  const Object* o = std::get_if<Object>(&value_);
  return o != nullptr ? *o : empty;
}

Json::Array& Json::MutableArray() {
  if (IsNull()) value_ = Array{};
  LK_CHECK(IsArray());
  return std::get<Array>(value_);
}

Json::Object& Json::MutableObject() {
  if (IsNull()) value_ = Object{};
  LK_CHECK(IsObject());
  return std::get<Object>(value_);
}

size_t Json::size() const { return IsArray() ? AsArray().size() : AsObject().size(); }

const Json* Json::Find(std::string_view key) const {
  for (const auto& [name, value] : AsObject()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json* Json::Find(std::string_view key) { return const_cast<Json*>(static_cast<const Json*>(this)->Find(key)); }

const Json& Json::Get(std::string_view key) const {
  const Json* found = Find(key);
  return found != nullptr ? *found : SharedNull();
}

const Json& Json::At(std::initializer_list<std::string_view> path) const {
  const Json* at = this;
  for (std::string_view key : path) at = &at->Get(key);
  return *at;
}

Json& Json::operator[](std::string_view key) {
  if (Json* found = Find(key)) return *found;
  return MutableObject().emplace_back(std::string(key), Json()).second;
}

bool Json::Remove(std::string_view key) {
  if (!IsObject()) return false;
  Object& object = MutableObject();
  const auto it = std::find_if(object.begin(), object.end(), [&](const Member& m) { return m.first == key; });
  if (it == object.end()) return false;
  object.erase(it);
  return true;
}

bool Json::operator==(const Json& other) const {
  if (IsNumber() && other.IsNumber()) {
    if (IsInt() && other.IsInt()) return AsInt() == other.AsInt();
    return AsDouble() == other.AsDouble();
  }
  if (value_.index() != other.value_.index()) return false;
  if (IsObject()) {
    if (size() != other.size()) return false;
    for (const auto& [name, value] : AsObject()) {
      const Json* found = other.Find(name);
      if (found == nullptr || !(*found == value)) return false;
    }
    return true;
  }
  if (IsArray()) return AsArray() == other.AsArray();
  return value_ == other.value_;
}

}  // namespace lockkeeper

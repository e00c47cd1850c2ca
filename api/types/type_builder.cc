#include "api/types/type_builder.h"

#include <algorithm>
#include <array>
#include <memory>

namespace lockkeeper {

const FieldInfo* TypeInfo::Find(std::string_view field) const {
  for (const FieldInfo& f : fields) {
    if (f.name == field) return &f;
  }
  return nullptr;
}

std::string CelName(std::string_view json_name) {
  static constexpr std::array<std::string_view, 22> kReserved = {
      "true", "false",  "null", "in",   "as",      "break",     "const",  "continue", "else", "for",   "function",
      "if",   "import", "let",  "loop", "package", "namespace", "return", "var",      "void", "while", "__reserved__"};
  if (std::find(kReserved.begin(), kReserved.end(), json_name) == kReserved.end()) return std::string(json_name);
  return "__" + std::string(json_name) + "__";
}

ValueInfo& FieldRef::Leaf() { return field_->value.items ? *field_->value.items : field_->value; }

FieldRef& FieldRef::Required() {
  field_->required = true;
  field_->keep_zero = true;
  return *this;
}

FieldRef& FieldRef::Immutable() {
  field_->immutable = true;
  return *this;
}

FieldRef& FieldRef::Default(Json value) {
  field_->default_value = std::move(value);
  field_->keep_zero = true;
  return *this;
}

FieldRef& FieldRef::Range(int64_t minimum, int64_t maximum) {
  Leaf().minimum = minimum;
  Leaf().maximum = maximum;
  return *this;
}

FieldRef& FieldRef::Length(int64_t minimum, int64_t maximum) {
  if (minimum > 0) Leaf().min_length = minimum;
  Leaf().max_length = maximum;
  return *this;
}

FieldRef& FieldRef::Pattern(std::string pattern, std::string hint) {
  Leaf().pattern = std::move(pattern);
  Leaf().pattern_hint = std::move(hint);
  return *this;
}

FieldRef& FieldRef::Items(int64_t minimum, int64_t maximum) {
  if (minimum > 0) field_->value.min_items = minimum;
  field_->value.max_items = maximum;
  return *this;
}

FieldRef& FieldRef::Keys(int64_t maximum) {
  field_->value.max_properties = maximum;
  return *this;
}

FieldRef& FieldRef::Set() {
  field_->value.list_type = ListType::kSet;
  return *this;
}

FieldRef& FieldRef::ListMap(std::vector<std::string> keys) {
  field_->value.list_type = ListType::kMap;
  field_->value.list_map_keys = std::move(keys);
  return *this;
}

FieldRef& FieldRef::Micro() {
  field_->value.micro = true;
  return *this;
}

FieldRef& FieldRef::Check(std::string cel, std::string message, std::function<bool(const Json&, const Json*)> holds) {
  field_->value.rules.push_back({std::move(cel), std::move(message), std::move(holds)});
  return *this;
}

TypeBuilderBase::TypeBuilderBase(std::string name, std::string doc) : type_(std::make_unique<TypeInfo>()) {
  type_->name = std::move(name);
  type_->doc = std::move(doc);
}

FieldRef TypeBuilderBase::Add(std::string name, std::string doc, size_t offset, ValueInfo schema,
                              const ValueCodec* codec) {
  LK_CHECK(type_->Find(name) == nullptr);
  FieldInfo& field = type_->fields.emplace_back();
  field.name = std::move(name);
  field.doc = std::move(doc);
  field.offset = offset;
  field.value = std::move(schema);
  field.codec = codec;
  return FieldRef(&field);
}

void TypeBuilderBase::AddInline(const TypeInfo& type, size_t offset) {
  for (FieldInfo field : type.fields) {
    LK_CHECK(type_->Find(field.name) == nullptr);
    field.offset += offset;
    type_->fields.push_back(std::move(field));
  }
  for (const Rule& rule : type.rules) type_->rules.push_back(rule);
}

void TypeBuilderBase::Check(std::string cel, std::string message, std::function<bool(const Json&, const Json*)> holds) {
  type_->rules.push_back({std::move(cel), std::move(message), std::move(holds)});
}

void TypeBuilderBase::Member(std::string_view discriminator, std::string_view value, std::string_view member) {
  const std::string d(discriminator), v(value), m(member);
  Check("(self." + CelName(d) + " == '" + v + "') == has(self." + CelName(m) + ")",
        m + " is required when " + d + " is " + v + ", and only then",
        [d, v, m](const Json& self, const Json*) { return (self.Get(d).AsString() == v) == self.Has(m); });
}

void TypeBuilderBase::MemberOnlyWith(std::string_view discriminator, std::string_view value, std::string_view member) {
  const std::string d(discriminator), v(value), m(member);
  Check("!has(self." + CelName(m) + ") || self." + CelName(d) + " == '" + v + "'",
        m + " is only allowed when " + d + " is " + v,
        [d, v, m](const Json& self, const Json*) { return !self.Has(m) || self.Get(d).AsString() == v; });
}

void TypeBuilderBase::ImmutableBut(std::vector<std::string> mutable_fields, std::string hint) {
  for (FieldInfo& field : type_->fields) {
    if (std::find(mutable_fields.begin(), mutable_fields.end(), field.name) == mutable_fields.end()) {
      field.immutable = true;
    }
  }
  immutable_hint_ = std::move(hint);
}

const TypeInfo* TypeBuilderBase::Build() {
  // One rule per immutable field, on the struct, so that adding and removing an optional field is seen too.
  for (const FieldInfo& field : type_->fields) {
    if (!field.immutable) continue;
    const std::string name = field.name;
    const std::string self = "self." + CelName(name), old_self = "oldSelf." + CelName(name);
    const bool always = field.required || !field.default_value.IsNull();
    Check(always ? self + " == " + old_self
                 : "has(" + self + ") == has(" + old_self + ") && (!has(" + self + ") || " + self + " == " + old_self +
                       ")",
          name + " is immutable" + (immutable_hint_.empty() ? "" : ": " + immutable_hint_),
          [name](const Json& now, const Json* old) {
            const Json* a = now.Find(name);
            const Json* b = old->Find(name);
            return (a == nullptr) == (b == nullptr) && (a == nullptr || *a == *b);
          });
  }
  // Two rules with one text break a server-side apply of the CRD.
  const auto check_rules = [](const std::vector<Rule>& rules) {
    for (size_t i = 0; i < rules.size(); ++i) {
      LK_CHECK(!rules[i].message.empty() && rules[i].message.find('\n') == std::string::npos);
      for (size_t j = 0; j < i; ++j) LK_CHECK(rules[i].cel != rules[j].cel);
    }
  };
  check_rules(type_->rules);
  for (const FieldInfo& field : type_->fields) check_rules(field.value.rules);
  return type_.release();
}

}  // namespace lockkeeper

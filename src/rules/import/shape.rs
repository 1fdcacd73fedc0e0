//! What a gitleaks configuration may hold: each key with the kind of its value, and what is wrong with a text of another
//! shape, by key and place.

use toml::de::{DeTable, DeValue};

/// Kind of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Text,
    Texts,
    Number,
    Count,
    Flag,
    /// A table of these keys.
    Table(Keys),
    /// A list of such tables.
    Tables(Keys),
    /// One such table, or a list of them.
    OneOrMany(Keys),
    /// A list of whatever there is.
    List,
}

/// Keys of a table, and what stands behind each.
pub(super) type Keys = &'static [(&'static str, Shape)];

pub(super) const CONFIG: Keys = &[
    ("title", Shape::Text),
    ("description", Shape::Text),
    ("minVersion", Shape::Text),
    ("extend", Shape::Table(EXTEND)),
    ("allowlist", Shape::OneOrMany(ALLOW)),
    ("allowlists", Shape::Tables(ALLOW)),
    ("rules", Shape::Tables(RULE)),
];

pub(super) const EXTEND: Keys = &[
    ("useDefault", Shape::Flag),
    ("path", Shape::Text),
    ("url", Shape::Text),
    ("disabledRules", Shape::Texts),
];

pub(super) const RULE: Keys = &[
    ("id", Shape::Text),
    ("description", Shape::Text),
    ("regex", Shape::Text),
    ("path", Shape::Text),
    ("secretGroup", Shape::Count),
    ("entropy", Shape::Number),
    ("keywords", Shape::Texts),
    ("tags", Shape::Texts),
    ("allowlist", Shape::OneOrMany(ALLOW)),
    ("allowlists", Shape::Tables(ALLOW)),
    ("required", Shape::List),
    ("skipReport", Shape::Flag),
];

pub(super) const ALLOW: Keys = &[
    ("description", Shape::Text),
    ("condition", Shape::Text),
    ("commits", Shape::Texts),
    ("paths", Shape::Texts),
    ("regexTarget", Shape::Text),
    ("regexes", Shape::Texts),
    ("stopwords", Shape::Texts),
    ("targetRules", Shape::Texts),
];

/// A value that is not of the shape of its key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misshapen {
    /// Where it stands, in bytes.
    pub(super) at: usize,
    /// What is wrong with it.
    pub(super) message: String,
}

/// The first value of `table` that is not of the shape of its key. Keys that are not known may hold anything.
pub(super) fn misshapen(table: &DeTable<'_>, keys: Keys) -> Option<Misshapen> {
    let wrong = table.iter().filter_map(|(key, value)| {
        let (name, shape) = keys.iter().find(|(name, _)| name == key.get_ref())?;
        wrong_of(name, *shape, value.get_ref(), value.span().start)
    });
    wrong.min_by_key(|wrong| wrong.at)
}

fn wrong_of(key: &str, shape: Shape, value: &DeValue<'_>, at: usize) -> Option<Misshapen> {
    let is_right = match (shape, value) {
        (Shape::Text, DeValue::String(_))
        | (Shape::Flag, DeValue::Boolean(_))
        | (Shape::Number, DeValue::Float(_) | DeValue::Integer(_))
        | (Shape::List, DeValue::Array(_)) => true,
        // What is read as a number has to fit one.
        (Shape::Count, DeValue::Integer(number)) => {
            u32::from_str_radix(number.as_str(), number.radix()).is_ok()
        }
        (Shape::Texts, DeValue::Array(items)) => {
            let other = items.iter().find(|item| !matches!(item.get_ref(), DeValue::String(_)));
            return other.map(|item| told(key, "must hold texts", item.get_ref(), item.span().start));
        }
        (Shape::Table(keys) | Shape::OneOrMany(keys), DeValue::Table(table)) => {
            return misshapen(table, keys);
        }
        (Shape::Tables(keys) | Shape::OneOrMany(keys), DeValue::Array(items)) => {
            let of_item = |item: &toml::Spanned<DeValue<'_>>| match item.get_ref() {
                DeValue::Table(table) => misshapen(table, keys),
                other => Some(told(key, "must hold tables", other, item.span().start)),
            };
            return items.iter().find_map(of_item);
        }
        _ => false,
    };
    let wanted = match shape {
        Shape::Text => "must be a text in quotes".to_owned(),
        Shape::Texts => "must be a list of texts, such as [\"a\", \"b\"]".to_owned(),
        Shape::Number => "must be a number, such as 3.5".to_owned(),
        Shape::Count => "must be a whole number from 0 on".to_owned(),
        Shape::Flag => "must be true or false".to_owned(),
        Shape::Table(_) => "must be a table".to_owned(),
        Shape::Tables(_) => format!("must be a list of tables: write [[…{key}]]"),
        Shape::OneOrMany(_) => "must be a table, or a list of tables".to_owned(),
        Shape::List => "must be a list".to_owned(),
    };
    (!is_right).then(|| told(key, &wanted, value, at))
}

fn told(key: &str, wanted: &str, value: &DeValue<'_>, at: usize) -> Misshapen {
    let kind = match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    Misshapen { at, message: format!("`{key}` {wanted}; this is {kind}") }
}

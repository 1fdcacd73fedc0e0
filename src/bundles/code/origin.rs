//! Where values begin: variables of the environment, and functions that decode.

use std::rc::Rc;

use super::call::Arguments;
use super::decode;
use super::follow::Walk;
use super::large;
use super::library::{HOME, variable_taint};
use super::taint::Taint;
use super::value::{Shape, TEXT_BYTES_MAX, Value};

impl Walk<'_> {
    /// The environment read as a whole or by name.
    pub fn environment(&mut self, path: &str, callee: &Value, arguments: &Arguments) -> Option<Value> {
        let name = || arguments.first().and_then(|(_, value)| value.known_text());
        let default = || arguments.get(1).map(|(_, value)| value.clone()).unwrap_or_default();
        let is_one = matches!(
            path,
            "os.getenv"
                | "os.environ.get"
                | "os.environ.pop"
                | "os.environ.setdefault"
                | "Deno.env.get"
                | "os.getenvb"
                | "decouple.config"
                | "process.env.get"
        );
        if is_one {
            let value = match name() {
                Some(name) => self.variable(&name),
                None => Value::unknown(Taint::VARIABLE),
            };
            let about = value.about.clone();
            // What stands in for a missing variable is as likely, unless it says nothing.
            return Some(match default() {
                default if default.as_text().is_some_and(|text| text.is_empty()) => value,
                default => default.or(value.clone()).with(value.taint).about(about),
            });
        }
        // What a page keeps in the browser.
        if matches!(path, "localStorage.getItem" | "sessionStorage.getItem") {
            return Some(name().map_or_else(Value::default, |name| self.kept_in_browser(&name)));
        }
        let is_all = matches!(
            path,
            "os.environ.copy" | "os.environ.items" | "os.environ.values" | "Deno.env.toObject"
        );
        is_all.then(|| Value::unknown(callee.taint | Taint::ENVIRONMENT))
    }

    /// A variable of the environment.
    pub fn variable(&mut self, name: &str) -> Value {
        match name {
            "HOME" | "USERPROFILE" => Value::text(HOME).with(Taint::HOST_USER),
            "APPDATA" => Value::text("~/AppData/Roaming"),
            "LOCALAPPDATA" => Value::text("~/AppData/Local"),
            "TEMP" | "TMP" => Value::text("~/AppData/Local/Temp"),
            "TMPDIR" => Value::text("/tmp"),
            name => Value::unknown(variable_taint(name)).about(Some(Rc::from(name))),
        }
    }

    /// What a page keeps in the browser under a name.
    pub fn kept_in_browser(&self, name: &str) -> Value {
        let taint = variable_taint(name) & Taint::SECRET_VARIABLE;
        Value::unknown(taint).about(Some(Rc::from(name)).filter(|_| !taint.is_none()))
    }

    /// Functions that decode; what they give is tainted even where it cannot be computed.
    pub fn decoder(&mut self, path: &str, arguments: &Arguments, taint: Taint) -> Option<Value> {
        let first = &arguments.first()?.1;
        let second =
            || arguments.get(1).and_then(|(_, value)| value.known_text()).map(|t| t.to_ascii_lowercase());
        let bytes = first.as_bytes().filter(|bytes| bytes.len() <= 2 * TEXT_BYTES_MAX);
        if !self.step(bytes.as_ref().map_or(0, |bytes| bytes.len() / 16)) {
            return None;
        }
        let given = |decode: &dyn Fn(&[u8]) -> Option<Vec<u8>>| bytes.as_deref().and_then(decode);
        let decoded: Option<Vec<u8>> = match path {
            "base64.b64decode"
            | "base64.standard_b64decode"
            | "base64.urlsafe_b64decode"
            | "base64.decodebytes"
            | "base64.decodestring"
            | "binascii.a2b_base64"
            | "atob"
            | "js-base64.decode"
            | "Base64.decode" => given(&decode::base64),
            "base64.b32decode" => given(&decode::base32),
            "base64.b16decode"
            | "binascii.unhexlify"
            | "binascii.a2b_hex"
            | "builtins.bytes.fromhex"
            | "builtins.bytearray.fromhex" => given(&decode::hex),
            "base64.b85decode" => given(&|bytes| decode::base85(bytes, false)),
            "base64.a85decode" => given(&|bytes| decode::base85(bytes, true)),
            "Buffer.from" | "Buffer" => match second().as_deref() {
                Some("base64" | "base64url") => given(&decode::base64),
                Some("hex") => given(&decode::hex),
                _ => {
                    let listed = matches!(first.shape, Shape::List(_));
                    let hidden = if listed { Taint::HIDDEN } else { Taint::NONE };
                    let value = bytes.map_or(Value::unknown(taint), |bytes| Value::of(Shape::Bytes(bytes)));
                    return Some(value.with(taint | hidden));
                }
            },
            // A large number, whose bytes are a text for whoever decodes them.
            "builtins.int.to_bytes" | "Crypto.Util.number.long_to_bytes" | "libnum.n2s" => {
                let length = arguments.get(1).map(|(_, value)| value);
                let order =
                    argument_named(arguments, "byteorder").or(arguments.get(2).map(|(_, value)| value));
                return Some(bytes_of_number(first, length, order)?.with(taint | Taint::HIDDEN));
            }
            // Numbers of bytes in a row, which are a text for whoever decodes them.
            "Uint8Array" | "Uint8Array.from" | "Uint8Array.of" | "struct.pack" | "array.array" => {
                let bytes: Option<Vec<u8>> = match path {
                    "struct.pack" => {
                        let numbers: Vec<_> =
                            arguments.iter().skip(1).map(|(_, value)| value.as_number()).collect();
                        large::packed(&first.known_text()?, &numbers)
                    }
                    "array.array" => arguments.get(1)?.1.as_list()?.iter().map(Value::as_byte).collect(),
                    "Uint8Array.of" => arguments.iter().map(|(_, value)| value.as_byte()).collect(),
                    _ => first.as_list().map(|list| list.iter().map(Value::as_byte).collect())?,
                };
                let bytes = bytes.filter(|bytes| (4..=TEXT_BYTES_MAX).contains(&bytes.len()))?;
                return Some(Value::of(Shape::Bytes(bytes.into())).with(taint | Taint::HIDDEN));
            }
            "codecs.decode" | "codecs.encode" => match second().as_deref()?.replace('-', "_").as_str() {
                "rot13" | "rot_13" => {
                    let text = first.known_text().map(|text| decode::rot13(&text));
                    let value = text.map_or(Value::unknown(taint), Value::text);
                    return Some(value.with(taint | Taint::DECODED | Taint::HIDDEN));
                }
                "unicode_escape" | "raw_unicode_escape" | "unicodeescape" => {
                    let value = match bytes.as_deref().map(String::from_utf8_lossy) {
                        Some(text) => Value::text(decode::escapes(&text)),
                        None => Value::unknown(taint),
                    };
                    return Some(value.with(taint | Taint::DECODED | Taint::HIDDEN));
                }
                "hex" | "hex_codec" => given(&decode::hex),
                "base64" | "base64_codec" => given(&decode::base64),
                "zlib" | "zlib_codec" | "bz2" => given(&|bytes| decode::inflate(bytes).map(|b| b.to_vec())),
                _ => return None,
            },
            "zlib.decompress"
            | "gzip.decompress"
            | "zlib.inflateSync"
            | "zlib.gunzipSync"
            | "zlib.unzipSync"
            | "zlib.inflateRawSync"
            | "pako.inflate"
            | "pako.ungzip"
            | "fflate.decompressSync"
            | "zlib.inflate" => given(&|bytes| decode::inflate(bytes).map(|bytes| bytes.to_vec())),
            "unescape" | "decodeURIComponent" | "decodeURI" | "urllib.parse.unquote" | "urllib.unquote" => {
                let value = match first.known_text() {
                    Some(text) => {
                        let hidden = if text.matches('%').count() * 4 > text.len() {
                            Taint::HIDDEN
                        } else {
                            Taint::NONE
                        };
                        Value::text(decode::percent(&text)).with(hidden)
                    }
                    None => Value::unknown(taint),
                };
                return Some(value.with(taint));
            }
            _ => return None,
        };
        let is_text = path == "atob" || path.ends_with(".decode") && path.contains("ase64");
        let value = match decoded {
            Some(bytes) if is_text => {
                Value::text(bytes.iter().map(|byte| char::from(*byte)).collect::<String>())
            }
            Some(bytes) => Value::of(Shape::Bytes(bytes.into())),
            None => Value::unknown(taint),
        };
        Some(value.with(taint | Taint::DECODED))
    }
}

/// An argument by its name.
fn argument_named<'v>(arguments: &'v Arguments, name: &str) -> Option<&'v Value> {
    arguments.iter().find(|(given, _)| given.as_deref() == Some(name)).map(|(_, value)| value)
}

/// The bytes of a number, in a row of a length where one is given.
pub(super) fn bytes_of_number(
    number: &Value,
    length: Option<&Value>,
    order: Option<&Value>,
) -> Option<Value> {
    let bytes = match &number.shape {
        Shape::Number(number) if *number >= 0.0 => large::bytes_of(&format!("{number:.0}"))?,
        _ => large::bytes_of(&number.known_text()?)?,
    };
    let is_little = order.and_then(Value::known_text).as_deref() == Some("little");
    let length = length.and_then(Value::as_number).map(|length| length as usize);
    // A length that is not known is the one that fits.
    let bytes = large::padded(bytes.clone(), length.unwrap_or(bytes.len()), is_little)?;
    Some(Value::of(Shape::Bytes(bytes.into())))
}

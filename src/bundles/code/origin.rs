//! Where values begin: variables of the environment, and functions that decode.

use std::rc::Rc;

use super::call::Arguments;
use super::decode;
use super::follow::Walk;
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
            // Numbers of bytes in a row, which are a text for whoever decodes them.
            "Uint8Array" | "Uint8Array.from" | "Uint8Array.of" | "struct.pack" => {
                let bytes: Option<Vec<u8>> = match path {
                    "struct.pack" => arguments.iter().skip(1).map(|(_, value)| value.as_byte()).collect(),
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

//! Pages: addresses that a browser fetches by itself as soon as they stand in an element, and keys that are pressed.

use std::rc::Rc;

use super::Language;
use super::call::Arguments;
use super::follow::Walk;
use super::taint::Taint;
use super::value::{Shape, Value};

/// Members of elements whose address, or the addresses in whose text, a browser fetches.
const MEMBERS: &[&str] = &[
    "src",
    "srcset",
    "href",
    "action",
    "formAction",
    "data",
    "poster",
    "background",
    "backgroundImage",
    "cssText",
    "content",
    "innerHTML",
    "outerHTML",
    "srcdoc",
    "listStyleImage",
    "borderImage",
    "cursor",
];
/// Methods that put such an address or text into a page.
const METHODS: &[&str] = &[
    "write",
    "writeln",
    "insertAdjacentHTML",
    "setAttribute",
    "setAttributeNS",
    "setProperty",
    "insertRule",
    "setHTMLUnsafe",
    "createContextualFragment",
    "open",
];
/// Events of keys.
const KEYS: &[&str] = &["keydown", "keypress", "keyup"];

/// Whether a text holds an address of another machine.
fn has_address(value: &Value) -> bool {
    value.as_text().is_some_and(|text| text.contains("//") && !text.contains("//localhost"))
}

impl Walk<'_> {
    /// A member of an element that is given a text.
    pub fn shown(&mut self, name: &str, value: &Value, at: u32) {
        if self.language != Language::JavaScript {
            return;
        }
        if MEMBERS.contains(&name) && has_address(value) {
            self.record("element.address=", &[(None, value.clone())], at, Taint::NONE);
        }
        if let Some(event) = name.strip_prefix("on").filter(|event| KEYS.contains(event)) {
            self.pressed(event, value, at);
        }
    }

    /// A method that puts a text into a page, or that waits for keys.
    pub fn shown_by(&mut self, method: &str, arguments: &Arguments, at: u32) {
        if self.language != Language::JavaScript {
            return;
        }
        if METHODS.contains(&method)
            && let Some(nth) = arguments.iter().position(|(_, value)| has_address(value))
        {
            self.record("element.address=", arguments, at, Taint::NONE);
            // Behind the name of an attribute the address stands by itself.
            if nth > 0 {
                self.record("element.address=", &arguments[nth..=nth], at, Taint::NONE);
            }
        }
        if matches!(method, "addEventListener" | "on")
            && let [(_, event), .., (_, function)] = arguments
            && let Some(event) = event.known_text()
        {
            let functions = arguments.iter().map(|(_, value)| value).find(|value| value.is_callable());
            let function = functions.unwrap_or(function).clone();
            self.pressed(&event, &function, at);
        }
    }

    /// Calls what waits for keys with a key.
    fn pressed(&mut self, event: &str, function: &Value, at: u32) {
        if !event.split(' ').any(|event| KEYS.contains(&event)) || !function.is_callable() {
            return;
        }
        let key = |name: &str| (Rc::from(name), Value::unknown(Taint::KEYS));
        let entries = ["key", "code", "keyCode", "which", "charCode"].map(key);
        let event = Value::of(Shape::Map(Rc::new(entries.into())));
        self.call(function, &[(None, event)], at, false);
    }
}

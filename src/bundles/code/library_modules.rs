//! Functions of the languages that look something up by its name: members, modules and what knows where they are.

use std::rc::Rc;

use super::call::Arguments;
use super::follow::Walk;
use super::name::PUT_TOGETHER;
use super::taint::Taint;
use super::value::{Shape, Value};

impl Walk<'_> {
    /// What a function gives that looks something up by its name; `None` for other functions.
    pub fn module_function(
        &mut self,
        path: &Rc<str>,
        callee: &Value,
        arguments: &Arguments,
        at: u32,
    ) -> Option<Value> {
        let first = arguments.first().map(|(_, value)| value);
        let taint = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
        Some(match &**path {
            "builtins.getattr" | "Reflect.get" | "inspect.getattr_static" | "_.get" => {
                let (base, name) = (first?, &arguments.get(1)?.1);
                let how = name.taint & PUT_TOGETHER | Taint::ASSEMBLED;
                match name.known_text() {
                    Some(name) => {
                        let member = self.member(base, &name, matches!(base.shape, Shape::Api(_)));
                        if matches!(base.shape, Shape::Unknown) { member.with(how) } else { member }
                    }
                    // Any function of a module by a name that is not known.
                    None => {
                        let name = base.api_name().map(|module| format!("{module}.*"));
                        name.map_or(Value::unknown(taint), Value::api).with(taint)
                    }
                }
            }
            "builtins.vars" | "inspect.getmembers" | "inspect.getmembers_static" if first.is_some() => {
                let of = first?;
                match &of.shape {
                    Shape::Api(module) => Value::api(format!("{module}.__dict__")),
                    Shape::Object(_) | Shape::Class(_) => of.clone(),
                    _ => return None,
                }
            }
            // A module by way of what knows where it is.
            "importlib.util.find_spec" | "importlib.find_loader" | "pkgutil.find_loader" => {
                Value::api("importlib.spec()").with(first?.taint & PUT_TOGETHER).about(first?.known_text())
            }
            "importlib.util.module_from_spec" => {
                let name = first?.about.clone()?;
                self.module(&name, at).with(Taint::HIDDEN)
            }
            "importlib.spec().loader.load_module" | "importlib.spec().load_module" => {
                let name = callee.about.clone()?;
                self.module(&name, at).with(Taint::HIDDEN)
            }
            "builtins.__loader__.load_module"
            | "importlib.machinery.BuiltinImporter.load_module"
            | "importlib._bootstrap._load"
            | "zipimport.zipimporter().load_module" => {
                let name = first?.known_text()?;
                self.module(&name, at).with(Taint::HIDDEN)
            }
            "pydoc.locate" | "pkgutil.resolve_name" => {
                let text = first?.known_text()?;
                match super::callback::split_name(&text) {
                    Some((module, name)) => {
                        let module = self.module(module, at);
                        self.member(&module, &name, true)
                    }
                    None => self.module(&text, at).with(Taint::HIDDEN),
                }
            }
            "builtins.__import__"
            | "importlib.import_module"
            | "importlib.__import__"
            | "require"
            | "import"
            | "builtins.reload"
            | "importlib.reload"
            | "createRequire()"
            | "process.getBuiltinModule"
            | "module.createRequire()" => {
                let name = first?;
                if let Some(module) = name.api_name() {
                    return Some(Value::api(module.clone()));
                }
                let hidden = if name.taint.meets(PUT_TOGETHER) { Taint::HIDDEN } else { Taint::NONE };
                self.record(path, arguments, at, callee.taint);
                if let Some(module) = name.known_text()
                    && let Some(value) = self.sibling(&module, at)
                {
                    return Some(value);
                }
                match name.known_text() {
                    Some(module) => {
                        // `__import__("a.b")` gives `a`.
                        let full = self.module(&module, at);
                        let head = module.split('.').next().unwrap_or_default();
                        if &**path == "builtins.__import__" && arguments.len() == 1 {
                            self.module(head, at).with(hidden)
                        } else {
                            full.with(hidden)
                        }
                    }
                    None => Value::unknown(hidden | name.taint.without(PUT_TOGETHER)),
                }
            }
            _ => return None,
        })
    }
}

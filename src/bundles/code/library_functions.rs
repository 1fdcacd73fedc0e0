//! Functions of the languages and their libraries that take functions or make them: maps, partial functions, threads,
//! decorators, codecs, and text that becomes a function.

use std::rc::Rc;

use super::call::Arguments;
use super::follow::Walk;
use super::taint::Taint;
use super::value::{Shape, Value};

/// Tables of settings that are looked at in one call.
const TABLES_MAX: usize = 200;

impl Walk<'_> {
    /// What a function gives that takes functions or makes them; `None` for other functions.
    pub fn function_function(
        &mut self,
        path: &Rc<str>,
        callee: &Value,
        arguments: &Arguments,
        at: u32,
    ) -> Option<Value> {
        let first = arguments.first().map(|(_, value)| value);
        let taint = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
        Some(match &**path {
            "builtins.map" | "builtins.filter" => {
                let (function, list) = (first?.clone(), &arguments.get(1)?.1);
                let name = if &**path == "builtins.map" { "map" } else { "filter" };
                let Some(elements) = self.elements(list) else {
                    let given = [(None, Value::unknown(list.deep_taint()).about(list.about.clone()))];
                    let value = self.call(&function, &given, at, false);
                    return Some(Value::unknown(value.deep_taint() | taint));
                };
                let method = Value::of(Shape::Method(Rc::new((Value::list(elements), Rc::from(name)))));
                self.call(&method, &[(None, function)], at, false)
            }
            "functools.reduce" | "builtins.reduce" => {
                let list = Value::list(self.elements(&arguments.get(1)?.1)?);
                let mut given = vec![(None, first?.clone())];
                given.extend(arguments.get(2).cloned());
                let method = Value::of(Shape::Method(Rc::new((list, Rc::from("reduce")))));
                self.call(&method, &given, at, false)
            }
            "functools.partial" | "functools.partialmethod" => {
                let given = arguments.iter().skip(1).cloned().collect();
                Value::of(Shape::Partial(Rc::new((first?.clone(), given))))
            }
            // A function that is no method, and one of which the first argument is the class.
            "builtins.staticmethod" => Value::of(Shape::Partial(Rc::new((first?.clone(), Vec::new())))),
            "builtins.classmethod" => {
                let class = (None, Value::default());
                Value::of(Shape::Partial(Rc::new((first?.clone(), vec![class]))))
            }
            "builtins.property" | "functools.cached_property" => {
                let named = arguments.iter().find(|(name, _)| name.as_deref() == Some("fget"));
                let getter = named.map(|(_, value)| value).or(first)?;
                Value::of(Shape::Getter(Rc::new(getter.clone())))
            }
            "operator.attrgetter" | "operator.itemgetter" => {
                let name = first?.clone();
                let get = Value::api("operator.*getter()");
                Value::of(Shape::Partial(Rc::new((get, vec![(None, name)]))))
            }
            "operator.methodcaller" => {
                let get = Value::api("operator.methodcaller()");
                Value::of(Shape::Partial(Rc::new((get, arguments.to_vec()))))
            }
            "operator.*getter()" => {
                let name = first?.known_text()?;
                let base = arguments.get(1)?.1.clone();
                self.member(&base, &name, matches!(base.shape, Shape::Api(_)))
            }
            "operator.methodcaller()" => {
                let name = first?.known_text()?;
                let (_, base) = arguments.last()?;
                let function = self.member(&base.clone(), &name, matches!(base.shape, Shape::Api(_)));
                self.call(&function, &arguments[1..arguments.len() - 1], at, false)
            }
            // What takes a function and calls it with given arguments.
            "threading.Thread"
            | "multiprocessing.Process"
            | "threading.Timer"
            | "_thread.start_new_thread" => {
                let named =
                    |name: &str| arguments.iter().find(|(n, _)| n.as_deref() == Some(name)).map(|(_, v)| v);
                let function =
                    named("target").or_else(|| arguments.iter().map(|(_, v)| v).find(|v| v.is_callable()))?;
                let list = named("args")
                    .or_else(|| arguments.iter().map(|(_, v)| v).find(|v| v.as_list().is_some()));
                let given = match list {
                    Some(list) => self.elements(list).unwrap_or_default(),
                    None => Vec::new(),
                };
                let mut given: Vec<_> = given.into_iter().map(|value| (None, value)).collect();
                if let Some(Shape::Map(entries)) = named("kwargs").map(|value| &value.shape) {
                    given.extend(entries.iter().map(|(name, value)| (Some(name.clone()), value.clone())));
                }
                self.call(&function.clone(), &given, at, false);
                Value::api(format!("{path}()"))
            }
            "asyncio.run"
            | "asyncio.create_task"
            | "asyncio.wait_for"
            | "Promise.resolve"
            | "builtins.anext"
            | "util.promisify"
            | "util.callbackify"
            | "asyncio.get_event_loop().run_until_complete" => first?.clone(),
            "asyncio.to_thread" | "Reflect.apply" | "atexit.register" | "_.partial" => {
                let function = first?.clone();
                match &**path {
                    "Reflect.apply" => {
                        return Some(self.call(
                            &Value::of(Shape::Method(Rc::new((function, Rc::from("apply"))))),
                            &arguments[1..],
                            at,
                            false,
                        ));
                    }
                    _ => self.call(&function, &arguments[1..], at, false),
                }
            }
            "Reflect.construct" => {
                let given = self.elements(&arguments.get(1)?.1).unwrap_or_default();
                let given: Vec<_> = given.into_iter().map(|value| (None, value)).collect();
                self.call(&first?.clone(), &given, at, true)
            }
            // What makes a handler, a filter or a formatter is named by a text, and called with the settings beside it.
            "logging.config.dictConfig" => {
                let mut tables = vec![first?.clone()];
                for _ in 0..TABLES_MAX {
                    let Some(table) = tables.pop() else { break };
                    let Shape::Map(entries) = &table.shape else { continue };
                    tables.extend(entries.iter().map(|(_, value)| value.clone()));
                    for key in ["()", "class"] {
                        let Some(made) = table.entry(key).cloned() else { continue };
                        let function = match made.known_text().as_deref().map(super::callback::split_name) {
                            Some(Some((module, name))) => {
                                let module = self.module(module, at);
                                self.member(&module, &name, false)
                            }
                            _ => made,
                        };
                        let given = entries.iter().filter(|(name, _)| &**name != key);
                        let given: Vec<_> =
                            given.map(|(name, value)| (Some(name.clone()), value.clone())).collect();
                        self.call(&function, &given, at, false);
                    }
                }
                Value::default()
            }
            // A type that is a text is worked out as an expression.
            "typing.ForwardRef" | "typing_extensions.ForwardRef" | "annotationlib.ForwardRef" => {
                let code = first?.known_text()?;
                self.look_at_code(&code, at, "a type that is worked out as code");
                return None;
            }
            "typing.get_type_hints"
            | "typing_extensions.get_type_hints"
            | "inspect.get_annotations"
            | "annotationlib.get_annotations" => {
                let of = first?.clone();
                let types = self.member(&of, &Rc::from("__annotations__"), false);
                if let Shape::Map(entries) = &types.shape {
                    for code in entries.iter().take(TABLES_MAX).filter_map(|(_, code)| code.known_text()) {
                        self.look_at_code(&code, at, "a type that is worked out as code");
                    }
                }
                types
            }
            // Text that was compiled is still that text.
            "builtins.eval" | "eval" | "eval.indirect" | "globalThis.this.eval"
                if first?.known_text().is_some() =>
            {
                self.record(path, arguments, at, callee.taint);
                let code = first?.known_text()?;
                let hidden = callee.taint | Taint::HIDDEN;
                return Some(self.value_of_text(&code, at)?.with(hidden));
            }
            "Function" => {
                self.record(path, arguments, at, callee.taint);
                self.function_of_text(arguments, at).unwrap_or_else(|| Value::unknown(taint))
            }
            "codecs.getdecoder" | "codecs.getencoder" => {
                Value::of(Shape::Partial(Rc::new((Value::api("codecs.*pair"), vec![(None, first?.clone())]))))
            }
            "codecs.getincrementaldecoder" | "codecs.getincrementalencoder" => Value::of(Shape::Partial(
                Rc::new((Value::api("codecs.*machine"), vec![(None, first?.clone())])),
            )),
            "codecs.lookup" | "codecs.CodecInfo" => {
                let of = |api: &str| {
                    let partial = (Value::api(api), vec![(None, first.cloned().unwrap_or_default())]);
                    Value::of(Shape::Partial(Rc::new(partial)))
                };
                Value::of(Shape::Map(Rc::new(vec![
                    (Rc::from("decode"), of("codecs.*pair")),
                    (Rc::from("encode"), of("codecs.*pair")),
                    (Rc::from("incrementaldecoder"), of("codecs.*machine")),
                    (Rc::from("incrementalencoder"), of("codecs.*machine")),
                ])))
            }
            "codecs.*machine" => {
                let text = (Value::api("codecs.*text"), vec![(None, first?.clone())]);
                let text = Value::of(Shape::Partial(Rc::new(text)));
                let methods = vec![(Rc::from("decode"), text.clone()), (Rc::from("encode"), text)];
                Value::of(Shape::Map(Rc::new(methods)))
            }
            "codecs.*pair" | "codecs.*text" => {
                let given = [(None, arguments.get(1)?.1.clone()), (None, first?.clone())];
                let decoded = self.decoder("codecs.decode", &given, taint);
                let decoded = decoded.unwrap_or_else(|| arguments[1].1.clone().with(taint));
                if &**path == "codecs.*text" { decoded } else { Value::list(vec![decoded, Value::default()]) }
            }
            "builtins.compile" => {
                self.record(path, arguments, at, callee.taint);
                first?.clone().with(taint)
            }
            _ => return None,
        })
    }
}

//! Modules and functions under the names that a script gives them.

use super::actions;
use super::evaluate::Evaluator;
use super::token::Token;
use super::value::Value;

impl Evaluator<'_, '_> {
    /// `const { execSync, exec: run } = require('child_process')`.
    pub(super) fn destructuring(&mut self) -> Value {
        let start = self.at;
        let mut pairs = Vec::new();
        self.at += 1;
        while let Some(name) = self.take_name() {
            let local = if self.take_sign(":") { self.take_name().unwrap_or_default() } else { name.clone() };
            pairs.push((local, name));
            if !self.take_sign(",") {
                break;
            }
        }
        if !(self.take_sign("}") && self.take_sign("=")) {
            self.at = start + 1;
            return Value::Unknown;
        }
        let value = self.expression();
        if let Value::Name(module) = &value {
            for (local, name) in pairs {
                self.set(&local, Value::Name(format!("{module}.{name}")));
            }
        }
        value
    }

    /// `import os, subprocess as sp`.
    pub(super) fn import(&mut self) {
        self.at += 1;
        while let Some(module) = self.dotted() {
            if self.name_at(0) == Some("as") {
                self.at += 1;
                if let Some(local) = self.take_name() {
                    self.set(&local, Value::Name(module));
                }
            } else {
                let top = module.split('.').next().unwrap_or_default().to_owned();
                self.set(&top, Value::Name(top.clone()));
            }
            if !self.take_sign(",") {
                return;
            }
        }
    }

    /// `from os import system as s`.
    pub(super) fn import_from(&mut self) {
        self.at += 1;
        let Some(module) = self.dotted() else { return };
        if self.name_at(0) != Some("import") {
            return;
        }
        self.at += 1;
        self.take_sign("(");
        while let Some(name) = self.take_name() {
            let mut local = name.clone();
            if self.name_at(0) == Some("as") {
                self.at += 1;
                local = self.take_name().unwrap_or(local);
            }
            self.set(&local, Value::Name(format!("{module}.{name}")));
            if !self.take_sign(",") {
                return;
            }
        }
        if self.take_sign("*") {
            for name in actions::names_of(&module) {
                self.set(name, Value::Name(format!("{module}.{name}")));
            }
        }
    }

    /// `import fs from 'fs'`, `import { exec } from 'child_process'`.
    pub(super) fn import_js(&mut self) {
        self.at += 1;
        let mut names = Vec::new();
        let mut whole = None;
        let mut braces = false;
        for _ in 0..64 {
            match self.peek().cloned() {
                Some(Token::Name(name)) if name == "from" => {
                    self.at += 1;
                    break;
                }
                Some(Token::Name(name)) if name == "as" => {
                    self.at += 1;
                    if let Some(local) = self.take_name() {
                        if braces {
                            names.pop().into_iter().for_each(|(_, name)| names.push((local.clone(), name)));
                        } else {
                            whole = Some(local);
                        }
                    }
                }
                Some(Token::Name(name)) => {
                    self.at += 1;
                    if braces {
                        names.push((name.clone(), name));
                    } else {
                        whole = Some(name);
                    }
                }
                Some(Token::Sign(sign @ ("{" | "}" | "," | "*"))) => {
                    self.at += 1;
                    braces = match sign {
                        "{" => true,
                        "}" => false,
                        _ => braces,
                    };
                }
                _ => break,
            }
        }
        let Some(Token::Text(pieces)) = self.peek().cloned() else { return };
        self.at += 1;
        let module = self.fill(&pieces).to_text().trim_start_matches("node:").to_owned();
        if let Some(local) = whole {
            self.set(&local, Value::Name(module.clone()));
        }
        for (local, name) in names {
            self.set(&local, Value::Name(format!("{module}.{name}")));
        }
    }

    pub(super) fn dotted(&mut self) -> Option<String> {
        let mut name = self.take_name()?;
        while self.is_sign(0, ".") && self.name_at(1).is_some() {
            self.at += 1;
            name.push('.');
            name.push_str(&self.take_name()?);
        }
        Some(name)
    }
}

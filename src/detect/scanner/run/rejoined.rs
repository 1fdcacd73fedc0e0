//! Parts of a view that belong together, read beside each other: pieces of strings, and cells with the heads of their columns.

use super::{Part, Run};
use crate::rules::ScanStop;
use crate::text::{self, View};

impl Run<'_, '_> {
    /// Scans strings in pieces, put together: for credentials and, `with_phrases`, for phrases. In what else code puts together,
    /// pieces are found as they are.
    pub(super) fn pieces(&mut self, view: &View<'_>, with_phrases: bool) -> Result<(), ScanStop> {
        let secrets = self.request.plugins & self.scanner.secrets;
        let injection = if with_phrases { self.request.plugins & self.scanner.injection } else { 0 };
        if secrets | injection == 0 {
            return Ok(());
        }
        // What may be a credential may be words too.
        let Some(words) = text::joined_words(view) else { return Ok(()) };
        if secrets != 0
            && let Some(joined) = text::joined(view)
        {
            self.view(&joined, Part::Changed(None), secrets)?;
        }
        match injection {
            0 => Ok(()),
            _ => self.disguise(&words, None, injection).map(drop),
        }
    }

    /// Scans the cells of tables with the heads of their columns beside them, where rules may find something by these.
    pub(super) fn columns(&mut self, view: &View<'_>, is_derived: bool) -> Result<(), ScanStop> {
        let rules = &self.scanner.rules;
        let context = self.scratch.context();
        // Of a derived view, only what it changed was read: the heads may stand elsewhere in it.
        let places = match is_derived && context.was_seen {
            true => text::Heads::Anywhere,
            false => text::Heads::At { words: &context.words, cells: &context.lacking },
        };
        let plugins = if places.are_none() { 0 } else { self.request.plugins & rules.plugins_of_columns() };
        let columns = match plugins {
            0 => None,
            _ => text::columns(view, places, &|head| rules.is_context(head)),
        };
        let Some(columns) = columns else { return Ok(()) };
        // What speaks for an attack in the view is asked for afterwards.
        let signs = std::mem::take(&mut self.signs);
        let read = self.view(&columns.view, Part::Cells(&columns), plugins);
        self.signs = signs;
        read.map(drop)
    }
}

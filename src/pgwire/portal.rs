//! Portals: statements with their parameters, waiting to be executed or halfway through their rows.
//!
//! A portal lives until it is closed, replaced or its transaction ends.

use std::sync::Arc;

use ahash::AHashMap;
use sql::Error;
use sql::session::Prepared;
use sql::session::rows::Rows;
use types::Datum;

use crate::pgwire::row::{Formats, RowEncoder};

/// A bound statement.
pub(crate) struct Portal {
    /// The statement; `None` for one without text.
    pub(crate) prepared: Option<Arc<Prepared>>,
    /// The formats of the result's columns.
    pub(crate) formats: Formats,
    /// How far it is.
    pub(crate) state: PortalState,
}

/// How far a portal is.
pub(crate) enum PortalState {
    /// Not executed yet.
    Bound(Vec<Datum>),
    /// Some rows have been sent.
    Suspended(Box<Rows>, RowEncoder),
    /// All rows have been sent.
    Exhausted,
    /// It returned no rows and cannot be run again.
    Done,
}

/// The portals of a connection.
#[derive(Default)]
pub(crate) struct Portals {
    unnamed: Option<Portal>,
    named: AHashMap<String, Portal>,
}

impl Portals {
    /// Adds a portal.
    ///
    /// # Errors
    ///
    /// 42P03 if the name is taken; the unnamed portal is replaced.
    pub(crate) fn insert(&mut self, name: Option<&str>, portal: Portal) -> sql::Result<()> {
        match name {
            None => self.unnamed = Some(portal),
            Some(name) if self.named.contains_key(name) => {
                return Err(Error::new("42P03", format!("cursor \"{name}\" already exists")));
            }
            Some(name) => {
                self.named.insert(name.to_owned(), portal);
            }
        }
        Ok(())
    }

    /// Returns a portal.
    ///
    /// # Errors
    ///
    /// 34000 if there is none.
    pub(crate) fn find(&self, name: Option<&str>) -> sql::Result<&Portal> {
        let portal = match name {
            None => self.unnamed.as_ref(),
            Some(name) => self.named.get(name),
        };
        portal.ok_or_else(|| missing(name))
    }

    /// Takes a portal out, to execute it.
    ///
    /// # Errors
    ///
    /// 34000 if there is none.
    pub(crate) fn take(&mut self, name: Option<&str>) -> sql::Result<Portal> {
        let portal = match name {
            None => self.unnamed.take(),
            Some(name) => self.named.remove(name),
        };
        portal.ok_or_else(|| missing(name))
    }

    /// Puts a portal back after it was executed.
    pub(crate) fn put_back(&mut self, name: Option<&str>, portal: Portal) {
        match name {
            None => self.unnamed = Some(portal),
            Some(name) => {
                self.named.insert(name.to_owned(), portal);
            }
        }
    }

    /// Forgets a portal, if there is one of this name.
    pub(crate) fn close(&mut self, name: Option<&str>) {
        match name {
            None => self.unnamed = None,
            Some(name) => {
                self.named.remove(name);
            }
        }
    }

    /// Forgets all portals: their transaction has ended.
    pub(crate) fn clear(&mut self) {
        self.unnamed = None;
        self.named.clear();
    }
}

fn missing(name: Option<&str>) -> Error {
    Error::new("34000", format!("portal \"{}\" does not exist", name.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn portal() -> Portal {
        let state = PortalState::Bound(Vec::new());
        Portal { prepared: None, formats: Formats::default(), state }
    }

    #[test]
    fn named_portals_are_kept_apart() {
        let mut portals = Portals::default();
        portals.insert(None, portal()).unwrap();
        portals.insert(None, portal()).unwrap();
        portals.insert(Some("c"), portal()).unwrap();
        assert_eq!(portals.insert(Some("c"), portal()).unwrap_err().sqlstate, "42P03");
        let taken = portals.take(Some("c")).unwrap();
        assert_eq!(portals.find(Some("c")).err().unwrap().sqlstate, "34000");
        portals.put_back(Some("c"), taken);
        assert!(portals.find(Some("c")).is_ok());
        portals.clear();
        assert!(portals.take(None).is_err() && portals.take(Some("c")).is_err());
    }
}

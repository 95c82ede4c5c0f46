//! The types of users that the process knows, by numbers that mean nothing to others: for values
//! that bring the types of their parts along, in memory and in files of one run of the process.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::DataType;

/// Set in numbers of types of users; others are OIDs.
const OF_USERS: u32 = 0x8000_0000;

static TYPES: Mutex<Vec<&'static DataType>> = Mutex::new(Vec::new());

/// What a type of users is known by.
#[derive(Default)]
pub(super) struct Registered {
    /// The type itself, for [`DataType::Array`], and its place.
    entry: OnceLock<(&'static DataType, u32)>,
}

impl Registered {
    /// Makes a type known. It is kept for ever.
    pub(super) fn register(&self, data_type: DataType) {
        self.entry.get_or_init(|| {
            let element: &'static DataType = Box::leak(Box::new(data_type));
            let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
            types.push(element);
            (element, u32::try_from(types.len() - 1).expect("types do not fill the memory"))
        });
    }

    /// Returns the type itself.
    pub(super) fn element(&self) -> &'static DataType {
        self.entry.get().expect("set where the type is made").0
    }

    fn number(&self) -> u32 {
        OF_USERS | self.entry.get().expect("set where the type is made").1 << 1
    }
}

impl DataType {
    fn registered(self) -> Option<&'static Registered> {
        match self {
            DataType::Enum(of) => Some(of.registered()),
            DataType::Composite(of) => Some(of.registered()),
            _ => None,
        }
    }

    /// Returns a number that the type is found by as long as the process runs.
    pub(crate) fn registered_oid(self) -> u32 {
        let of_element = || match self {
            DataType::Array(element) => element.registered().map(|one| one.number() | 1),
            _ => None,
        };
        let own = self.registered().map(Registered::number);
        own.or_else(of_element).unwrap_or_else(|| self.oid())
    }

    /// Returns the type that has a number of [`DataType::registered_oid`].
    pub(crate) fn of_registered(number: u32) -> Option<DataType> {
        if number & OF_USERS == 0 {
            return DataType::from_oid(number);
        }
        let types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        let found = types.get((number ^ OF_USERS) as usize >> 1).copied()?;
        if number & 1 == 1 { Some(DataType::Array(found)) } else { Some(*found) }
    }
}

//! Registry of user-defined types by process-local numbers. Values that carry the types of their
//! parts use these numbers in memory and in temporary files.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::DataType;

/// Flag of user-defined types; other numbers are OIDs.
const OF_USERS: u32 = 0x8000_0000;

static TYPES: Mutex<Vec<&'static DataType>> = Mutex::new(Vec::new());

/// Registration of a user-defined type.
#[derive(Default)]
pub(super) struct TypeRegistration {
    /// The leaked type, for [`DataType::Array`], and its index in the registry.
    entry: OnceLock<(&'static DataType, u32)>,
}

impl TypeRegistration {
    /// Registers a type permanently.
    pub(super) fn register(&self, data_type: DataType) {
        self.entry.get_or_init(|| {
            let element: &'static DataType = Box::leak(Box::new(data_type));
            let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
            types.push(element);
            (element, u32::try_from(types.len() - 1).expect("types do not fill the memory"))
        });
    }

    /// Returns the registered type.
    pub(super) fn element(&self) -> &'static DataType {
        self.entry.get().expect("set where the type is made").0
    }

    fn number(&self) -> u32 {
        OF_USERS | self.entry.get().expect("set where the type is made").1 << 1
    }
}

impl DataType {
    fn registered(self) -> Option<&'static TypeRegistration> {
        match self {
            DataType::Enum(of) => Some(of.registered()),
            DataType::Composite(of) => Some(of.registered()),
            _ => None,
        }
    }

    /// Returns a number that identifies the type for the lifetime of the process.
    pub(crate) fn registered_oid(self) -> u32 {
        let of_element = || match self {
            DataType::Array(element) => element.registered().map(|one| one.number() | 1),
            _ => None,
        };
        let own = self.registered().map(TypeRegistration::number);
        own.or_else(of_element).unwrap_or_else(|| self.oid())
    }

    /// Returns the type of a number from [`DataType::registered_oid`].
    pub(crate) fn from_registered_oid(number: u32) -> Option<DataType> {
        if number & OF_USERS == 0 {
            return DataType::from_oid(number);
        }
        let types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        let found = types.get((number ^ OF_USERS) as usize >> 1).copied()?;
        if number & 1 == 1 { Some(DataType::Array(found)) } else { Some(*found) }
    }
}

//! Functions in FROM that return sets: `unnest`, `json_each` and their kin.

use types::DataType;
use types::function::sets;

use crate::binder::level::Binder;
use crate::binder::polymorphic::instantiate;
use crate::binder::resolution::{Match, resolve_set};
use crate::binder::typed::Typed;
use crate::error::Result;
use crate::logical::OutputColumn;

impl Binder<'_> {
    /// Converts the arguments to what the function takes, and returns its columns; `None` if there
    /// is no such function, whose arguments are then of known types.
    pub(super) fn bind_set_function(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
    ) -> Result<(Vec<Typed>, Option<Vec<OutputColumn>>)> {
        let types: Vec<DataType> = arguments.iter().map(Typed::base).collect();
        let found = match resolve_set(name, &types) {
            Match::One(signature) => {
                instantiate(signature, &types).map(|settled| (signature, settled))
            }
            _ => None,
        };
        let Some((signature, (wanted, result))) = found else {
            let known = arguments.into_iter().map(|value| self.known(value));
            return Ok((known.collect::<Result<_>>()?, None));
        };
        let convert = |(value, to): (Typed, DataType)| {
            let position = value.position;
            Ok(Typed::new(self.implicit(value, to)?, to, position))
        };
        let arguments = arguments.into_iter().zip(wanted).map(convert).collect::<Result<_>>()?;
        let column = |(name, data_type): &(&str, DataType)| {
            let data_type = if data_type.is_polymorphic() { result } else { *data_type };
            OutputColumn { name: (*name).to_owned(), sql_type: data_type.into(), origin: None }
        };
        Ok((arguments, Some(sets::columns(signature.id).iter().map(column).collect())))
    }
}

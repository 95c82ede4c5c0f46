//! Functions and operators of [word types](crate::datatype::FixedWidthKind) except `money`, and of
//! `aclitem`: MAC addresses, log positions, transaction ids.

use super::argument::{array, bool_of, int4, int8, numeric, text};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, AclItem, Bool, Int4, Numeric as Decimal, Oid, Text};
use crate::datatype::ElementType;
use crate::datatype::FixedWidthKind;
use crate::datum::{Array, Datum};
use crate::error::{Error, Result};
use crate::numeric::Numeric;
use crate::system;

const MAC: DataType = DataType::MACADDR;
const MAC8: DataType = DataType::MACADDR8;
const LSN: DataType = DataType::PG_LSN;
const XID: DataType = DataType::XID;
const ACL: DataType = DataType::Array(ElementType::BuiltIn(&AclItem));

/// Masks of the manufacturer's bytes in a `macaddr` and a `macaddr8`.
const MAKER: [u64; 2] = [0xffff_ff00_0000, 0xffff_ff00_0000_0000];
/// The bit of locally administered addresses.
const LOCAL_BIT: u64 = 1 << 57;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("~", &[MAC], MAC, |a, _| of_mac(!mac(&a[0]) & 0xffff_ffff_ffff)),
    row("&", &[MAC, MAC], MAC, |a, _| of_mac(mac(&a[0]) & mac(&a[1]))),
    row("|", &[MAC, MAC], MAC, |a, _| of_mac(mac(&a[0]) | mac(&a[1]))),
    row("trunc", &[MAC], MAC, |a, _| of_mac(mac(&a[0]) & MAKER[0])),
    row("~", &[MAC8], MAC8, |a, _| of_mac8(!mac8(&a[0]))),
    row("&", &[MAC8, MAC8], MAC8, |a, _| of_mac8(mac8(&a[0]) & mac8(&a[1]))),
    row("|", &[MAC8, MAC8], MAC8, |a, _| of_mac8(mac8(&a[0]) | mac8(&a[1]))),
    row("trunc", &[MAC8], MAC8, |a, _| of_mac8(mac8(&a[0]) & MAKER[1])),
    row("macaddr8_set7bit", &[MAC8], MAC8, |a, _| of_mac8(mac8(&a[0]) | LOCAL_BIT)),
    row("-", &[LSN, LSN], Decimal, |a, _| Ok(difference(&a[0], &a[1]))),
    row("pg_wal_lsn_diff", &[LSN, LSN], Decimal, |a, _| Ok(difference(&a[0], &a[1]))),
    row("+", &[LSN, Decimal], LSN, |a, _| moved(&a[0], numeric(&a[1]), "add NaN to")),
    row("+", &[Decimal, LSN], LSN, |a, _| moved(&a[1], numeric(&a[0]), "add NaN to")),
    row("-", &[LSN, Decimal], LSN, |a, _| moved(&a[0], &numeric(&a[1]).neg(), "subtract NaN from")),
    row("pg_lsn", &[Decimal], LSN, |a, _| lsn_of(numeric(&a[0]))),
    row("=", &[XID, Int4], Bool, |a, _| Ok(Datum::Bool(same_number(a)))),
    row("<>", &[XID, Int4], Bool, |a, _| Ok(Datum::Bool(!same_number(a)))),
    row("!=", &[XID, Int4], Bool, |a, _| Ok(Datum::Bool(!same_number(a)))),
    row("makeaclitem", &[Oid, Oid, Text, Bool], AclItem, made_item).stable(),
    row("@>", &[ACL, AclItem], Bool, |a, _| contains(&a[0], &a[1])),
    row("aclcontains", &[ACL, AclItem], Bool, |a, _| contains(&a[0], &a[1])),
    row("+", &[ACL, AclItem], ACL, |_, _| Err(no_longer("aclinsert"))),
    row("aclinsert", &[ACL, AclItem], ACL, |_, _| Err(no_longer("aclinsert"))),
    row("-", &[ACL, AclItem], ACL, |_, _| Err(no_longer("aclremove"))),
    row("aclremove", &[ACL, AclItem], ACL, |_, _| Err(no_longer("aclremove"))),
];

fn mac(datum: &Datum) -> u64 {
    FixedWidthKind::MacAddr.to_unsigned(int8(datum))
}

fn of_mac(number: u64) -> Result<Datum> {
    Ok(Datum::Int8(FixedWidthKind::MacAddr.of_unsigned(number)))
}

fn mac8(datum: &Datum) -> u64 {
    FixedWidthKind::MacAddr8.to_unsigned(int8(datum))
}

fn of_mac8(number: u64) -> Result<Datum> {
    Ok(Datum::Int8(FixedWidthKind::MacAddr8.of_unsigned(number)))
}

fn lsn(datum: &Datum) -> i128 {
    FixedWidthKind::PgLsn.to_unsigned(int8(datum)).into()
}

fn difference(one: &Datum, other: &Datum) -> Datum {
    Datum::Numeric(Numeric::from_i128(lsn(one) - lsn(other)))
}

/// Returns a log position advanced by a number of bytes.
fn moved(place: &Datum, by: &Numeric, what: &str) -> Result<Datum> {
    if by.is_nan() {
        bail!(FEATURE_NOT_SUPPORTED: "cannot {what} pg_lsn");
    }
    lsn_of(&Numeric::from_i128(lsn(place)).checked_add(by)?)
}

fn lsn_of(number: &Numeric) -> Result<Datum> {
    if !number.is_finite() {
        let what = if number.is_nan() { "NaN" } else { "infinity" };
        bail!(FEATURE_NOT_SUPPORTED: "cannot convert {what} to pg_lsn");
    }
    let whole = number.round(0).to_i128().and_then(|whole| u64::try_from(whole).ok());
    match whole {
        Some(whole) => Ok(Datum::Int8(FixedWidthKind::PgLsn.of_unsigned(whole))),
        None => Err(invalid_parameter("pg_lsn out of range")),
    }
}

fn same_number(arguments: &[Datum]) -> bool {
    int8(&arguments[0]) == i64::from(int4(&arguments[1]).cast_unsigned())
}

fn made_item(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let role = |datum: &Datum| u32::try_from(int8(datum)).unwrap_or_default();
    let name = text(&arguments[2]);
    let Some(privilege) = system::AclItem::privilege_named(name) else {
        return Err(invalid_parameter(format!("unrecognized privilege type: \"{name}\"")));
    };
    let item = system::AclItem {
        grantee: role(&arguments[0]),
        grantor: role(&arguments[1]),
        privileges: privilege,
        grantable: if bool_of(&arguments[3]) { privilege } else { 0 },
    };
    Ok(Datum::text(item.text(&context.style.system)))
}

/// Returns the items of an access list.
///
/// # Errors
///
/// 22023 if it does not have one dimension, 22004 if an item is NULL.
pub(super) fn access_list(list: &Array) -> Result<&[Datum]> {
    if list.dimensions.len() != 1 {
        return Err(invalid_parameter("ACL arrays must be one-dimensional"));
    }
    match list.elements.iter().any(Datum::is_null) {
        true => bail!(NULL_VALUE_NOT_ALLOWED: "ACL arrays must not contain null values"),
        false => Ok(&list.elements),
    }
}

fn contains(list: &Datum, item: &Datum) -> Result<Datum> {
    access_list(array(list)).map(|items| Datum::Bool(items.contains(item)))
}

fn no_longer(function: &str) -> Error {
    err!(FEATURE_NOT_SUPPORTED: "{function} is no longer supported")
}

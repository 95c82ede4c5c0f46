//! Signatures from PostgreSQL's catalogs.

use crate::signatures::samples::{ELEMENTS, literals};

/// Call syntax of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    /// A set-returning function, or one with OUT parameters.
    Table,
    Aggregate,
    /// With this number of direct arguments before WITHIN GROUP.
    OrderedSet(usize),
    Window,
    Operator,
    Cast,
}

/// A function, operator or cast with its argument types.
#[derive(Debug, Clone)]
pub(super) struct Signature {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    pub(super) is_variadic: bool,
    /// Number of trailing arguments with defaults.
    pub(super) defaults: usize,
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Signature { name, arguments, .. } = self;
        match (self.kind, arguments.as_slice()) {
            (Kind::Operator, [operand]) => write!(f, "{name} {operand}"),
            (Kind::Operator, [left, right]) => write!(f, "{left} {name} {right}"),
            (Kind::Cast, [source]) => write!(f, "{source}::{name}"),
            _ => {
                let variadic = if self.is_variadic { "VARIADIC " } else { "" };
                write!(f, "{name}({variadic}{})", arguments.join(", "))
            }
        }
    }
}

/// Excluded functions, with the reason.
const SKIPPED: &[(&str, &str)] = &[
    ("pg\\_%", "about the server"),
    ("lo\\_%", "large objects"),
    ("loread", "large objects"),
    ("lowrite", "large objects"),
    ("binary_upgrade%", "about the server"),
    ("ts\\_%", "full text search"),
    ("txid\\_%", "about the server"),
    ("inet\\_%", "about the server"),
    ("has\\_%privilege", "about the server"),
    ("row\\_security\\_active", "about the server"),
    ("current\\_%", "about the session"),
    ("session\\_user", "about the session"),
    ("version", "about the server"),
    ("getdatabaseencoding", "about the server"),
    ("getpgusername", "about the session"),
    ("acldefault", "about the server"),
    ("%\\_inc", "an aggregate's step"),
    ("int4inc", "an aggregate's step"),
    ("%\\_subdiff", "of indexes"),
    ("nameconcatoid", "of the information schema"),
    ("postgresql\\_fdw\\_validator", "about the server"),
    ("get\\_current\\_ts\\_config", "full text search"),
    ("websearch\\_to\\_tsquery", "full text search"),
    ("set\\_config", "about the session"),
    ("random", "by chance"),
    ("setseed", "by chance"),
    ("gen\\_random\\_uuid", "by chance"),
    ("now", "of the moment"),
    ("timeofday", "of the moment"),
    ("statement\\_timestamp", "of the moment"),
    ("transaction\\_timestamp", "of the moment"),
    ("clock\\_timestamp", "of the moment"),
    ("query\\_to\\_xml%", "XML"),
    ("table\\_to\\_xml%", "XML"),
    ("schema\\_to\\_xml%", "XML"),
    ("database\\_to\\_xml%", "XML"),
    ("cursor\\_to\\_xml%", "XML"),
    ("xml%", "XML"),
    ("nextval", "changes something"),
    ("currval", "of the session"),
    ("lastval", "of the session"),
    ("setval", "changes something"),
    ("brin%", "of indexes"),
    ("gin%", "of indexes"),
    ("gist%", "of indexes"),
    ("spg%", "of indexes"),
    ("hash", "of indexes"),
    ("amvalidate", "of indexes"),
    ("%sel", "of the planner"),
    ("RI\\_%", "of constraints"),
    ("%\\_support", "of the planner"),
    ("plpgsql%", "of languages"),
    ("fmgr%", "of languages"),
    ("shobj\\_description", "about the server"),
    ("obj\\_description", "about the server"),
    ("col\\_description", "about the server"),
    ("to\\_reg%", "about the server"),
    ("unique\\_key\\_recheck", "of constraints"),
    ("suppress\\_redundant\\_updates\\_trigger", "of triggers"),
    ("satisfies\\_hash\\_partition", "about the server"),
    ("icu%", "about the server"),
    ("mxid\\_age", "about the server"),
];

/// Functions that match an excluded pattern but are included.
const KEPT: &[&str] = &["pg_typeof", "pg_size_pretty", "pg_size_bytes"];

/// Functions that implement operators, types, indexes and aggregates, which are called by other
/// names; functions of casts are called by casts, and tested here if they have one argument.
const SUPPORT: &str = "coalesce(obj_description(p.oid, 'pg_proc'), '') ~ \
    '^(implementation of|I/O|.*typmod|internal|aggregate|.*transition|less-equal|hash|.*support|deprecated)' \
    OR EXISTS (SELECT FROM pg_amproc WHERE amproc = p.oid) \
    OR EXISTS (SELECT FROM pg_cast WHERE castfunc = p.oid AND p.pronargs > 1) \
    OR EXISTS (SELECT FROM pg_aggregate a \
        WHERE p.oid IN (aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, \
            aggmtransfn, aggminvtransfn, aggmfinalfn)) \
    OR EXISTS (SELECT FROM pg_type t WHERE p.oid IN (typinput, typoutput, typreceive, \
        typsend, typmodin, typmodout, typanalyze, typsubscript))";

/// Returns the query of functions, aggregates and window functions.
pub(super) fn functions_query() -> String {
    let skipped = SKIPPED.iter().map(|(pattern, _)| format!("'{pattern}'"));
    let skipped = skipped.collect::<Vec<_>>().join(", ");
    let kept = KEPT.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    format!(
        "SELECT p.proname, p.prokind, (p.proretset OR p.proargmodes IS NOT NULL AND p.provariadic = 0)::text, \
            (p.provariadic <> 0)::text, p.pronargdefaults, \
            coalesce((SELECT string_agg(format_type(t, -1), '|' ORDER BY n) \
                FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)), ''), \
            coalesce((SELECT aggkind::text || aggnumdirectargs::text FROM pg_aggregate WHERE aggfnoid = p.oid), ''), \
            p.prorettype::regtype \
        FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind <> 'p' \
            AND p.prorettype NOT IN (SELECT oid FROM pg_type WHERE typcategory IN ('I', 'R') \
                OR typname ~ '^(ts|gts|xml|cstring|internal|trigger)') \
            AND (p.proname IN ({kept}) OR NOT p.proname LIKE ANY (ARRAY[{skipped}])) \
            AND (p.prokind <> 'f' OR NOT ({SUPPORT})) \
        ORDER BY 1, 6"
    )
}

/// The query of operators.
pub(super) const OPERATORS_QUERY: &str = "SELECT oprname, \
    CASE WHEN oprleft <> 0 THEN format_type(oprleft, -1) || '|' ELSE '' END || format_type(oprright, -1) \
    FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND (oprname <> '@@' OR oprleft = 0) ORDER BY 1, 2";

/// Excluded argument types, although they have literals.
const ARGUMENTS_LEFT_OUT: &[&str] = &["cstring", "internal"];

/// Returns the signature with each polymorphic type replaced by several concrete ones; none if a
/// type has no samples.
fn concrete(signature: &Signature) -> Vec<Signature> {
    let is_polymorphic = |of: &String| of.starts_with("any") || of == "\"any\"";
    if !signature.arguments.iter().any(is_polymorphic) {
        return vec![signature.clone()];
    }
    let with = |element: &str| {
        let arguments = signature.arguments.iter().map(|of| match of.as_str() {
            "anyarray" | "anycompatiblearray" => format!("{element}[]"),
            "anyenum" => "mood".to_owned(),
            "\"any\"" | "anyelement" | "anynonarray" | "anycompatible" => element.to_owned(),
            "anycompatiblenonarray" => element.to_owned(),
            other => other.to_owned(),
        });
        Signature { arguments: arguments.collect(), ..signature.clone() }
    };
    if signature.arguments.iter().any(|of| of == "anyenum") {
        return vec![with("mood")];
    }
    ELEMENTS.iter().map(|element| with(element)).collect()
}

/// Returns the signatures of a row of [`functions_query`].
pub(super) fn function(row: &[Option<String>]) -> Vec<Signature> {
    let column = |at: usize| row[at].clone().unwrap_or_default();
    let aggregate = column(6);
    let kind = match column(1).as_str() {
        "w" => Kind::Window,
        "a" if aggregate.starts_with('n') => Kind::Aggregate,
        "a" => Kind::OrderedSet(aggregate[1..].parse().unwrap()),
        _ if column(2) == "true" => Kind::Table,
        _ => Kind::Function,
    };
    let arguments = column(5);
    let arguments = arguments.split('|').filter(|of| !of.is_empty()).map(str::to_owned);
    let signature = Signature {
        kind,
        name: column(0),
        arguments: arguments.collect(),
        is_variadic: column(3) == "true",
        defaults: column(4).parse().unwrap(),
    };
    known(concrete(&signature))
}

/// Returns the signatures of a row of [`OPERATORS_QUERY`].
pub(super) fn operator(row: &[Option<String>]) -> Vec<Signature> {
    let column = |at: usize| row[at].clone().unwrap_or_default();
    let arguments = column(1).split('|').map(str::to_owned).collect();
    let (kind, name) = (Kind::Operator, column(0));
    known(concrete(&Signature { kind, name, arguments, is_variadic: false, defaults: 0 }))
}

/// Removes signatures with argument types without samples.
fn known(mut signatures: Vec<Signature>) -> Vec<Signature> {
    let is_known =
        |of: &String| !ARGUMENTS_LEFT_OUT.contains(&of.as_str()) && !literals(of).is_empty();
    signatures.retain(|signature| signature.arguments.iter().all(is_known));
    signatures
}

/// Returns the cast of all samples of a type to another.
pub(super) fn cast(source: &str, target: &str) -> Signature {
    Signature {
        kind: Kind::Cast,
        name: target.to_owned(),
        arguments: vec![source.to_owned()],
        is_variadic: false,
        defaults: 0,
    }
}

//! Sample values of each type, including edge cases.

/// Types that replace a polymorphic argument.
pub(super) const ELEMENTS: &[&str] = &[
    "integer",
    "text",
    "numeric",
    "bpchar",
    "timestamp with time zone",
    "jsonb",
    "mood",
    "pair",
    "double precision",
    "positive",
];

/// The types whose values are cast to each other.
pub(super) const CASTABLE: &[&str] = &[
    "boolean",
    "smallint",
    "integer",
    "bigint",
    "real",
    "double precision",
    "numeric",
    "numeric(5,2)",
    "text",
    "varchar",
    "varchar(3)",
    "bpchar",
    "char(3)",
    "name",
    "\"char\"",
    "bytea",
    "date",
    "time",
    "time(1)",
    "timetz",
    "timestamp",
    "timestamp(0)",
    "timestamptz",
    "interval",
    "interval(1)",
    "interval hour to minute",
    "uuid",
    "json",
    "jsonb",
    "jsonpath",
    "bit(3)",
    "varbit",
    "varbit(4)",
    "oid",
    "regclass",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regoperator",
    "regtype",
    "regproc",
    "regprocedure",
    "regoper",
    "regnamespace",
    "regrole",
    "mood",
    "positive",
    "pair",
    "point",
    "lseg",
    "path",
    "box",
    "polygon",
    "line",
    "circle",
    "tid",
    "xid",
    "xid8",
    "cid",
    "pg_lsn",
    "macaddr",
    "macaddr8",
    "money",
    "refcursor",
    "aclitem",
    "box[]",
    "macaddr[]",
    "integer[]",
    "text[]",
    "numeric(5,2)[]",
    "char(3)[]",
    "timestamptz[]",
    "mood[]",
    "jsonb[]",
];

/// Texts that are cast to every type.
pub(super) const TEXTS: &[&str] = &[
    "",
    " ",
    "0",
    "1",
    "-1",
    "+1",
    " 42 ",
    "1.5",
    "1e3",
    "1e400",
    "-0",
    "0x10",
    "1_000",
    "abc",
    "t",
    "yes",
    "of",
    "NaN",
    "nan",
    "infinity",
    "-inf",
    "inf",
    "99999",
    "3000000000",
    "9223372036854775808",
    "{}",
    "{1,2}",
    "{a,NULL,\"b c\"}",
    "{{1},{2}}",
    "[2:3]={1,2}",
    "{1",
    "(1,a)",
    "(,)",
    "(1,a,b)",
    "null",
    "[1, 2]",
    "{\"a\": 1, \"a\": 2}",
    "\"x\"",
    "$.a[*] ? (@ > 1)",
    "\\x00ff",
    "\\x0",
    "a\\\\b",
    "101",
    "b101",
    "x1F",
    "2024-02-29",
    "2023-02-29",
    "2024-02-29 12:34:56.789",
    "epoch",
    "2024-01-01T00:00:00+02",
    "12:34:56.7891234",
    "24:00:00",
    "12:34+05:30",
    "1 day",
    "1 day 02:03:04",
    "P1Y2M3DT4H5M6S",
    "1 mon -1 day",
    "1:2:3",
    "10 fortnights",
    "sad",
    "Sad",
    "integer",
    "pg_class",
    "int4in",
    "+(integer,integer)",
    "abs(integer)",
    "pg_catalog",
    "bennu",
    "-",
    "public",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "{a0eebc999c0b4ef8bb6d6bb9bd380a11}",
    "(1,2)",
    " ( 1 , 2 ) ",
    "1,2",
    "((1,2))",
    "(1,2),(3,4)",
    "((1,2),(3,4))",
    "[(1,2),(3,4)]",
    "[1,2,3,4]",
    "1,2,3,4",
    "((1,2),(3,4),(5,6))",
    "[(1,2),(3,4),(5,6)]",
    "(1,2,3,4,5,6)",
    "((1,2),(1,2))",
    "{1,2,3}",
    "{0,0,3}",
    "{1,2,3",
    "<(1,2),3>",
    "((1,2),3)",
    "(1,2),3",
    "1,2,3",
    "<(1,2),-3>",
    "<(1,2),NaN>",
    "(NaN,Infinity)",
    "(1e400,2)",
    "(0x10,.5e1)",
    "(1,2);(3,4)",
    "{(1,2),(3,4);(5,6),(7,8)}",
    "08:00:2b:01:02:03",
    "08-00-2b-01-02-03",
    "08002b:010203",
    "08002b-010203",
    "0800-2b01-0203",
    "08002b010203",
    " 8:0:2b:1:2:3 ",
    "08:00:2b:01:02:03:04:05",
    "08002b0102030405",
    "08:00-2b:01:02:03",
    "08:00:2b:01:02:03:0",
    "08:00:2b:01:02:100",
    "16/B374D848",
    "0/0",
    "FFFFFFFF/FFFFFFFF",
    "1/123456789",
    " 0/1",
    "-1,2",
    "(4294967295,65535)",
    "(4294967296,1)",
    "(1,65536)",
    "18446744073709551615",
    "010",
    "12abc",
    "$1,234.567",
    "-$5",
    "($5)",
    "5-",
    "92233720368547758.07",
    "92233720368547758.08",
    "=r/bennu",
    "bennu=r*w/bennu",
    "user bennu = arwdDxt / bennu",
    "group bennu=/bennu",
    "nobody=r/bennu",
    "bennu=z/bennu",
    "bennu=r/",
];

/// Returns the sample texts of a base type; NULL is added.
fn texts(of: &str) -> &'static [&'static str] {
    match of {
        "boolean" => &["true", "false"],
        "smallint" => &["0", "-1", "7", "32767", "-32768"],
        "integer" => &["0", "1", "-3", "5", "2147483647", "-2147483648"],
        "bigint" => &["0", "1", "-3", "40", "9223372036854775807", "-9223372036854775808"],
        "real" => &["0", "-0", "1.5", "-2.25", "3.4e38", "1e-45", "NaN", "Infinity", "-Infinity"],
        "double precision" => &[
            "0",
            "-0",
            "1.5",
            "0.5",
            "-2.25",
            "1e15",
            "1.7e308",
            "5e-324",
            "NaN",
            "Infinity",
            "-Infinity",
        ],
        "numeric" | "numeric(5,2)" => &[
            "0",
            "1.50",
            "-2.345",
            "0.5",
            "10",
            "123456789012345678901234567890.123456789",
            "-0.000000000000000000001",
            "NaN",
            "Infinity",
            "-Infinity",
        ],
        "text" | "character varying" | "varchar" => {
            &["", "abc", " Ab c1 ", "äÖ€𝄞", "12", "a.b,c", "YYYY-MM-DD HH24"]
        }
        "bpchar" | "char(3)" => &["", "abc  ", " x", "äö "],
        "name" => &["", "xyz", "Xy z"],
        "\"char\"" => &["", "a", "7"],
        "bytea" => &["", "\\x00", "abc\\\\", "\\xdeadbeef00ff"],
        _ => more_texts(of),
    }
}

/// Returns the [`texts`] of geometric types, and of numbers and names with special text formats.
fn geometric_texts(of: &str) -> &'static [&'static str] {
    match of {
        "point" => &["(0,0)", "(1,2)", "(-3.5,4)", "(1e300,-1e300)", "(NaN,1)", "(Infinity,1)"],
        "lseg" => {
            &["[(0,0),(1,1)]", "[(1,0),(0,1)]", "[(2,0),(2,5)]", "[(-3,2),(4,2)]", "[(1,1),(1,1)]"]
        }
        "line" => &["{1,-1,0}", "{0,1,-2}", "{1,0,-3}", "{2,3,4}", "{NaN,1,1}"],
        "box" => &[
            "(1,1),(0,0)",
            "(3,4),(2,-1)",
            "(1,1),(1,1)",
            "(10,10),(-10,-10)",
            "(Infinity,1),(0,0)",
        ],
        "path" => {
            &["((0,0),(1,1),(2,0))", "[(0,0),(1,1),(2,0)]", "[(1,-1),(1,3)]", "((5,5))", "[(7,7)]"]
        }
        "polygon" => &[
            "((0,0),(4,0),(4,4),(0,4))",
            "((1,1),(2,1),(2,2))",
            "((3,3),(9,3),(6,9))",
            "((20,20))",
            "((0,0),(0,4),(4,4),(4,0))",
        ],
        "circle" => &["<(0,0),1>", "<(1,1),3>", "<(5,5),0>", "<(0,0),NaN>", "<(1,2),1e200>"],
        "tid" => &["(0,0)", "(0,1)", "(4294967295,65535)"],
        "xid" | "cid" => &["0", "3", "4294967295"],
        "xid8" => &["0", "4294967300", "18446744073709551615"],
        "pg_lsn" => &["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"],
        "macaddr" => &["00:00:00:00:00:00", "08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff"],
        "macaddr8" => {
            &["00:00:00:00:00:00:00:00", "08:00:2b:ff:fe:01:02:03", "ff:ff:ff:ff:ff:ff:ff:ff"]
        }
        "money" => &["0", "$1,234,567.89", "-0.05", "100.01", "-92233720368547758.08"],
        "refcursor" => &["", "c1"],
        "aclitem" => &["=r/bennu", "bennu=arw*d/bennu"],
        _ => &[],
    }
}

/// Returns the [`texts`] of dates and times, documents, and rare types.
fn more_texts(of: &str) -> &'static [&'static str] {
    match of {
        "date" => &["2024-02-29", "1999-12-31", "0044-03-15 BC", "infinity", "-infinity"],
        "time" | "time without time zone" => &["00:00:00", "12:34:56.789012", "24:00:00"],
        "timetz" | "time with time zone" => {
            &["00:00:00+00", "12:34:56.789-08", "23:59:59.999999+15:59"]
        }
        "timestamp" | "timestamp without time zone" => &[
            "2024-02-29 12:34:56.789",
            "1970-01-01 00:00:00",
            "0001-01-01 00:00:00 BC",
            "infinity",
            "-infinity",
        ],
        "timestamptz" | "timestamp with time zone" => &[
            "2024-02-29 12:34:56.789+00",
            "2024-03-10 02:30:00-05",
            "0001-01-01 00:00:00+00 BC",
            "infinity",
            "-infinity",
        ],
        "interval" => &[
            "0",
            "1 year 2 mons 3 days 04:05:06.789",
            "-1 mon +29 days -23:59:59",
            "36:00:00",
            "1 day",
            "178000000 years",
        ],
        "uuid" => &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"],
        "json" | "jsonb" => &[
            "null",
            "1.50",
            "\"a\\u00e4\"",
            "true",
            "[]",
            "{}",
            "[1, \"a\", null, [2]]",
            "{\"a\": 1, \"b\": {\"c\": [1, 2]}, \"a b\": null}",
            "[{\"a\": 1}, {\"a\": \"x\", \"b\": 2}]",
        ],
        "jsonpath" => {
            &["$", "$.a", "$[*] ? (@ > 1)", "strict $.b.c[1]", "$.a == 1", "$.**.keyvalue()"]
        }
        "bit" | "\"bit\"" => &["101", "000", "1"],
        "varbit" | "bit varying" => &["", "1", "10101010101"],
        "oid" => &["0", "16", "2147483648", "4294967295"],
        "regclass" => &["pg_class", "1", "-"],
        "regcollation" => &["\"C\"", "950", "-"],
        "regconfig" => &["english", "3748", "-"],
        "regdictionary" => &["simple", "13163", "-"],
        "regoperator" => &["+(integer,integer)", "-(NONE,integer)", "0"],
        "regtype" => &["integer", "text[]", "-"],
        "regproc" => &["int4in", "-"],
        "regprocedure" => &["abs(integer)", "-"],
        "regoper" => &["||/", "0"],
        "regnamespace" => &["pg_catalog", "-"],
        "regrole" => &["bennu", "-"],
        "mood" => &["sad", "ok", "happy"],
        "positive" => &["1", "7"],
        "pair" => &["(1,a)", "(,)", "(-5,\"b c\")"],
        _ => geometric_texts(of),
    }
}

/// Returns a literal with this text.
pub(super) fn literal(text: &str, of: &str) -> String {
    format!("'{}'::{of}", text.replace('\'', "''"))
}

/// Returns literals of a type, starting with NULL; empty if the type has no samples.
pub(super) fn literals(of: &str) -> Vec<String> {
    if of == "record" {
        let rows = ["NULL::record", "(ROW(1, 'a'))", "(ROW(NULL, 2.5))", "(ROW())"];
        return rows.map(str::to_owned).to_vec();
    }
    let null = format!("NULL::{of}");
    let Some(element) = of.strip_suffix("[]") else {
        let values = texts(of).iter().map(|text| literal(text, of));
        let values: Vec<String> = values.collect();
        return if values.is_empty() { Vec::new() } else { [vec![null], values].concat() };
    };
    let values = literals(element);
    if values.is_empty() {
        return values;
    }
    let [none, first, second] = [0, 1, 2].map(|at| values.get(at).unwrap_or(&values[0]));
    let last = &values[values.len() - 1];
    vec![
        null,
        literal("{}", of),
        format!("ARRAY[{first}, {none}, {second}, {first}]::{of}"),
        format!("ARRAY[{last}]::{of}"),
        format!("ARRAY[ARRAY[{first}, {second}], ARRAY[{last}, {none}]]::{of}"),
    ]
}

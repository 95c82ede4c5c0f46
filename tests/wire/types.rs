//! Tests of values through tokio-postgres: every type in text and binary format, in both
//! directions.

use std::error::Error as StdError;

use bytes::BytesMut;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::harness::{TestServer, connect};

/// A value of any type in binary format.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Binary(Option<Vec<u8>>);

impl<'a> FromSql<'a> for Binary {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Binary, Box<dyn StdError + Sync + Send>> {
        Ok(Binary(Some(raw.to_vec())))
    }

    fn from_sql_null(_: &Type) -> Result<Binary, Box<dyn StdError + Sync + Send>> {
        Ok(Binary(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Binary {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let Some(bytes) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Type, a value as text, and PostgreSQL 15's binary output in hex.
const VALUES: [(&str, &str, &str); 38] = [
    ("boolean", "t", "01"),
    ("boolean", "f", "00"),
    ("smallint", "-32768", "8000"),
    ("integer", "2147483647", "7fffffff"),
    ("bigint", "-9223372036854775808", "8000000000000000"),
    ("real", "1.5", "3fc00000"),
    ("real", "NaN", "7fc00000"),
    ("double precision", "-0.1", "bfb999999999999a"),
    ("double precision", "Infinity", "7ff0000000000000"),
    ("double precision", "1e+300", "7e37e43c8800759c"),
    ("numeric", "0", "0000000000000000"),
    ("numeric", "1.50", "000200000000000200011388"),
    ("numeric", "-12345.678900", "0003000140000006000109291a85"),
    ("numeric", "NaN", "00000000c0000000"),
    ("numeric", "Infinity", "00000000d0000020"),
    ("numeric", "0.00001", "0001fffe0000000503e8"),
    ("numeric", "100000000", "00010002000000000001"),
    ("text", "", ""),
    ("text", "é€😀", "c3a9e282acf09f9880"),
    ("character varying", "abc", "616263"),
    ("character(5)", "ab   ", "6162202020"),
    ("bytea", "\\x00ff41", "00ff41"),
    ("bytea", "\\x", ""),
    ("date", "2024-02-29", "00002279"),
    ("date", "0044-03-15 BC", "fff49d7b"),
    ("date", "infinity", "7fffffff"),
    ("time without time zone", "00:00:00", "0000000000000000"),
    ("time without time zone", "23:59:59.999999", "000000141dd75fff"),
    ("timestamp without time zone", "2024-02-29 12:34:56.789", "0002b58341728608"),
    ("timestamp without time zone", "-infinity", "8000000000000000"),
    ("timestamp without time zone", "1999-12-31 23:59:59", "fffffffffff0bdc0"),
    ("timestamp with time zone", "2024-02-29 12:00:00+00", "0002b582c4781000"),
    ("timestamp with time zone", "infinity", "7fffffffffffffff"),
    ("interval", "1 year 2 mons 3 days 04:05:06.7", "000000036c966ee0000000030000000e"),
    ("interval", "-00:00:01", "fffffffffff0bdc00000000000000000"),
    ("interval", "00:00:00", "00000000000000000000000000000000"),
    ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"),
    ("uuid", "00000000-0000-0000-0000-000000000000", "00000000000000000000000000000000"),
];

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

fn first_value(messages: &[SimpleQueryMessage]) -> Option<String> {
    messages
        .iter()
        .find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0)),
            _ => None,
        })?
        .map(str::to_owned)
}

#[tokio::test]
async fn all_types_round_trip_in_text_and_binary() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    for (number, (name, value, hex)) in VALUES.iter().enumerate() {
        let what = format!("{value} of type {name}");
        let table = format!("t{number}");
        client
            .batch_execute(&format!("CREATE TABLE {table} (id int PRIMARY KEY, v {name})"))
            .await
            .unwrap();
        // Input in binary format by parameter, and in text format by literal.
        let binary = Binary(Some(from_hex(hex)));
        let insert = format!("INSERT INTO {table} VALUES ($1, $2)");
        client.execute(&insert, &[&1, &binary]).await.unwrap();
        client.execute(&insert, &[&2, &Binary(None)]).await.unwrap();
        client.batch_execute(&format!("INSERT INTO {table} VALUES (3, '{value}')")).await.unwrap();
        // Output in binary and text format.
        let rows = client.query(&format!("SELECT v FROM {table} ORDER BY id"), &[]).await.unwrap();
        let values: Vec<Binary> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(values, [binary.clone(), Binary(None), binary.clone()], "{what}");
        let select = format!("SELECT v FROM {table} WHERE id = 1");
        let text = first_value(&client.simple_query(&select).await.unwrap());
        assert_eq!(text.as_deref(), Some(*value), "{what}");
        let select = format!("SELECT v FROM {table} WHERE id = 2");
        assert_eq!(first_value(&client.simple_query(&select).await.unwrap()), None, "{what}");
    }
}

#[tokio::test]
async fn driver_values_convert_to_parameters() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    let row = client
        .query_one(
            "SELECT $1::boolean, $2::int2, $3::int4, $4::int8, $5::float4, $6::float8, $7::text, \
             $8::bytea, NULL::int, $9::varchar",
            &[
                &true,
                &-2_i16,
                &3_i32,
                &i64::MIN,
                &1.5_f32,
                &f64::MAX,
                &"text",
                &&b"\0\xff"[..],
                &"varying",
            ],
        )
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0));
    assert_eq!(row.get::<_, i16>(1), -2);
    assert_eq!(row.get::<_, i32>(2), 3);
    assert_eq!(row.get::<_, i64>(3), i64::MIN);
    assert_eq!(row.get::<_, f32>(4), 1.5);
    assert_eq!(row.get::<_, f64>(5), f64::MAX);
    assert_eq!(row.get::<_, &str>(6), "text");
    assert_eq!(row.get::<_, &[u8]>(7), b"\0\xff");
    assert_eq!(row.get::<_, Option<i32>>(8), None);
    assert_eq!(row.get::<_, &str>(9), "varying");
}

#[tokio::test]
async fn malformed_binary_parameters_are_rejected() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    for (sql, bytes) in [
        ("SELECT $1::int4", vec![0, 0, 1]),
        ("SELECT $1::int8", vec![1; 9]),
        ("SELECT $1::boolean", vec![]),
        ("SELECT $1::text", vec![0xff, 0xfe]),
        ("SELECT $1::uuid", vec![1; 15]),
        ("SELECT $1::numeric", vec![0, 9, 0, 0]),
        ("SELECT $1::timestamp", vec![0; 7]),
    ] {
        let error = client.query(sql, &[&Binary(Some(bytes))]).await.unwrap_err();
        let code = error.as_db_error().unwrap().code().code().to_owned();
        assert!(code.starts_with("22") || code == "08P01", "{sql}: {code}");
    }
    client.simple_query("SELECT 1").await.unwrap();
}

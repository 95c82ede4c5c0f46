//! tokio-postgres: typed statements, pipelines, portals, COPY, user-defined types, retries.

use std::pin::pin;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt, TryStreamExt, future::try_join_all};
use postgres_types::{FromSql, ToSql};
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, IsolationLevel, NoTls};

#[derive(Debug, PartialEq, ToSql, FromSql)]
#[postgres(name = "mood")]
enum Mood {
    #[postgres(name = "sad")]
    Sad,
    #[postgres(name = "glad")]
    Glad,
}

#[derive(Debug, PartialEq, ToSql, FromSql)]
#[postgres(name = "spot")]
struct Spot {
    x: i32,
    name: Option<String>,
}

async fn connect() -> Result<Client, Error> {
    let (host, port) = (std::env::var("PGHOST").unwrap(), std::env::var("PGPORT").unwrap());
    let config = format!("host={host} port={port} user=bennu dbname=bennu");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn errors(client: &mut Client) -> Result<(), Error> {
    for (sql, state) in [
        ("selec 1", SqlState::SYNTAX_ERROR),
        ("select * from nowhere", SqlState::UNDEFINED_TABLE),
        ("select 1 / 0", SqlState::DIVISION_BY_ZERO),
    ] {
        assert_eq!(client.query(sql, &[]).await.unwrap_err().code(), Some(&state));
        assert_eq!(client.simple_query(sql).await.unwrap_err().code(), Some(&state));
    }
    let divide = client.prepare("select 10 / $1::int").await?;
    assert_eq!(
        client.query_one(&divide, &[&0_i32]).await.unwrap_err().code(),
        Some(&SqlState::DIVISION_BY_ZERO)
    );
    assert_eq!(client.query_one(&divide, &[&5_i32]).await?.get::<_, i32>(0), 2);
    let mut transaction = client.transaction().await?;
    let inner = transaction.savepoint("part").await?;
    assert!(inner.query("select 1 / 0", &[]).await.is_err());
    inner.rollback().await?;
    assert_eq!(transaction.query_one("select 1", &[]).await?.get::<_, i32>(0), 1);
    transaction.commit().await?;
    let twice =
        client.execute("insert into item values (1, 'a'), (1, 'b')", &[]).await.unwrap_err();
    let twice = twice.as_db_error().unwrap();
    assert_eq!((twice.table(), twice.constraint()), (Some("item"), Some("item_pkey")));
    Ok(())
}

async fn pipelines_and_portals(client: &mut Client) -> Result<(), Error> {
    let insert = client.prepare("insert into item values ($1, $2)").await?;
    let rows: Vec<(i32, String)> = (0..200).map(|i| (i, format!("n{i}"))).collect();
    try_join_all(rows.iter().map(async |(id, name)| client.execute(&insert, &[id, name]).await))
        .await?;
    let transaction = client.transaction().await?;
    let portal =
        transaction.bind("select id from item where id >= $1 order by id", &[&150_i32]).await?;
    assert_eq!(transaction.query_portal(&portal, 30).await?.len(), 30);
    assert_eq!(transaction.query_portal(&portal, 30).await?.len(), 20);
    transaction.commit().await?;
    let rows = client.query_raw("select id from item", Vec::<i32>::new()).await?;
    assert_eq!(pin!(rows).count().await, 200);
    Ok(())
}

async fn copies(client: &Client) -> Result<(), Error> {
    let sink = client.copy_in("copy item from stdin (format binary)").await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT4, Type::TEXT]));
    for id in 1000..1500_i32 {
        writer.as_mut().write(&[&id, &"copied"]).await?;
    }
    assert_eq!(writer.finish().await?, 500);
    let stream = client
        .copy_out(
            "copy (select id, name from item where id >= 1490 order by id) \
         to stdout (format binary)",
        )
        .await?;
    let rows: Vec<_> =
        BinaryCopyOutStream::new(stream, &[Type::INT4, Type::TEXT]).try_collect().await?;
    assert_eq!((rows.len(), rows[0].get::<i32>(0), rows[0].get::<&str>(1)), (10, 1490, "copied"));
    let mut sink = pin!(client.copy_in("copy item from stdin").await?);
    sink.send(&b"oops\tx\n"[..]).await?;
    assert_eq!(
        sink.finish().await.unwrap_err().code(),
        Some(&SqlState::INVALID_TEXT_REPRESENTATION)
    );
    Ok(())
}

async fn user_types(client: &Client) -> Result<(), Error> {
    client
        .batch_execute(
            "create type mood as enum ('sad', 'glad'); create type spot as (x int, name text)",
        )
        .await?;
    let spot = || Spot { x: 1, name: Some("a".to_owned()) };
    let row = client
        .query_one("select $1::mood, $2::spot, array[$2::spot]", &[&Mood::Glad, &spot()])
        .await?;
    assert_eq!(
        (row.get::<_, Mood>(0), row.get::<_, Spot>(1), row.get::<_, Vec<Spot>>(2)),
        (Mood::Glad, spot(), vec![spot()])
    );
    assert_eq!(client.query_one("select 'sad'::mood", &[]).await?.get::<_, Mood>(0), Mood::Sad);
    client.batch_execute("drop type mood; drop type spot").await
}

async fn cancels(client: &Client) -> Result<(), Error> {
    let token = client.cancel_token();
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        token.cancel_query(NoTls).await
    };
    let (slow, cancelled) = tokio::join!(client.batch_execute("select pg_sleep(60)"), cancel);
    cancelled?;
    assert_eq!(slow.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED));
    Ok(())
}

async fn transfer(client: &mut Client, i: i32, level: IsolationLevel) -> Result<(), Error> {
    let transaction = client.build_transaction().isolation_level(level).start().await?;
    let (from, to) = (i % 4, (i + 1) % 4);
    let balance: i32 =
        transaction.query_one("select balance from account where id = $1", &[&from]).await?.get(0);
    transaction
        .execute("update account set balance = $1 where id = $2", &[&(balance - 1), &from])
        .await?;
    transaction.execute("update account set balance = balance + 1 where id = $1", &[&to]).await?;
    transaction.commit().await
}

async fn retries(client: &Client) -> Result<(), Error> {
    client
        .batch_execute(
            "create table account (id int primary key, balance int); \
         insert into account select i, 100 from generate_series(0, 3) i",
        )
        .await?;
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let sessions = (0..4).map(async |session| {
            let mut client = connect().await?;
            for i in 0..6 {
                while let Err(error) = transfer(&mut client, session + i, level).await {
                    let code = error.code().unwrap();
                    assert!(
                        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED]
                            .contains(code),
                        "{error}"
                    );
                }
            }
            Ok::<(), Error>(())
        });
        try_join_all(sessions).await?;
        assert_eq!(
            client.query_one("select sum(balance) from account", &[]).await?.get::<_, i64>(0),
            400
        );
    }
    client.batch_execute("drop table account").await
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut client = connect().await?;
    client
        .batch_execute(
            "drop table if exists item, account; \
         create table item (id int primary key, name text)",
        )
        .await?;
    errors(&mut client).await?;
    pipelines_and_portals(&mut client).await?;
    copies(&client).await?;
    user_types(&client).await?;
    cancels(&client).await?;
    retries(&client).await?;
    client.batch_execute("drop table item").await?;
    println!("tokio-postgres 0.7: 6 parts");
    Ok(())
}

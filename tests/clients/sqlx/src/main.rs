//! sqlx: pool, migrations, derived rows, user-defined types, nested transactions, COPY, retries.

use std::time::Duration;

use futures_util::{TryStreamExt, future::try_join_all};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgRow};
use sqlx::{Acquire, Connection, Executor, FromRow, PgConnection, PgPool, Row};

#[derive(Debug, PartialEq, FromRow)]
struct Item {
    id: i32,
    name: Option<String>,
    doc: sqlx::types::Json<Vec<i32>>,
}

#[derive(Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "mood", rename_all = "lowercase")]
enum Mood {
    Sad,
    Glad,
}

#[derive(Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "spot")]
struct Spot {
    x: i32,
    name: Option<String>,
}

fn migrations() -> Migrator {
    let migration = |version, sql: &'static str| {
        Migration::new(version, "step".into(), MigrationType::Simple, sql.into(), false)
    };
    Migrator {
        migrations: vec![
            migration(1, "create table item (id int primary key, name text)"),
            migration(
                2,
                "alter table item add column doc jsonb not null default '[]'; \
                 create type mood as enum ('sad', 'glad'); \
                 create type spot as (x int, name text)",
            ),
        ]
        .into(),
        ..Migrator::DEFAULT
    }
}

fn code(error: sqlx::Error) -> String {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .map(|code| code.into_owned())
        .unwrap_or_else(|| error.to_string())
}

async fn errors(pool: &PgPool) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    for (sql, expected) in
        [("selec 1", "42601"), ("select * from nowhere", "42P01"), ("select 1 / 0", "22012")]
    {
        assert_eq!(code(sqlx::query(sql).fetch_all(&mut *connection).await.unwrap_err()), expected);
        assert_eq!(code(connection.execute(sqlx::raw_sql(sql)).await.unwrap_err()), expected);
    }
    assert_eq!(
        code(sqlx::query("select 1 / $1").bind(0).fetch_all(&mut *connection).await.unwrap_err()),
        "22012"
    );
    let twice = sqlx::query("insert into item (id) values (1), (1)")
        .execute(&mut *connection)
        .await
        .unwrap_err();
    assert_eq!(twice.as_database_error().unwrap().constraint(), Some("item_pkey"));
    Ok(())
}

async fn values(pool: &PgPool) -> sqlx::Result<()> {
    for id in 0..100 {
        sqlx::query("insert into item values ($1, $2, $3)")
            .bind(id)
            .bind((id % 2 == 0).then(|| format!("n{id}")))
            .bind(sqlx::types::Json(vec![id]))
            .execute(pool)
            .await?;
    }
    let item: Item =
        sqlx::query_as("select * from item where id = $1").bind(4).fetch_one(pool).await?;
    assert_eq!(item, Item { id: 4, name: Some("n4".to_owned()), doc: sqlx::types::Json(vec![4]) });
    let rows: Vec<PgRow> =
        sqlx::query("select id from item order by id").fetch(pool).try_collect().await?;
    assert_eq!((rows.len(), rows[99].get::<i32, _>(0)), (100, 99));
    let spot = Spot { x: 1, name: None };
    let row = sqlx::query("select $1, $2, array['sad']::mood[]")
        .bind(Mood::Glad)
        .bind(&spot)
        .fetch_one(pool)
        .await?;
    assert_eq!((row.get::<Mood, _>(0), row.get::<Spot, _>(1)), (Mood::Glad, spot));
    assert_eq!(
        sqlx::query_scalar::<_, Vec<i32>>(
            "select array_agg(id order by id) from item where id = any($1)"
        )
        .bind(vec![3, 1])
        .fetch_one(pool)
        .await?,
        [1, 3]
    );
    Ok(())
}

async fn transactions(pool: &PgPool) -> sqlx::Result<()> {
    let mut outer = pool.begin().await?;
    sqlx::query("insert into item (id) values (500)").execute(&mut *outer).await?;
    let mut inner = outer.begin().await?;
    assert!(sqlx::query("insert into item (id) values (500)").execute(&mut *inner).await.is_err());
    inner.rollback().await?;
    outer.commit().await?;
    let dropped = pool.begin().await?;
    drop(dropped);
    let mut copy = pool.acquire().await?;
    let mut copy = copy.copy_in_raw("copy item (id, name) from stdin").await?;
    copy.send(&b"1000\tcopied\n1001\t\\N\n"[..]).await?;
    assert_eq!(copy.finish().await?, 2);
    assert_eq!(
        sqlx::query_scalar::<_, i64>("select count(*) from item").fetch_one(pool).await?,
        103
    );
    Ok(())
}

async fn add_one(pool: &PgPool, level: &str) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    transaction.execute(format!("set transaction isolation level {level}").as_str()).await?;
    let n: i32 = sqlx::query_scalar("select n from counter").fetch_one(&mut *transaction).await?;
    sqlx::query("update counter set n = $1").bind(n + 1).execute(&mut *transaction).await?;
    transaction.commit().await
}

async fn retries(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::raw_sql(
        "create table counter (id int primary key, n int); insert into counter values (1, 0)",
    )
    .execute(pool)
    .await?;
    for level in ["repeatable read", "serializable"] {
        let sessions = (0..4).map(async |_| {
            for _ in 0..5 {
                while let Err(error) = add_one(pool, level).await {
                    assert!(["40001", "40P01"].contains(&code(error).as_str()));
                }
            }
            Ok::<(), sqlx::Error>(())
        });
        try_join_all(sessions).await?;
    }
    assert_eq!(sqlx::query_scalar::<_, i32>("select n from counter").fetch_one(pool).await?, 40);
    Ok(())
}

#[tokio::main]
async fn main() -> sqlx::Result<()> {
    let options = PgConnectOptions::new();
    let mut one = PgConnection::connect_with(&options).await?;
    one.execute(
        "drop table if exists item, counter, _sqlx_migrations; \
         drop type if exists mood; drop type if exists spot",
    )
    .await?;
    let pool = PgPoolOptions::new()
        .max_connections(4)
        .acquire_timeout(Duration::from_secs(20))
        .connect_with(options)
        .await?;
    migrations().run(&pool).await?;
    migrations().run(&pool).await?;
    errors(&pool).await?;
    values(&pool).await?;
    transactions(&pool).await?;
    retries(&pool).await?;
    pool.close().await;
    println!("sqlx 0.8: migrations and 4 parts");
    Ok(())
}

// pgx: binary values, batches, prepared and described statements in all query modes, COPY, pools, cancels, retries.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	checks int
	guard  sync.Mutex
)

func check(actual, expected any) {
	guard.Lock()
	checks++
	guard.Unlock()
	if !reflect.DeepEqual(actual, expected) {
		fail(fmt.Sprintf("%#v is not %#v", actual, expected))
	}
}

func fail(what string) {
	fmt.Println(what)
	panic(what)
}

func must(err error) {
	if err != nil {
		fail(err.Error())
	}
}

func fails(err error, code string) {
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		fail(fmt.Sprintf("%v is not %s", err, code))
	}
	check(failure.Code, code)
}

func one[T any](ctx context.Context, c interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, query string, arguments ...any) T {
	var value T
	must(c.QueryRow(ctx, query, arguments...).Scan(&value))
	return value
}

func modes(ctx context.Context, c *pgx.Conn) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		check(one[int](ctx, c, "select $1::int + 1", mode, 6), 7)
		check(one[string](ctx, c, "select $1::text", mode, "é"), "é")
		check(one[[]byte](ctx, c, "select $1::bytea", mode, []byte{0, 255}), []byte{0, 255})
		_, err := c.Exec(ctx, "select 1 / $1::int", mode, 0)
		fails(err, "22012")
		_, err = c.Exec(ctx, "selec 1", mode)
		fails(err, "42601")
		_, err = c.Exec(ctx, "select * from nowhere", mode)
		fails(err, "42P01")
	}
	moment := time.Date(2024, 2, 29, 1, 2, 3, 4000, time.UTC)
	check(one[time.Time](ctx, c, "select $1::timestamptz", moment).UTC(), moment)
	check(one[[]int32](ctx, c, "select $1::int[]", []int32{1, 2}), []int32{1, 2})
	check(one[map[string]any](ctx, c, "select $1::jsonb", map[string]any{"a": 1.5}), map[string]any{"a": 1.5})
	check(one[*string](ctx, c, "select null::text"), (*string)(nil))
}

func batches(ctx context.Context, c *pgx.Conn) {
	batch := &pgx.Batch{}
	for i := range 100 {
		batch.Queue("insert into item (id, name) values ($1, $2)", i, fmt.Sprint("n", i))
	}
	batch.Queue("select count(*) from item").QueryRow(func(row pgx.Row) error {
		var count int
		must(row.Scan(&count))
		check(count, 100)
		return nil
	})
	must(c.SendBatch(ctx, batch).Close())
	wrong := &pgx.Batch{}
	wrong.Queue("insert into item (id) values ($1)", 500)
	wrong.Queue("select 1 / $1::int", 0)
	wrong.Queue("insert into item (id) values ($1)", 501)
	fails(c.SendBatch(ctx, wrong).Close(), "22012")
	check(one[int](ctx, c, "select count(*) from item"), 100)
}

func copies(ctx context.Context, c *pgx.Conn) {
	rows := [][]any{}
	for i := 1000; i < 3000; i++ {
		rows = append(rows, []any{i, "copied"})
	}
	count, err := c.CopyFrom(ctx, pgx.Identifier{"item"}, []string{"id", "name"}, pgx.CopyFromRows(rows))
	must(err)
	check(count, int64(2000))
	_, err = c.CopyFrom(ctx, pgx.Identifier{"item"}, []string{"id", "name"}, pgx.CopyFromRows(rows[:1]))
	fails(err, "23505")
	check(one[int](ctx, c, "select count(*) from item"), 2100)
}

func userTypes(ctx context.Context, c *pgx.Conn) {
	_, err := c.Exec(ctx, "create type mood as enum ('sad', 'glad'); create type spot as (x int, name text)")
	must(err)
	for _, name := range []string{"mood", "spot", "_spot"} {
		found, err := c.LoadType(ctx, name)
		must(err)
		c.TypeMap().RegisterType(found)
	}
	type spot struct {
		X    int32
		Name string
	}
	check(one[string](ctx, c, "select $1::mood", "glad"), "glad")
	check(one[spot](ctx, c, "select $1::spot", spot{1, "a"}), spot{1, "a"})
	check(one[[]spot](ctx, c, "select array[row(1, 'a'), row(2, 'b')]::spot[]"), []spot{{1, "a"}, {2, "b"}})
	_, err = c.Exec(ctx, "drop type spot; drop type mood")
	must(err)
}

func cancels(ctx context.Context, c *pgx.Conn) {
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := c.Exec(short, "select pg_sleep(60)")
	check(err != nil, true)
}

func pools(ctx context.Context) {
	pool, err := pgxpool.New(ctx, "pool_max_conns=4")
	must(err)
	defer pool.Close()
	_, err = pool.Exec(ctx, "create table account (id int primary key, balance int); insert into account select i, 100 from generate_series(0, 3) i")
	must(err)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				for {
					err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
						var balance int
						if err := tx.QueryRow(ctx, "select balance from account where id = $1", i%4).Scan(&balance); err != nil {
							return err
						}
						if _, err := tx.Exec(ctx, "update account set balance = $1 where id = $2", balance-1, i%4); err != nil {
							return err
						}
						_, err := tx.Exec(ctx, "update account set balance = balance + 1 where id = $1", (i+1)%4)
						return err
					})
					var failure *pgconn.PgError
					if errors.As(err, &failure) && (failure.Code == "40001" || failure.Code == "40P01") {
						continue
					}
					must(err)
					return
				}
			})
		}
		all.Wait()
		check(one[int](ctx, pool, "select sum(balance) from account"), 400)
	}
	_, err = pool.Exec(ctx, "drop table account")
	must(err)
}

func main() {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	c, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	must(err)
	_, err = c.Exec(ctx, "drop table if exists item, account; create table item (id int primary key, name text)")
	must(err)
	modes(ctx, c)
	batches(ctx, c)
	copies(ctx, c)
	userTypes(ctx, c)
	pools(ctx)
	_, err = c.Exec(ctx, "drop table item")
	must(err)
	cancels(ctx, c)
	fmt.Println("pgx v5:", checks, "checks")
}

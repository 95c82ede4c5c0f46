// node-postgres: parameters, named statements, cursors, COPY, errors in every state, pools with DISCARD ALL, cancels, retries.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import pg from 'pg'
import Cursor from 'pg-cursor'
import copy from 'pg-copy-streams'

let checks = 0
const check = (actual, expected) => { checks++; assert.deepEqual(actual, expected) }
const fails = async (promise, code) => {
  checks++
  await assert.rejects(promise, (error) => { assert.equal(error.code, code, error.message); return true })
}

const client = new pg.Client()
await client.connect()
await client.query('drop table if exists item, account')
await client.query('create table item (id int primary key, name text, tags text[], doc jsonb)')

const value = async (type, given) => (await client.query(`select $1::${type} as v`, [given])).rows[0].v
check(await value('int', 7), 7)
check(await value('bigint', '9007199254740993'), '9007199254740993')
check(await value('float8', 1.5), 1.5)
check(await value('text', 'é'), 'é')
check(await value('bytea', Buffer.from([0, 255])), Buffer.from([0, 255]))
check(await value('bool', true), true)
check(await value('jsonb', { a: [1] }), { a: [1] })
check(await value('text[]', ['a', null, 'b"']), ['a', null, 'b"'])
check(await value('timestamptz', new Date(1709168523004)), new Date(1709168523004))
check(await value('date', null), null)
check((await client.query({ text: 'select 1, 2', rowMode: 'array' })).rows, [[1, 2]])
check((await client.query('select 1 as a; select 2 as b')).map((result) => result.rows[0]), [{ a: 1 }, { b: 2 }])
const described = (await client.query('select id, name from item')).fields
check(described.map((field) => field.columnID), [1, 2])
check(described[0].tableID > 0, true)

for (let i = 0; i < 200; i++) {
  await client.query({ name: 'add', text: 'insert into item (id, name) values ($1, $2)', values: [i, `n${i}`] })
}
await fails(client.query('selec 1'), '42601')
await fails(client.query('select * from nowhere where a = $1', [1]), '42P01')
await fails(client.query('select $1::int', ['seven']), '22P02')
await fails(client.query({ name: 'add', text: 'insert into item (id, name) values ($1, $2)', values: [1, 'twice'] }), '23505')
await fails(client.query('select 1; select 1 / 0; select 2'), '22012')
await client.query('begin')
await fails(client.query('select 1 / $1::int', [0]), '22012')
await fails(client.query('select 1'), '25P02')
await client.query('rollback')
check((await client.query('select count(*)::int as n from item')).rows, [{ n: 200 }])

const cursor = client.query(new Cursor('select id from item where id >= $1 order by id', [150]))
check((await cursor.read(30)).length, 30)
check((await cursor.read(30)).length, 20)
check((await cursor.read(30)).length, 0)
await cursor.close()

const into = client.query(copy.from('copy item (id, name) from stdin'))
for (let i = 1000; i < 3000; i++) into.write(`${i}\tcopied ${i}\n`)
into.end()
await once(into, 'finish')
check(into.rowCount, 2000)
let copied = ''
const from = client.query(copy.to('copy (select id from item where id >= 2998 order by id) to stdout'))
for await (const chunk of from) copied += chunk
check(copied, '2998\n2999\n')
const wrong = client.query(copy.from('copy item (id) from stdin'))
wrong.write('oops\n')
wrong.end()
await fails(once(wrong, 'finish'), '22P02')

const notices = []
client.on('notice', (notice) => notices.push(notice.message))
await client.query('drop table if exists nowhere')
check(notices, ['table "nowhere" does not exist, skipping'])

const canceller = new pg.Client()
await canceller.connect()
const slow = client.query('select pg_sleep(60)')
let stopped = false
const stopping = (async () => {
  while (!stopped) await canceller.query('select pg_cancel_backend($1)', [client.processID])
})()
await fails(slow, '57014')
stopped = true
await stopping
await canceller.end()
check((await client.query('select 1 as a')).rows, [{ a: 1 }])

const pool = new pg.Pool({ max: 4 })
await Promise.all(Array.from({ length: 20 }, async (_, i) => {
  const one = await pool.connect()
  try {
    await one.query("set statement_timeout = '20s'")
    await one.query('insert into item (id, name) values ($1, $2) on conflict (id) do update set name = excluded.name', [i, 'pool'])
    await one.query('discard all')
    check((await one.query('show statement_timeout')).rows[0].statement_timeout, '0')
  } finally {
    one.release()
  }
}))
await pool.query('create table account (id int primary key, balance int)')
await pool.query('insert into account select i, 100 from generate_series(0, 3) i')
const transfer = async (i, level) => {
  for (;;) {
    const one = await pool.connect()
    try {
      await one.query(`begin isolation level ${level}`)
      const balance = (await one.query('select balance from account where id = $1', [i % 4])).rows[0].balance
      await one.query('update account set balance = $1 where id = $2', [balance - 1, i % 4])
      await one.query('update account set balance = balance + 1 where id = $1', [(i + 1) % 4])
      await one.query('commit')
      return
    } catch (error) {
      if (!['40001', '40P01'].includes(error.code)) throw error
      await one.query('rollback')
    } finally {
      one.release()
    }
  }
}
for (const level of ['repeatable read', 'serializable']) {
  await Promise.all(Array.from({ length: 20 }, (_, i) => transfer(i, level)))
  check((await pool.query('select sum(balance)::int as s from account')).rows, [{ s: 400 }])
}
await pool.end()
await client.query('drop table item, account')
await client.end()
console.log(`node-postgres: ${checks} checks`)

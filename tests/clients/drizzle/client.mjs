// Drizzle: a schema, typed queries, relations, upserts, nested transactions, prepared statements, errors.
import assert from 'node:assert/strict'
import { relations, sql, eq, and, gt, desc, count, sum, inArray } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { alias, integer, jsonb, numeric, pgEnum, pgTable, serial, text, timestamp, uuid } from 'drizzle-orm/pg-core'
import pg from 'pg'

let checks = 0
const check = (actual, expected) => { checks++; assert.deepEqual(actual, expected) }

const kind = pgEnum('dz_kind', ['small', 'large'])
const customers = pgTable('dz_customer', {
  id: serial().primaryKey(),
  name: text().notNull().unique(),
  kind: kind().default('small').notNull(),
  data: jsonb().$type(),
  tags: text().array(),
  token: uuid().defaultRandom(),
  since: timestamp({ withTimezone: true }).defaultNow(),
})
const orders = pgTable('dz_order', {
  id: integer().generatedAlwaysAsIdentity().primaryKey(),
  customer: integer().notNull().references(() => customers.id, { onDelete: 'cascade' }),
  amount: numeric({ precision: 10, scale: 2 }).notNull(),
})
const customerRelations = relations(customers, ({ many }) => ({ orders: many(orders) }))
const orderRelations = relations(orders, ({ one }) => ({ owner: one(customers, { fields: [orders.customer], references: [customers.id] }) }))

const pool = new pg.Pool({ max: 3 })
const db = drizzle(pool, { schema: { customers, orders, customerRelations, orderRelations } })
await db.execute(sql`drop table if exists dz_order, dz_customer`)
await db.execute(sql`drop type if exists dz_kind`)
await db.execute(sql`create type dz_kind as enum ('small', 'large')`)
await db.execute(sql`create table dz_customer (id serial primary key, name text not null unique, kind dz_kind default 'small' not null,
  data jsonb, tags text[], token uuid default gen_random_uuid(), since timestamptz default now())`)
await db.execute(sql`create table dz_order (id int generated always as identity primary key,
  customer int not null references dz_customer on delete cascade, amount numeric(10, 2) not null)`)

const added = await db.insert(customers).values(Array.from({ length: 40 }, (_, i) => ({ name: `c${i}`, data: { i }, tags: ['x', `${i}`] }))).returning()
check([added.length, added[3].tags, added[3].data, added[3].kind], [40, ['x', '3'], { i: 3 }, 'small'])
await db.insert(orders).values(added.flatMap((customer) => [1, 2, 3].map((amount) => ({ customer: customer.id, amount: `${amount}.50` }))))
check(await db.select({ n: count(), total: sum(orders.amount) }).from(orders), [{ n: 120, total: '300.00' }])
const loaded = await db.query.customers.findMany({ with: { orders: { where: gt(orders.amount, '2') } }, orderBy: desc(customers.id), limit: 2 })
check(loaded.map((customer) => customer.orders.map((order) => order.amount)), [['2.5', '3.5'], ['2.5', '3.5']])
check((await db.query.orders.findFirst({ with: { owner: true } })).owner.name, 'c0')
const other = alias(orders, 'other')
const joined = await db.select({ name: customers.name, n: count() }).from(customers).innerJoin(orders, eq(orders.customer, customers.id))
  .leftJoin(other, and(eq(other.customer, customers.id), gt(other.amount, orders.amount))).groupBy(customers.name).having(gt(count(), 3)).orderBy(customers.name).limit(1)
check(joined, [{ name: 'c0', n: 4 }])
const upserted = await db.insert(customers).values({ name: 'c1', kind: 'large' }).onConflictDoUpdate({ target: customers.name, set: { kind: sql`excluded.kind` } }).returning({ kind: customers.kind })
check(upserted, [{ kind: 'large' }])
const byName = db.select().from(customers).where(eq(customers.name, sql.placeholder('name'))).prepare('by_name')
check((await byName.execute({ name: 'c1' }))[0].kind, 'large')
check((await byName.execute({ name: 'none' })).length, 0)
await assert.rejects(db.insert(customers).values({ name: 'c1' }), (error) => (error.cause ?? error).code === '23505')
await assert.rejects(db.insert(orders).values({ customer: 99999, amount: '1' }), (error) => (error.cause ?? error).code === '23503')
await db.transaction(async (tx) => {
  await tx.update(customers).set({ name: 'renamed' }).where(eq(customers.name, 'c2'))
  await assert.rejects(tx.transaction(async (inner) => { await inner.delete(customers); inner.rollback() }))
  check((await tx.select({ n: count() }).from(customers))[0].n, 40)
  check((await tx.select().from(customers).where(inArray(customers.name, ['renamed', 'c3'])).for('update')).length, 2)
}, { isolationLevel: 'repeatable read' })
check((await db.delete(customers).where(eq(customers.name, 'renamed')).returning()).length, 1)
check((await db.select({ n: count() }).from(orders))[0].n, 117)
await db.execute(sql`drop table dz_order, dz_customer`)
await db.execute(sql`drop type dz_kind`)
await pool.end()
console.log(`Drizzle 0.44: ${checks} checks`)

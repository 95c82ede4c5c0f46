// TypeORM: synchronize twice and again after a change, migrations, relations, query builder, locks, errors, streams.
require('reflect-metadata')
const assert = require('node:assert/strict')
const { DataSource, EntitySchema, QueryFailedError, Table, In } = require('typeorm')

let checks = 0
const check = (actual, expected) => { checks++; assert.deepEqual(actual, expected) }

const customer = (more) => new EntitySchema({
  name: 'Customer',
  tableName: 'to_customer',
  columns: {
    id: { type: 'int', primary: true, generated: true },
    name: { type: 'varchar', length: 80, unique: true },
    kind: { type: 'enum', enum: ['small', 'large'], default: 'small' },
    data: { type: 'jsonb', nullable: true },
    tags: { type: 'text', array: true, default: '{}' },
    since: { type: 'timestamptz', createDate: true },
    version: { type: 'int', version: true },
    ...more,
  },
  relations: { orders: { type: 'one-to-many', target: 'Order', inverseSide: 'customer', cascade: true } },
})
const order = new EntitySchema({
  name: 'Order',
  tableName: 'to_order',
  columns: {
    id: { type: 'bigint', primary: true, generated: 'increment' },
    amount: { type: 'numeric', precision: 10, scale: 2 },
  },
  relations: { customer: { type: 'many-to-one', target: 'Customer', inverseSide: 'orders', onDelete: 'CASCADE', nullable: false } },
  indices: [{ name: 'to_order_amount', columns: ['amount'] }],
  checks: [{ name: 'to_order_positive', expression: '"amount" >= 0' }],
})
class AddNote1700000000000 {
  name = 'AddNote1700000000000'
  async up(runner) { await runner.createTable(new Table({ name: 'to_note', columns: [{ name: 'id', type: 'uuid', isPrimary: true, default: 'gen_random_uuid()' }, { name: 'text', type: 'text' }] })) }
  async down(runner) { await runner.dropTable('to_note') }
}
const source = (more) => new DataSource({
  type: 'postgres', host: process.env.PGHOST, port: Number(process.env.PGPORT), username: 'bennu', database: 'bennu', installExtensions: false,
  entities: [customer(more), order], migrations: [AddNote1700000000000], migrationsTableName: 'to_migrations', extra: { max: 3 },
})

const main = async () => {
  let db = await source({}).initialize()
  await db.query('drop table if exists to_order, to_customer, to_note, to_migrations')
  await db.query('drop type if exists to_customer_kind_enum')
  await db.synchronize()
  check((await db.driver.createSchemaBuilder().log()).upQueries.map((query) => query.query), [])
  await db.destroy()
  db = await source({ email: { type: 'varchar', nullable: true }, name: { type: 'text', unique: true } }).initialize()
  await db.synchronize()
  check((await db.driver.createSchemaBuilder().log()).upQueries.map((query) => query.query), [])
  check((await db.runMigrations()).length, 1)
  check((await db.runMigrations()).length, 0)
  await db.undoLastMigration()

  const customers = db.getRepository('Customer')
  const orders = db.getRepository('Order')
  await customers.save(Array.from({ length: 30 }, (_, i) => ({ name: `c${i}`, data: { i }, tags: ['x'], orders: [{ amount: '1.50' }, { amount: '2.50' }] })), { chunk: 10 })
  const one = await customers.findOne({ where: { name: 'c7' }, relations: { orders: true } })
  check([one.orders.length, one.data, one.tags, one.version], [2, { i: 7 }, ['x'], 1])
  one.kind = 'large'
  check((await customers.save(one)).version, 2)
  check(await orders.count(), 60)
  check(await customers.countBy({ name: In(['c1', 'c2', 'none']) }), 2)
  const sums = await orders.createQueryBuilder('o').innerJoin('o.customer', 'c').select('c.kind', 'kind').addSelect('sum(o.amount)', 'total').groupBy('c.kind').orderBy('total').getRawMany()
  check(sums, [{ kind: 'large', total: '4.00' }, { kind: 'small', total: '116.00' }])
  const paged = await customers.createQueryBuilder('c').leftJoinAndSelect('c.orders', 'o').orderBy('c.id').skip(5).take(5).getManyAndCount()
  check([paged[0].length, paged[1]], [5, 30])
  await customers.upsert({ name: 'c1', email: 'a@x' }, ['name'])
  check((await customers.findOneBy({ name: 'c1' })).email, 'a@x')
  const failed = async (promise, code) => { checks++; await assert.rejects(promise, (error) => error instanceof QueryFailedError && error.driverError.code === code) }
  await failed(customers.insert({ name: 'c1' }), '23505')
  await failed(orders.insert({ amount: '-1', customer: one }), '23514')
  await db.transaction('SERIALIZABLE', async (manager) => {
    const locked = await manager.getRepository('Customer').createQueryBuilder('c').setLock('pessimistic_write').setOnLocked('skip_locked').where('c.id < 4').getMany()
    check(locked.length, 3)
    await assert.rejects(manager.transaction(async (inner) => { await inner.delete('Order', {}); throw new Error('no') }))
    check(await manager.count('Order'), 60)
  })
  check((await customers.delete({ name: 'c1' })).affected, 1)
  check(await orders.count(), 58)
  await db.query('drop table to_order, to_customer, to_migrations')
  await db.query('drop type to_customer_kind_enum')
  await db.destroy()
  console.log(`TypeORM 0.3: ${checks} checks`)
}
main().catch((error) => { console.log(error); process.exit(1) })

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/** pgjdbc: all query modes, batches with generated keys, fetch sizes, metadata, COPY, savepoints, cancels, retries. */
public class Client {
    static int checks;

    static synchronized void check(Object actual, Object expected) {
        checks++;
        if (!Objects.deepEquals(actual, expected)) {
            throw new AssertionError(actual + " is not " + expected);
        }
    }

    interface Action {
        void run() throws Exception;
    }

    static void fails(String state, Action action) throws Exception {
        try {
            action.run();
        } catch (SQLException error) {
            while (error.getNextException() != null) {
                error = error.getNextException();
            }
            check(error.getSQLState(), state);
            return;
        }
        throw new AssertionError("no " + state);
    }

    static Connection connect(String... settings) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", "bennu");
        for (int i = 0; i < settings.length; i += 2) {
            properties.setProperty(settings[i], settings[i + 1]);
        }
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/bennu";
        return DriverManager.getConnection(url, properties);
    }

    static void run(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute(sql);
        }
    }

    static Object one(Connection c, String sql, Object... values) throws SQLException {
        try (PreparedStatement s = c.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                s.setObject(i + 1, values[i]);
            }
            try (ResultSet rows = s.executeQuery()) {
                rows.next();
                return rows.getObject(1);
            }
        }
    }

    static void modes() throws Exception {
        for (String mode : List.of("simple", "extended", "extendedForPrepared", "extendedCacheEverything")) {
            try (Connection c = connect("preferQueryMode", mode, "prepareThreshold", "2")) {
                for (int i = 0; i < 6; i++) {
                    check(one(c, "select ?::int + 1", i), i + 1);
                }
                check(one(c, "select ?::text", "é"), "é");
                check(one(c, "select ?::numeric", new BigDecimal("1.50")), new BigDecimal("1.50"));
                check(one(c, "select ?::date", LocalDate.of(2024, 2, 29)).toString(), "2024-02-29");
                check(one(c, "select ?::bytea", (Object) new byte[] {0, (byte) 255}), new byte[] {0, (byte) 255});
                check(one(c, "select ?::timestamptz = '2024-02-29 01:02:03+00'", OffsetDateTime.parse("2024-02-29T01:02:03Z")), true);
                Array array = c.createArrayOf("int4", new Object[] {1, null, 3});
                check(((Array) one(c, "select ?::int4[]", array)).getArray(), new Integer[] {1, null, 3});
                fails("42601", () -> one(c, "selec 1"));
                fails("42P01", () -> one(c, "select * from nowhere where a = ?", 1));
                fails("22012", () -> one(c, "select 1 / ?::int", 0));
                check(one(c, "select 1"), 1);
            }
        }
    }

    static void batches(Connection c) throws Exception {
        run(c, "create table item (id serial primary key, name text not null, price numeric(10,2))");
        try (PreparedStatement s = c.prepareStatement("insert into item (name, price) values (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 0; i < 300; i++) {
                s.setString(1, "n" + i);
                s.setBigDecimal(2, new BigDecimal(i));
                s.addBatch();
            }
            check(s.executeBatch().length, 300);
            ResultSet keys = s.getGeneratedKeys();
            keys.next();
            check(keys.getInt("id"), 1);
        }
        try (PreparedStatement s = c.prepareStatement("insert into item (id, name) values (?, ?)")) {
            for (int id : new int[] {1000, 1, 1001}) {
                s.setInt(1, id);
                s.setString(2, "x");
                s.addBatch();
            }
            fails("23505", s::executeBatch);
        }
        check(one(c, "select count(*) from item where id >= 1000"), 0L);
        c.setAutoCommit(false);
        try (Statement s = c.createStatement()) {
            s.setFetchSize(25);
            ResultSet rows = s.executeQuery("select id from item order by id");
            int seen = 0;
            while (rows.next()) {
                seen++;
            }
            check(seen, 300);
        }
        Savepoint savepoint = c.setSavepoint("s");
        fails("22012", () -> run(c, "select 1 / 0"));
        c.rollback(savepoint);
        check(one(c, "select 1"), 1);
        c.commit();
        c.setAutoCommit(true);
        try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            ResultSet rows = s.executeQuery("select id, name from item where id < 4 order by id");
            rows.last();
            rows.updateString("name", "changed");
            rows.updateRow();
        }
        check(one(c, "select name from item where id = 3"), "changed");
    }

    static void metadata(Connection c) throws Exception {
        run(c, "create table part (id int primary key, item int references item on delete cascade, note varchar(9) default 'x', unique (item, note))");
        DatabaseMetaData metadata = c.getMetaData();
        check(names(metadata.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"), List.of("item", "part"));
        check(names(metadata.getColumns(null, "public", "part", "%"), "COLUMN_NAME"), List.of("id", "item", "note"));
        check(names(metadata.getPrimaryKeys(null, "public", "part"), "COLUMN_NAME"), List.of("id"));
        check(names(metadata.getImportedKeys(null, "public", "part"), "PKTABLE_NAME"), List.of("item"));
        check(names(metadata.getExportedKeys(null, "public", "item"), "FKTABLE_NAME"), List.of("part"));
        check(names(metadata.getIndexInfo(null, "public", "part", true, false), "COLUMN_NAME"), List.of("item", "note", "id"));
        check(names(metadata.getColumns(null, "public", "item", "id"), "IS_AUTOINCREMENT"), List.of("YES"));
        check(metadata.getTypeInfo().next(), true);
        try (PreparedStatement s = c.prepareStatement("select id, name from item where price > ?")) {
            check(s.getParameterMetaData().getParameterTypeName(1), "numeric");
            check(s.getMetaData().getColumnTypeName(2), "text");
            check(s.getMetaData().getTableName(2), "item");
            check(s.getMetaData().isNullable(2), java.sql.ResultSetMetaData.columnNoNulls);
        }
        run(c, "drop table part");
    }

    static List<String> names(ResultSet rows, String column) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            if (!found.contains(rows.getString(column))) {
                found.add(rows.getString(column));
            }
        }
        return found;
    }

    static void copies(Connection c) throws Exception {
        CopyManager copy = c.unwrap(PGConnection.class).getCopyAPI();
        check(copy.copyIn("copy item (id, name) from stdin with csv", new StringReader("2000,\"a,b\"\n2001,c\n")), 2L);
        StringWriter out = new StringWriter();
        copy.copyOut("copy (select id, name from item where id >= 2000 order by id) to stdout", out);
        check(out.toString(), "2000\ta,b\n2001\tc\n");
        fails("22P02", () -> copy.copyIn("copy item (id, name) from stdin", new StringReader("oops\tx\n")));
        check(one(c, "select 1"), 1);
    }

    static void cancels(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            fails("57014", () -> s.execute("select pg_sleep(60)"));
        }
        check(one(c, "select 1"), 1);
        c.setReadOnly(true);
        c.setAutoCommit(false);
        fails("25006", () -> run(c, "delete from item"));
        c.rollback();
        c.setAutoCommit(true);
        c.setReadOnly(false);
    }

    static void retries(Connection c) throws Exception {
        run(c, "create table account (id int primary key, balance int)");
        run(c, "insert into account select i, 100 from generate_series(0, 3) i");
        var pool = Executors.newFixedThreadPool(4);
        for (int level : new int[] {Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE}) {
            List<Future<Void>> running = new ArrayList<>();
            for (int session = 0; session < 4; session++) {
                int first = session;
                Callable<Void> transfers = () -> {
                    try (Connection own = connect()) {
                        own.setAutoCommit(false);
                        own.setTransactionIsolation(level);
                        for (int i = first; i < first + 6; ) {
                            try {
                                int balance = (Integer) one(own, "select balance from account where id = ?", i % 4);
                                run(own, "update account set balance = " + (balance - 1) + " where id = " + i % 4);
                                run(own, "update account set balance = balance + 1 where id = " + (i + 1) % 4);
                                own.commit();
                                i++;
                            } catch (SQLException error) {
                                check(List.of("40001", "40P01").contains(error.getSQLState()), true);
                                own.rollback();
                            }
                        }
                    }
                    return null;
                };
                running.add(pool.submit(transfers));
            }
            for (Future<Void> session : running) {
                session.get();
            }
            check(one(c, "select sum(balance) from account"), 400L);
        }
        pool.shutdown();
    }

    public static void main(String[] arguments) throws Exception {
        try (Connection c = connect()) {
            run(c, "drop table if exists part, item, account");
            modes();
            batches(c);
            metadata(c);
            copies(c);
            cancels(c);
            retries(c);
            run(c, "drop table item, account");
        }
        System.out.println("pgjdbc 42.7.8: " + checks + " checks");
    }
}

import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import org.hibernate.SessionFactory;
import org.hibernate.StaleObjectStateException;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;
import org.hibernate.type.SqlTypes;

/** Hibernate: hbm2ddl create, validate and update, entities and their collections, HQL, locks, batches, versions. */
public class Client {
    static int checks;

    static void check(Object actual, Object expected) {
        checks++;
        if (!Objects.equals(actual, expected)) {
            throw new AssertionError(actual + " is not " + expected);
        }
    }

    enum Kind { SMALL, LARGE }

    @Entity(name = "Customer")
    @Table(name = "hib_customer")
    public static class Customer {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @Column(length = 80, nullable = false, unique = true) String name;
        @Enumerated(EnumType.STRING) Kind kind = Kind.SMALL;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, String> data;
        @JdbcTypeCode(SqlTypes.ARRAY) String[] tags = {"x"};
        UUID token = UUID.randomUUID();
        Instant since = Instant.parse("2024-02-29T01:02:03Z");
        @Version int version;
        @OneToMany(mappedBy = "customer", cascade = CascadeType.ALL, orphanRemoval = true) List<Order> orders = new ArrayList<>();
    }

    @Entity(name = "Order")
    @Table(name = "hib_order")
    public static class Order {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @ManyToOne(optional = false) Customer customer;
        @Column(precision = 10, scale = 2) BigDecimal amount;
    }

    static SessionFactory open(String schema) {
        Configuration configuration = new Configuration();
        configuration.addAnnotatedClass(Customer.class).addAnnotatedClass(Order.class);
        configuration.setProperty("hibernate.connection.url",
            "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/bennu?user=bennu");
        configuration.setProperty("hibernate.hbm2ddl.auto", schema);
        configuration.setProperty("hibernate.jdbc.batch_size", "20");
        configuration.setProperty("hibernate.order_inserts", "true");
        return configuration.buildSessionFactory();
    }

    public static void main(String[] arguments) {
        try (SessionFactory factory = open("create")) {
            factory.inTransaction(session -> {
                for (int i = 0; i < 60; i++) {
                    Customer customer = new Customer();
                    customer.name = "c" + i;
                    customer.data = Map.of("i", "" + i);
                    for (int j = 0; j < 3; j++) {
                        Order order = new Order();
                        order.customer = customer;
                        order.amount = new BigDecimal(j + ".50");
                        customer.orders.add(order);
                    }
                    session.persist(customer);
                }
            });
        }
        try (SessionFactory factory = open("validate")) {
            factory.inTransaction(session -> check(session.createQuery("select count(*) from Order", Long.class).getSingleResult(), 180L));
        }
        try (SessionFactory factory = open("update")) {
            factory.inTransaction(session -> {
                Customer one = session.createQuery("from Customer c join fetch c.orders where c.name = :name", Customer.class)
                    .setParameter("name", "c7").setLockMode(LockModeType.NONE).getSingleResult();
                check(one.orders.size(), 3);
                check(one.data.get("i"), "7");
                check(one.tags.length, 1);
                one.kind = Kind.LARGE;
                one.orders.remove(0);
                check(session.createQuery("select c.kind, sum(o.amount) from Customer c join c.orders o group by c.kind order by 1", Object[].class).list().size() > 0, true);
                check(session.createQuery("select o.id, rank() over (order by o.amount desc) from Order o order by o.id", Object[].class).setMaxResults(5).setFirstResult(2).list().size(), 5);
                session.find(Customer.class, one.id, LockModeType.PESSIMISTIC_WRITE);
                try (var rows = session.createQuery("from Order", Order.class).setFetchSize(25).stream()) {
                    check(rows.count(), 179L);
                }
                check(session.createMutationQuery("update Order set amount = amount + 1 where amount > 2").executeUpdate(), 60);
            });
            try {
                factory.inTransaction(session -> {
                    Customer twice = new Customer();
                    twice.name = "c1";
                    session.persist(twice);
                });
                check("persisted", "ConstraintViolationException");
            } catch (ConstraintViolationException error) {
                check(error.getSQLState(), "23505");
            }
            try {
                factory.inTransaction(outer -> {
                    Customer stale = outer.createQuery("from Customer where name = 'c2'", Customer.class).getSingleResult();
                    factory.inTransaction(inner -> inner.createQuery("from Customer where name = 'c2'", Customer.class).getSingleResult().kind = Kind.LARGE);
                    stale.tags = new String[] {"stale"};
                    outer.flush();
                });
                check("flushed", "StaleObjectStateException");
            } catch (jakarta.persistence.OptimisticLockException | StaleObjectStateException error) {
                check(true, true);
            }
            factory.inTransaction(session -> check(session.createMutationQuery("delete from Order").executeUpdate(), 179));
            factory.getSchemaManager().dropMappedObjects(false);
        }
        System.out.println("Hibernate 6.6: " + checks + " checks");
    }
}

// GORM: AutoMigrate twice, associations, upserts, locking, savepoints, batches, errors it translates.
package main

import (
	"errors"
	"fmt"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Customer struct {
	ID        uint
	Name      string `gorm:"size:80;uniqueIndex"`
	Email     *string
	CreatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
	Orders    []Order        `gorm:"constraint:OnDelete:CASCADE"`
}

type Order struct {
	ID         uint
	CustomerID uint `gorm:"index"`
	Amount     float64 `gorm:"type:numeric(10,2);check:amount >= 0"`
	Tags       []Tag `gorm:"many2many:order_tags"`
}

type Tag struct {
	Name string `gorm:"primaryKey"`
}

var checks int

func check[T comparable](actual, expected T) {
	checks++
	if actual != expected {
		panic(fmt.Sprintf("%v is not %v", actual, expected))
	}
}

func must(result *gorm.DB) *gorm.DB {
	if result.Error != nil {
		panic(result.Error)
	}
	return result
}

func main() {
	db, err := gorm.Open(postgres.Open(""), &gorm.Config{TranslateError: true, Logger: logger.Default.LogMode(logger.Silent)})
	if err != nil {
		panic(err)
	}
	must(db.Exec("drop table if exists order_tags, tags, orders, customers"))
	for range 2 {
		if err := db.AutoMigrate(&Customer{}, &Order{}, &Tag{}); err != nil {
			panic(err)
		}
	}
	check(db.Migrator().HasTable("orders"), true)
	check(db.Migrator().HasIndex(&Customer{}, "idx_customers_name"), true)
	columns, err := db.Migrator().ColumnTypes(&Order{})
	check(err == nil && len(columns) == 3, true)
	type Customer2 struct {
		Customer
		Note string `gorm:"default:none"`
	}
	check(db.Table("customers").AutoMigrate(&Customer2{}) == nil, true)

	customers := []Customer{}
	for i := range 50 {
		customers = append(customers, Customer{Name: fmt.Sprint("c", i), Orders: []Order{{Amount: 1}, {Amount: 2.5, Tags: []Tag{{"x"}}}}})
	}
	must(db.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(&customers, 20))
	var loaded Customer
	must(db.Preload("Orders.Tags").First(&loaded, "name = ?", "c7"))
	check(len(loaded.Orders), 2)
	check(loaded.Orders[1].Tags[0].Name, "x")
	var sum float64
	must(db.Model(&Order{}).Select("sum(amount)").Scan(&sum))
	check(sum, 175)
	must(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.Assignments(map[string]any{"email": "a@x"})}).
		Create(&Customer{Name: "c7"}))
	must(db.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).First(&loaded, "name = ?", "c7"))
	check(*loaded.Email, "a@x")
	check(errors.Is(db.Create(&Customer{Name: "c7"}).Error, gorm.ErrDuplicatedKey), true)
	check(errors.Is(db.Create(&Order{CustomerID: 99999}).Error, gorm.ErrForeignKeyViolated), true)
	check(db.Create(&Order{CustomerID: loaded.ID, Amount: -1}).Error != nil, true)
	check(errors.Is(db.First(&Customer{}, "name = ?", "nobody").Error, gorm.ErrRecordNotFound), true)
	err = db.Transaction(func(tx *gorm.DB) error {
		must(tx.Model(&loaded).Update("name", "renamed"))
		inner := tx.Transaction(func(tx *gorm.DB) error { return tx.Exec("select 1 / 0").Error })
		check(inner != nil, true)
		return nil
	})
	check(err == nil, true)
	must(db.Delete(&loaded))
	var count int64
	must(db.Model(&Customer{}).Count(&count))
	check(count, 49)
	rows, err := db.Model(&Order{}).Where("amount > ?", 2).Order("id").Rows()
	check(err == nil, true)
	seen := 0
	for rows.Next() {
		seen++
	}
	rows.Close()
	check(seen, 50)
	if err := db.Migrator().DropTable("order_tags", "tags", "orders", "customers"); err != nil {
		panic(err)
	}
	fmt.Println("GORM 1.31:", checks, "checks")
}

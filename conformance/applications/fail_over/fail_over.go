// What fail_over.mjs does, with the Go driver.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/readpref"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
)

const (
	lanes      = 4
	listLength = 32
	accounts   = 4
	money      = 100
	// Nothing that is waited for takes longer, unless it hangs.
	patience = 120 * time.Second
)

type appended struct {
	list   string
	number int32
}

type lane struct {
	inserts        []string
	appends        []appended
	moves, reads   int
	unknown        int
	wrong          error
	documents      *mongo.Collection
	lists, balance *mongo.Collection
}

func main() {
	background := context.Background()
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	must(err)
	config := options.Client().ApplyURI(os.Args[1]).SetWriteConcern(writeconcern.Majority())
	config.SetConnectTimeout(2 * time.Second).SetSocketTimeout(5 * time.Second).SetServerSelectionTimeout(patience)
	client, err := mongo.Connect(background, config)
	must(err)
	database := client.Database("go")
	balance := database.Collection("accounts")
	for number := 0; number < accounts; number++ {
		_, err := balance.InsertOne(background, bson.M{"_id": number, "money": money})
		must(err)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	all := make([]lane, lanes)
	var group sync.WaitGroup
	for number := range all {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			own := &all[number]
			own.documents, own.lists, own.balance = database.Collection("documents"), database.Collection("lists"), balance
			for count := 0; time.Now().Before(end) && own.wrong == nil; count++ {
				if err := own.step(client, number, count); err != nil {
					if mongo.IsDuplicateKeyError(err) {
						own.wrong = err
					}
					// What became of it isn't known.
					own.unknown++
				}
			}
		}(number)
	}
	group.Wait()
	report(background, database, all)
}

func (own *lane) step(client *mongo.Client, number, count int) error {
	step, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	id := fmt.Sprintf("%d-%d", number, count)
	if _, err := own.documents.InsertOne(step, bson.M{"_id": id}); err != nil {
		return err
	}
	own.inserts = append(own.inserts, id)
	list := fmt.Sprintf("%d-%d", number, count/listLength)
	push := bson.M{"$push": bson.M{"numbers": int32(count)}}
	if _, err := own.lists.UpdateOne(step, bson.M{"_id": list}, push, options.Update().SetUpsert(true)); err != nil {
		return err
	}
	own.appends = append(own.appends, appended{list, int32(count)})
	if err := own.move(step, client, count%accounts, (count+1)%accounts); err != nil {
		return err
	}
	return own.readOwnWrite(step, client, id, count)
}

func (own *lane) move(step context.Context, client *mongo.Client, from, to int) error {
	session, err := client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(step)
	concerns := options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())
	_, err = session.WithTransaction(step, func(inside mongo.SessionContext) (any, error) {
		if _, err := own.balance.UpdateOne(inside, bson.M{"_id": from}, bson.M{"$inc": bson.M{"money": -1}}); err != nil {
			return nil, err
		}
		return own.balance.UpdateOne(inside, bson.M{"_id": to}, bson.M{"$inc": bson.M{"money": 1}})
	}, concerns)
	if err == nil {
		own.moves++
	}
	return err
}

func (own *lane) readOwnWrite(step context.Context, client *mongo.Client, id string, count int) error {
	return client.UseSession(step, func(session mongo.SessionContext) error {
		set := bson.M{"$set": bson.M{"number": int32(count)}}
		if _, err := own.documents.UpdateOne(session, bson.M{"_id": id}, set); err != nil {
			return err
		}
		secondary := options.Collection().SetReadPreference(readpref.SecondaryPreferred())
		reader, err := own.documents.Clone(secondary)
		if err != nil {
			return err
		}
		var found struct{ Number *int32 }
		err = reader.FindOne(session, bson.M{"_id": id}).Decode(&found)
		if errors.Is(err, mongo.ErrNoDocuments) || err == nil && (found.Number == nil || *found.Number != int32(count)) {
			own.wrong = fmt.Errorf("its own write isn't read: %s", id)
		}
		if err == nil {
			own.reads++
		}
		return err
	})
}

func report(background context.Context, database *mongo.Database, all []lane) {
	there, numbers := map[string]bool{}, map[appended]int{}
	var documents []struct {
		ID string `bson:"_id"`
	}
	find(background, database, "documents", &documents)
	for _, document := range documents {
		there[document.ID] = true
	}
	var lists []struct {
		ID      string `bson:"_id"`
		Numbers []int32
	}
	find(background, database, "lists", &lists)
	for _, list := range lists {
		for _, number := range list.Numbers {
			numbers[appended{list.ID, number}]++
		}
	}
	var balance []struct{ Money int32 }
	find(background, database, "accounts", &balance)
	sum, lost, twice := int32(0), 0, 0
	for _, account := range balance {
		sum += account.Money
	}
	for _, count := range numbers {
		if count > 1 {
			twice++
		}
	}
	var total lane
	for _, own := range all {
		for _, id := range own.inserts {
			if !there[id] {
				lost++
			}
		}
		for _, each := range own.appends {
			if numbers[each] == 0 {
				lost++
			}
		}
		total.inserts, total.appends = append(total.inserts, own.inserts...), append(total.appends, own.appends...)
		total.moves, total.reads, total.unknown = total.moves+own.moves, total.reads+own.reads, total.unknown+own.unknown
		if own.wrong != nil {
			total.wrong = own.wrong
		}
	}
	fmt.Printf("Go's driver: %d inserts, %d appends, %d transactions, %d causal reads: %d lost, %d twice, %d of %d money; %d not known\n",
		len(total.inserts), len(total.appends), total.moves, total.reads, lost, twice, sum, accounts*money, total.unknown)
	if total.wrong != nil || lost+twice > 0 || sum != accounts*money || total.moves == 0 || total.reads == 0 {
		fmt.Println(total.wrong)
		os.Exit(1)
	}
}

func find(background context.Context, database *mongo.Database, name string, to any) {
	cursor, err := database.Collection(name).Find(background, bson.M{})
	must(err)
	must(cursor.All(background, to))
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

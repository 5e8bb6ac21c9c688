// The application of drivers.py with the Go driver.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/gridfs"
	"go.mongodb.org/mongo-driver/mongo/options"
)

const (
	seconds   = 3
	fileBytes = 2_000_000
	textBytes = 1_000_000
)

var (
	background = context.Background()
	told       = map[string]any{}
	errFailed  = errors.New("taken back")
)

func main() {
	client := value(mongo.Connect(background, options.Client().ApplyURI(os.Args[1])))
	database := client.Database("go")
	things := database.Collection("things")
	var status struct {
		AuthInfo struct{ AuthenticatedUsers []struct{ User string } } `bson:"authInfo"`
	}
	command := bson.D{{Key: "connectionStatus", Value: 1}}
	must(client.Database("admin").RunCommand(background, command).Decode(&status))
	told["user"] = status.AuthInfo.AuthenticatedUsers[0].User
	readAndWrite(things)
	transact(client, things)
	token := watch(things)
	countThroughAKill(things)
	stream := value(things.Watch(background, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token)))
	told["resumed"] = next(stream)
	keepFile(database)
	compress(client, things)
	fmt.Println(string(value(json.Marshal(told))))
}

func readAndWrite(things *mongo.Collection) {
	must(things.Drop(background))
	var documents []any
	for number := 0; number < 500; number++ {
		documents = append(documents, bson.M{"_id": number, "v": number})
	}
	value(things.InsertMany(background, documents))
	told["found"] = values(things, bson.M{"v": bson.M{"$lt": 5}}, -1)
	filter, update := bson.M{"v": bson.M{"$gte": 490}}, bson.M{"$inc": bson.M{"v": 1000}}
	told["modified"] = value(things.UpdateMany(background, filter, update)).ModifiedCount
	told["deleted"] = value(things.DeleteOne(background, bson.M{"_id": 499})).DeletedCount
	told["count"] = value(things.CountDocuments(background, bson.M{}))
	group := bson.D{{Key: "$group", Value: bson.M{"_id": nil, "sum": bson.M{"$sum": "$v"}}}}
	var sums []struct{ Sum int64 }
	must(value(things.Aggregate(background, mongo.Pipeline{group})).All(background, &sums))
	told["sum"] = sums[0].Sum
}

func transact(client *mongo.Client, things *mongo.Collection) {
	session := value(client.StartSession())
	defer session.EndSession(background)
	add := bson.M{"$inc": bson.M{"v": 10}}
	value(session.WithTransaction(background, func(inside mongo.SessionContext) (any, error) {
		if _, err := things.UpdateOne(inside, bson.M{"_id": 1}, add); err != nil {
			return nil, err
		}
		return things.DeleteOne(inside, bson.M{"_id": 2})
	}))
	_, err := session.WithTransaction(background, func(inside mongo.SessionContext) (any, error) {
		if _, err := things.UpdateOne(inside, bson.M{"_id": 3}, add); err != nil {
			return nil, err
		}
		return nil, errFailed
	})
	if err != errFailed {
		panic(err)
	}
	told["transaction"] = values(things, bson.M{"_id": bson.M{"$in": []int{1, 2, 3}}}, 1)
}

func watch(things *mongo.Collection) bson.Raw {
	stream := value(things.Watch(background, mongo.Pipeline{}))
	defer stream.Close(background)
	value(things.InsertOne(background, bson.M{"_id": "event"}))
	told["event"] = next(stream)
	return stream.ResumeToken()
}

func countThroughAKill(things *mongo.Collection) {
	fmt.Println("kill")
	acknowledged, unknown := 0, 0
	for end := time.Now().Add(seconds * time.Second); time.Now().Before(end); {
		_, err := things.UpdateOne(background, bson.M{"_id": 0}, bson.M{"$inc": bson.M{"n": 1}})
		if err == nil {
			acknowledged++
		} else if mongo.IsNetworkError(err) {
			unknown++
		} else {
			panic(err)
		}
	}
	var counted struct{ N int }
	must(things.FindOne(background, bson.M{"_id": 0}).Decode(&counted))
	told["counts"] = []int{acknowledged, counted.N, unknown}
}

func keepFile(database *mongo.Database) {
	files := value(gridfs.NewBucket(database))
	written := make([]byte, fileBytes)
	value(rand.Read(written))
	id := value(files.UploadFromStream("file", bytes.NewReader(written)))
	var read bytes.Buffer
	value(files.DownloadToStream(id, &read))
	told["file"] = bytes.Equal(read.Bytes(), written)
}

// How much of an answer that repeats itself goes over the wire.
func compress(client *mongo.Client, things *mongo.Collection) {
	text := bytes.Repeat([]byte("x"), textBytes)
	value(things.InsertOne(background, bson.M{"_id": "text", "text": string(text)}))
	bytesOut, physical := traffic(client)
	_, err := things.FindOne(background, bson.M{"_id": "text"}).Raw()
	must(err)
	bytesAfter, physicalAfter := traffic(client)
	told["compressed"] = physicalAfter-physical < (bytesAfter-bytesOut)/2
}

func traffic(client *mongo.Client) (int64, int64) {
	var status struct {
		Network struct {
			BytesOut int64 `bson:"bytesOut"`
			Physical int64 `bson:"physicalBytesOut"`
		}
	}
	command := bson.D{{Key: "serverStatus", Value: 1}}
	must(client.Database("admin").RunCommand(background, command).Decode(&status))
	return status.Network.BytesOut, status.Network.Physical
}

// The field v of what a filter finds, by _id.
func values(things *mongo.Collection, filter bson.M, direction int) []int {
	sorted := options.Find().SetSort(bson.M{"_id": direction})
	var found []struct{ V int }
	must(value(things.Find(background, filter, sorted)).All(background, &found))
	var out []int
	for _, each := range found {
		out = append(out, each.V)
	}
	return out
}

func next(stream *mongo.ChangeStream) []any {
	if !stream.Next(background) {
		panic(stream.Err())
	}
	var event struct {
		Kind string `bson:"operationType"`
		Key  bson.M `bson:"documentKey"`
	}
	must(stream.Decode(&event))
	return []any{event.Kind, event.Key["_id"]}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func value[T any](it T, err error) T {
	must(err)
	return it
}

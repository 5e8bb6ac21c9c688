// The application of drivers.py with the Java driver.

import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.gte;
import static com.mongodb.client.model.Filters.in;
import static com.mongodb.client.model.Filters.lt;
import static com.mongodb.client.model.Updates.inc;

import com.mongodb.MongoException;
import com.mongodb.client.ClientSession;
import com.mongodb.client.FindIterable;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.gridfs.GridFSBucket;
import com.mongodb.client.gridfs.GridFSBuckets;
import com.mongodb.client.model.Accumulators;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.bson.BsonDocument;
import org.bson.BsonString;
import org.bson.BsonValue;
import org.bson.Document;

public class Application {
    static final int SECONDS = 3;
    static final int FILE_BYTES = 2_000_000;
    static final int TEXT_BYTES = 1_000_000;
    static final Document told = new Document();

    public static void main(String[] arguments) {
        try (MongoClient client = MongoClients.create(arguments[0])) {
            MongoCollection<Document> things = client.getDatabase("java").getCollection("things");
            Document status = client.getDatabase("admin").runCommand(new Document("connectionStatus", 1));
            List<Document> users = status.get("authInfo", Document.class).getList("authenticatedUsers", Document.class);
            told.put("user", users.get(0).getString("user"));
            readAndWrite(things);
            transact(client, things);
            BsonDocument token = watch(things);
            countThroughAKill(things);
            try (var stream = things.watch().resumeAfter(token).cursor()) {
                told.put("resumed", describe(stream.next()));
            }
            keepFile(client);
            compress(client, things);
        }
        System.out.println(told.toJson());
    }

    static void readAndWrite(MongoCollection<Document> things) {
        things.drop();
        List<Document> documents = new ArrayList<>();
        for (int number = 0; number < 500; number++) {
            documents.add(new Document("_id", number).append("v", number));
        }
        things.insertMany(documents);
        told.put("found", values(things.find(lt("v", 5)).sort(new Document("_id", -1))));
        told.put("modified", things.updateMany(gte("v", 490), inc("v", 1000)).getModifiedCount());
        told.put("deleted", things.deleteOne(eq("_id", 499)).getDeletedCount());
        told.put("count", things.countDocuments());
        var group = Aggregates.group(null, Accumulators.sum("sum", "$v"));
        told.put("sum", things.aggregate(List.of(group)).first().get("sum"));
    }

    static void transact(MongoClient client, MongoCollection<Document> things) {
        try (ClientSession session = client.startSession()) {
            session.withTransaction(() -> {
                things.updateOne(session, eq("_id", 1), inc("v", 10));
                return things.deleteOne(session, eq("_id", 2));
            });
            session.withTransaction(() -> {
                things.updateOne(session, eq("_id", 3), inc("v", 10));
                throw new IllegalStateException("taken back");
            });
        } catch (IllegalStateException expected) {
            told.put("transaction", values(things.find(in("_id", 1, 2, 3)).sort(new Document("_id", 1))));
        }
    }

    static BsonDocument watch(MongoCollection<Document> things) {
        try (var stream = things.watch().cursor()) {
            things.insertOne(new Document("_id", "event"));
            told.put("event", describe(stream.next()));
            return stream.getResumeToken();
        }
    }

    static void countThroughAKill(MongoCollection<Document> things) {
        System.out.println("kill");
        int acknowledged = 0;
        int unknown = 0;
        for (long end = System.nanoTime() + SECONDS * 1_000_000_000L; System.nanoTime() < end; ) {
            try {
                things.updateOne(eq("_id", 0), inc("n", 1));
                acknowledged++;
            } catch (MongoException error) {
                unknown++;
            }
        }
        int there = things.find(eq("_id", 0)).first().getInteger("n");
        told.put("counts", List.of(acknowledged, there, unknown));
    }

    static void keepFile(MongoClient client) {
        GridFSBucket files = GridFSBuckets.create(client.getDatabase("java"));
        byte[] written = new byte[FILE_BYTES];
        new Random().nextBytes(written);
        var read = new ByteArrayOutputStream();
        files.downloadToStream(files.uploadFromStream("file", new ByteArrayInputStream(written)), read);
        told.put("file", Arrays.equals(written, read.toByteArray()));
    }

    /** How much of an answer that repeats itself goes over the wire. */
    static void compress(MongoClient client, MongoCollection<Document> things) {
        things.insertOne(new Document("_id", "text").append("text", "x".repeat(TEXT_BYTES)));
        Document before = traffic(client);
        things.find(eq("_id", "text")).first();
        Document after = traffic(client);
        long physical = grown(before, after, "physicalBytesOut");
        told.put("compressed", physical < grown(before, after, "bytesOut") / 2);
    }

    static Document traffic(MongoClient client) {
        Document status = client.getDatabase("admin").runCommand(new Document("serverStatus", 1));
        return status.get("network", Document.class);
    }

    static long grown(Document before, Document after, String name) {
        return after.get(name, Number.class).longValue() - before.get(name, Number.class).longValue();
    }

    static List<Integer> values(FindIterable<Document> found) {
        return found.map(each -> each.getInteger("v")).into(new ArrayList<>());
    }

    static List<Object> describe(ChangeStreamDocument<Document> event) {
        BsonValue id = event.getDocumentKey().get("_id");
        Object plain = id instanceof BsonString text ? text.getValue() : id.asNumber().intValue();
        return List.of(event.getOperationTypeString(), plain);
    }
}

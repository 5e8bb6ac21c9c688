// What fail_over.mjs does, with the Java driver.

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.MongoServerException;
import com.mongodb.ReadConcern;
import com.mongodb.ReadPreference;
import com.mongodb.TransactionOptions;
import com.mongodb.WriteConcern;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.Updates;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.bson.Document;

public class FailOver {
    static final int LANES = 4;
    static final int LIST_LENGTH = 32;
    static final int ACCOUNTS = 4;
    static final int MONEY = 100;
    static final int DUPLICATE_KEY = 11000;

    /** One client, and what it was told. */
    static class Lane extends Thread {
        final List<String> inserts = new ArrayList<>();
        final List<String> appends = new ArrayList<>();
        int moves;
        int reads;
        int unknown;
        String wrong;
        final MongoClient client;
        final int number;
        final long end;

        Lane(MongoClient client, int number, long end) {
            this.client = client;
            this.number = number;
            this.end = end;
        }

        MongoCollection<Document> collection(String name) {
            return client.getDatabase("java").getCollection(name);
        }

        @Override
        public void run() {
            for (int count = 0; System.nanoTime() < end && wrong == null; count++) {
                try {
                    step(count);
                } catch (MongoServerException error) {
                    wrong = error.getCode() == DUPLICATE_KEY ? error.toString() : null;
                    unknown++;
                } catch (MongoException error) {
                    // What became of it isn't known.
                    unknown++;
                }
            }
        }

        void step(int count) {
            String id = number + "-" + count;
            collection("documents").insertOne(new Document("_id", id));
            inserts.add(id);
            String list = number + "-" + count / LIST_LENGTH;
            var upsert = new UpdateOptions().upsert(true);
            collection("lists").updateOne(Filters.eq(list), Updates.push("numbers", count), upsert);
            appends.add(list + " " + count);
            move(count % ACCOUNTS, (count + 1) % ACCOUNTS);
            readOwnWrite(id, count);
        }

        void move(int from, int to) {
            var accounts = collection("accounts");
            var options = TransactionOptions.builder()
                .readConcern(ReadConcern.SNAPSHOT).writeConcern(WriteConcern.MAJORITY).build();
            try (ClientSession session = client.startSession()) {
                session.withTransaction(() -> {
                    accounts.updateOne(session, Filters.eq(from), Updates.inc("money", -1));
                    return accounts.updateOne(session, Filters.eq(to), Updates.inc("money", 1));
                }, options);
            }
            moves++;
        }

        void readOwnWrite(String id, int count) {
            try (ClientSession session = client.startSession()) {
                collection("documents").updateOne(session, Filters.eq(id), Updates.set("number", count));
                var reader = collection("documents").withReadPreference(ReadPreference.secondaryPreferred());
                Document found = reader.find(session, Filters.eq(id)).first();
                if (found == null || !Integer.valueOf(count).equals(found.getInteger("number"))) {
                    wrong = "its own write isn't read: " + found;
                }
                reads++;
            }
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        var settings = MongoClientSettings.builder()
            .applyConnectionString(new ConnectionString(arguments[0]))
            .writeConcern(WriteConcern.MAJORITY)
            .applyToSocketSettings(it -> it.connectTimeout(2, TimeUnit.SECONDS).readTimeout(5, TimeUnit.SECONDS))
            .applyToClusterSettings(it -> it.serverSelectionTimeout(120, TimeUnit.SECONDS))
            .build();
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[1]) * 1e9);
        try (MongoClient client = MongoClients.create(settings)) {
            for (int number = 0; number < ACCOUNTS; number++) {
                Document account = new Document("_id", number).append("money", MONEY);
                client.getDatabase("java").getCollection("accounts").insertOne(account);
            }
            List<Lane> lanes = new ArrayList<>();
            for (int number = 0; number < LANES; number++) {
                lanes.add(new Lane(client, number, end));
            }
            lanes.forEach(Thread::start);
            for (Lane lane : lanes) {
                lane.join();
            }
            System.exit(report(client.getDatabase("java"), lanes) ? 0 : 1);
        }
    }

    static boolean report(MongoDatabase database, List<Lane> lanes) {
        Set<String> there = new HashSet<>();
        database.getCollection("documents").find().forEach(it -> there.add(it.getString("_id")));
        Map<String, Integer> numbers = new HashMap<>();
        for (Document list : database.getCollection("lists").find()) {
            for (Integer number : list.getList("numbers", Integer.class)) {
                numbers.merge(list.getString("_id") + " " + number, 1, Integer::sum);
            }
        }
        int money = 0;
        for (Document account : database.getCollection("accounts").find()) {
            money += account.getInteger("money");
        }
        int lost = 0, inserts = 0, appends = 0, moves = 0, reads = 0, unknown = 0;
        long twice = numbers.values().stream().filter(count -> count > 1).count();
        String wrong = null;
        for (Lane lane : lanes) {
            lost += (int) lane.inserts.stream().filter(id -> !there.contains(id)).count();
            lost += (int) lane.appends.stream().filter(it -> !numbers.containsKey(it)).count();
            inserts += lane.inserts.size();
            appends += lane.appends.size();
            moves += lane.moves;
            reads += lane.reads;
            unknown += lane.unknown;
            wrong = lane.wrong == null ? wrong : lane.wrong;
        }
        System.out.printf(
            "Java's driver: %d inserts, %d appends, %d transactions, %d causal reads: %d lost, %d twice, "
                + "%d of %d money; %d not known%n",
            inserts, appends, moves, reads, lost, twice, money, ACCOUNTS * MONEY, unknown);
        if (wrong != null) {
            System.out.println(wrong);
        }
        return wrong == null && lost + twice == 0 && money == ACCOUNTS * MONEY && 0 < moves && 0 < reads;
    }
}

// Fields of OSON documents, by Oracle's driver: tasks come on the standard input, four lines each (way,
// times, paths, document as JSON); answers go to the standard output (nanoseconds, letters, bytes).

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import oracle.sql.json.OracleJsonFactory;
import oracle.sql.json.OracleJsonGenerator;
import oracle.sql.json.OracleJsonObject;
import oracle.sql.json.OracleJsonValue;

public class Oson {
    static final OracleJsonFactory FACTORY = new OracleJsonFactory();

    public static void main(String[] arguments) throws Exception {
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ready");
        String way;
        while ((way = input.readLine()) != null) {
            long times = Long.parseLong(input.readLine());
            String[] names = input.readLine().split(" ");
            String[][] paths = new String[names.length][];
            for (int at = 0; at < names.length; at++) {
                paths[at] = names[at].split("\\.");
            }
            byte[] bytes = encoded(input.readLine());
            // The first time is for the compiler.
            letters(way, bytes, paths, times);
            long start = System.nanoTime();
            long letters = letters(way, bytes, paths, times);
            System.out.println((System.nanoTime() - start) + " " + letters + " " + bytes.length);
        }
    }

    static byte[] encoded(String json) throws Exception {
        OracleJsonValue value = FACTORY.createJsonTextValue(new StringReader(json));
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        try (OracleJsonGenerator generator = FACTORY.createJsonBinaryGenerator(output)) {
            generator.write(value);
        }
        return output.toByteArray();
    }

    static OracleJsonObject opened(byte[] bytes) {
        return FACTORY.createJsonBinaryValue(ByteBuffer.wrap(bytes)).asJsonObject();
    }

    static long letters(String way, byte[] bytes, String[][] paths, long times) {
        OracleJsonObject opened = opened(bytes);
        long letters = 0;
        int at = 0;
        for (long turn = 0; turn < times; turn++) {
            switch (way) {
                case "opened": letters += get(opened, paths[at]); break;
                case "bytes": letters += get(opened(bytes), paths[at]); break;
                default: letters += scan(opened); break;
            }
            at = at + 1 < paths.length ? at + 1 : 0;
        }
        return letters;
    }

    static long get(OracleJsonObject object, String[] path) {
        OracleJsonValue value = object;
        for (String name : path) {
            value = value.asJsonObject().get(name);
            if (value == null) {
                return 0;
            }
        }
        return value.asJsonString().getString().length();
    }

    static long scan(OracleJsonObject object) {
        long letters = 0;
        for (OracleJsonValue value : object.values()) {
            letters += value.getOracleJsonType() == OracleJsonValue.OracleJsonType.OBJECT
                ? scan(value.asJsonObject())
                : value.asJsonString().getString().length();
        }
        return letters;
    }
}

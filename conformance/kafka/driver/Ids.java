package fencepost.kafka;

import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.Random;

/** What Kafka draws at random, the ids of copies above all, comes from a seed: a run is the same each time. */
public final class Ids extends SecureRandomSpi {
    private static final long serialVersionUID = 1L;
    private static final Random DRAWN = new Random(0);

    /** From now on. */
    static void repeat() {
        DRAWN.setSeed(0);
    }

    /** Before anything is drawn. */
    static void install() {
        Security.insertProviderAt(new Given(), 1);
    }

    private static final class Given extends Provider {
        private static final long serialVersionUID = 1L;

        Given() {
            super("Given", "1", "a seed");
            put("SecureRandom.Given", Ids.class.getName());
        }
    }

    @Override
    protected void engineSetSeed(byte[] seed) {}

    @Override
    protected void engineNextBytes(byte[] bytes) {
        DRAWN.nextBytes(bytes);
    }

    @Override
    protected byte[] engineGenerateSeed(int count) {
        byte[] seed = new byte[count];
        DRAWN.nextBytes(seed);
        return seed;
    }
}

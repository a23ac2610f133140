package fencepost.kafka;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;

/** Time, and what happens by it: nothing moves but by the driver's word. */
public final class Manual {
    /** Whoever wants to know that Kafka asks what time it is, or has something done later: between two writes, say. */
    static Runnable effect = () -> {};

    private Manual() {}

    /** A clock that is set. */
    public static final class Clock implements Time {
        private long now = 1_700_000_000_000L;

        public void move(long ms) {
            now += ms;
        }

        @Override
        public long milliseconds() {
            effect.run();
            return now;
        }

        @Override
        public long nanoseconds() {
            effect.run();
            return now * 1_000_000L;
        }

        @Override
        public void sleep(long ms) {
            now += ms;
        }

        /** Kafka 4.3 has this in its interface; who drives a clock waits for nothing. */
        public void waitObject(Object on, Supplier<Boolean> holds, long deadline) {
            throw new UnsupportedOperationException("nobody waits");
        }
    }

    /** A task that was scheduled; a period below 0 stands for once. */
    static final class Task extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        final String name;
        final Runnable work;
        final long delay;
        final long period;

        Task(String name, Runnable work, long delay, long period) {
            this.name = name;
            this.work = work;
            this.delay = delay;
            this.period = period;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(delay, TimeUnit.MILLISECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(delay, other.getDelay(TimeUnit.MILLISECONDS));
        }
    }

    /** Keeps tasks until they are run by their names; what is for at once is run after the event that asked for it. */
    public static final class Tasks implements Scheduler {
        private final List<Task> tasks = new ArrayList<>();

        @Override
        public void startup() {}

        @Override
        public void shutdown() {
            tasks.clear();
        }

        @Override
        public synchronized ScheduledFuture<?> schedule(String name, Runnable work, long delay, long period) {
            effect.run();
            Task task = new Task(name, work, delay, period);
            tasks.add(task);
            return task;
        }

        @Override
        public void resizeThreadPool(int size) {}

        /** Run what is to be done at once. */
        public void settle() {
            for (Task task : take(each -> each.period < 0 && each.delay <= 0)) {
                task.work.run();
            }
        }

        /** Run every task of these names; a periodic one stays. */
        public void run(String prefix) {
            for (Task task : take(each -> each.name.startsWith(prefix))) {
                if (task.period >= 0) {
                    schedule(task.name, task.work, task.delay, task.period);
                }
                task.work.run();
            }
        }

        boolean has(String prefix) {
            return tasks.stream().anyMatch(each -> each.name.startsWith(prefix));
        }

        private synchronized List<Task> take(java.util.function.Predicate<Task> which) {
            List<Task> found = new ArrayList<>();
            for (Task task : tasks) {
                if (which.test(task) && !task.isDone()) {
                    found.add(task);
                }
            }
            tasks.removeAll(found);
            tasks.removeIf(CompletableFuture::isDone);
            return found;
        }
    }

    /** For purgatories: nothing in one expires. */
    static final class Never implements Timer {
        @Override
        public void add(TimerTask task) {}

        @Override
        public boolean advanceClock(long ms) {
            return false;
        }

        @Override
        public int size() {
            return 0;
        }

        @Override
        public void close() {}
    }
}

package fencepost.kafka;

/**
 * A thread of a broker's remote log manager. It stops before whatever it does outside of its process: before it writes to
 * the remote log metadata, and before it asks the store for something; the driver says when it goes on.
 */
public final class Worker {
    private static final ThreadLocal<Worker> OWN = new ThreadLocal<>();

    /** The process has ended: nothing of the task is done any more, and nobody catches this. */
    private static final class Gone extends Error {
        private static final long serialVersionUID = 1L;

        Gone() {
            super(null, null, false, false);
        }
    }

    private boolean busy;
    private boolean parked;
    private boolean go;
    private boolean gone;
    private Object next;
    private Throwable failed;
    private Thread thread;

    /** Have a task run, as far as it comes without the driver. */
    synchronized void begin(Runnable task) {
        if (busy) {
            throw new IllegalStateException("there is a task under way");
        }
        busy = true;
        gone = false;
        failed = null;
        thread =
                new Thread(
                        () -> {
                            OWN.set(this);
                            try {
                                task.run();
                            } catch (Gone ended) {
                                // As it should.
                            } catch (Throwable thrown) {
                                failed = thrown;
                            } finally {
                                over();
                            }
                        },
                        "remote-log-task");
        thread.setDaemon(true);
        thread.start();
        untilParked();
    }

    /** Let it go on, as far as it comes. */
    synchronized void resume() {
        if (!busy) {
            throw new IllegalStateException("there is no task under way");
        }
        go = true;
        parked = false;
        notifyAll();
        untilParked();
    }

    /** As by the future of a pool that is cancelled. */
    public synchronized void interrupt() {
        if (busy) {
            thread.interrupt();
        }
    }

    /** Its process ends. */
    synchronized void end() {
        gone = true;
        if (busy) {
            resume();
        }
    }

    synchronized boolean isBusy() {
        return busy;
    }

    /** What the task is about to do: a record of the metadata that it writes, or a name; null where none is under way. */
    synchronized Object next() {
        return next;
    }

    /** Of whoever does something outside of the process: stop before that, where a task does it. */
    public static void before(Object what) {
        Worker own = OWN.get();
        if (own != null) {
            own.park(what);
        }
    }

    private synchronized void park(Object what) {
        next = what;
        parked = true;
        notifyAll();
        boolean interrupted = false;
        while (!go) {
            try {
                wait();
            } catch (InterruptedException cancelled) {
                interrupted = true;
            }
        }
        go = false;
        next = null;
        if (gone) {
            throw new Gone();
        }
        if (interrupted) {
            thread.interrupt();
        }
    }

    private synchronized void over() {
        busy = false;
        go = false;
        next = null;
        parked = true;
        notifyAll();
    }

    private void untilParked() {
        while (!parked) {
            pause();
        }
        parked = busy;
        if (failed != null) {
            throw new IllegalStateException(failed);
        }
    }

    private void pause() {
        try {
            wait();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}

package com.baidu.paddle.inference;

/** Runs a model. One thread at a time uses it; a clone, which shares the weights, serves another. */
public class Predictor implements AutoCloseable {
    private static final class Held implements Runnable {
        long pointer;

        @Override
        public synchronized void run() {
            if (pointer != 0) Native.predictorDestroy(pointer);
            pointer = 0;
        }
    }

    private final Held held = new Held();
    private final Runnable cleaner;

    private Predictor(long pointer) {
        held.pointer = pointer;
        cleaner = Native.CLEANER.register(this, held)::clean;
    }

    /** Loads the model, and takes the config. */
    public Predictor(Config config) {
        this(config.makePredictor());
    }

    public static Predictor createPaddlePredictor(Config config) {
        return new Predictor(config);
    }

    /** The library's version. */
    public static String version() {
        return Native.version();
    }

    private long pointer() {
        if (held.pointer == 0) throw new IllegalStateException("Predictor: it is closed");
        return held.pointer;
    }

    /** A predictor of the same weights for another thread. */
    public Predictor copy() {
        return new Predictor(Native.predictorClone(pointer()));
    }

    public long getInputNum() {
        return Native.predictorNames(pointer(), true).length;
    }

    public long getOutputNum() {
        return Native.predictorNames(pointer(), false).length;
    }

    public String getInputNameById(long id) {
        return Native.predictorNames(pointer(), true)[Math.toIntExact(id)];
    }

    public String getOutputNameById(long id) {
        return Native.predictorNames(pointer(), false)[Math.toIntExact(id)];
    }

    public Tensor getInputHandle(String name) {
        return new Tensor(this, Native.predictorHandle(pointer(), true, name));
    }

    public Tensor getOutputHandle(String name) {
        return new Tensor(this, Native.predictorHandle(pointer(), false, name));
    }

    /** Runs the model; a RuntimeException says what was wrong, and the predictor can run again. */
    public boolean run() {
        Native.predictorRun(pointer());
        return true;
    }

    public void ClearIntermediateTensor() {
        Native.predictorClear(pointer());
    }

    public void TryShrinkMemory() {
        Native.predictorShrink(pointer());
    }

    @Override
    public void close() {
        cleaner.run();
    }
}

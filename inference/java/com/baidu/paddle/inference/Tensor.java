package com.baidu.paddle.inference;

/** The handle of an input or output. */
public class Tensor {
    private static final class Held implements Runnable {
        final long pointer;

        Held(long pointer) {
            this.pointer = pointer;
        }

        @Override
        public void run() {
            Native.tensorDestroy(pointer);
        }
    }

    private final Predictor owner; // lives as long as its handles
    private final Held held;

    Tensor(Predictor owner, long pointer) {
        this.owner = owner;
        held = new Held(pointer);
        Native.CLEANER.register(this, held);
    }

    public String GetName() {
        return Native.tensorName(held.pointer);
    }

    /** The shape that was set or that the data have; empty before there is either. */
    public int[] GetShape() {
        return Native.tensorShape(held.pointer);
    }

    /** Number of elements. */
    public int GetSize() {
        int size = 1;
        for (int dim : GetShape()) size = Math.multiplyExact(size, dim);
        return size;
    }

    /** Sets an input's shape: the first n of the dims. */
    public void Reshape(int n, int[] shape) {
        Native.tensorReshape(held.pointer, java.util.Arrays.copyOf(shape, n));
    }

    /** Copies an array of float, int, long, byte or boolean to an input of the shape that was set. */
    public void CopyFromCpu(Object array) {
        Native.tensorCopyIn(held.pointer, array);
    }

    /** Copies an output to an array of its type that has room for it. */
    public void CopyToCpu(Object array) {
        Native.tensorCopyOut(held.pointer, array);
    }
}

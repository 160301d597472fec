import com.baidu.paddle.inference.Config;
import com.baidu.paddle.inference.Predictor;
import com.baidu.paddle.inference.Tensor;

/** Example and test: runs a model that gives the row sums of [N, 3], in threads, and looks at errors. */
public class Sums {
    static float[] run(Predictor p, int rows) {
        Tensor in = p.getInputHandle(p.getInputNameById(0));
        Tensor out = p.getOutputHandle(p.getOutputNameById(0));
        float[] data = new float[rows * 3];
        for (int i = 0; i < data.length; i++) data[i] = i;
        in.Reshape(2, new int[] {rows, 3});
        in.CopyFromCpu(data);
        p.run();
        float[] sums = new float[out.GetSize()];
        out.CopyToCpu(sums);
        return sums;
    }

    static void expect(boolean good, String what) {
        if (!good) throw new AssertionError(what);
    }

    interface Call {
        void run();
    }

    static void refuses(Class<?> type, Call call) {
        try {
            call.run();
        } catch (RuntimeException e) {
            expect(type.isInstance(e) && !e.getMessage().isEmpty(), "another error: " + e);
            return;
        }
        throw new AssertionError("nothing was thrown");
    }

    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.setCppModel(args[0] + ".pdmodel", args[0] + ".pdiparams");
        config.setCpuMathLibraryNumThreads(1);
        expect(config.summary().contains("model_file"), "summary");
        Predictor p = Predictor.createPaddlePredictor(config);
        refuses(IllegalStateException.class, () -> config.enableMKLDNN());
        for (int rows : new int[] {1, 4, 2}) {
            float[] sums = run(p, rows);
            for (int i = 0; i < rows; i++) expect(sums[i] == 9 * i + 3, "sum of row " + i);
        }
        Thread[] threads = new Thread[8];
        boolean[] good = new boolean[8];
        for (int i = 0; i < 8; i++) {
            int at = i;
            Predictor clone = p.copy();
            threads[i] = new Thread(() -> {
                boolean right = true;
                for (int k = 0; k < 100; k++) right &= run(clone, 2)[1] == 12;
                good[at] = right;
                clone.close();
            });
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
        for (boolean right : good) expect(right, "a thread");
        Tensor in = p.getInputHandle(p.getInputNameById(0));
        in.Reshape(2, new int[] {2, 4});
        refuses(IllegalArgumentException.class, () -> in.CopyFromCpu(new float[7]));
        refuses(IllegalArgumentException.class, () -> in.CopyFromCpu("text"));
        float[] ones = new float[8];
        java.util.Arrays.fill(ones, 1);
        in.CopyFromCpu(ones);
        p.run();
        float[] wider = new float[2];
        p.getOutputHandle(p.getOutputNameById(0)).CopyToCpu(wider);
        expect(wider[0] == 4 && wider[1] == 4, "rows of another length");
        in.Reshape(1, new int[] {8});
        in.CopyFromCpu(ones);
        refuses(RuntimeException.class, p::run);
        expect(run(p, 2)[0] == 3, "runs again");
        refuses(RuntimeException.class, () -> p.getInputHandle("nothing"));
        Config none = new Config();
        none.disableGlogInfo();
        none.setCppModel("nowhere.pdmodel", "nowhere.pdiparams");
        refuses(RuntimeException.class, () -> Predictor.createPaddlePredictor(none));
        p.TryShrinkMemory();
        p.ClearIntermediateTensor();
        p.close();
        refuses(IllegalStateException.class, p::run);
        System.out.println("java: " + Predictor.version().trim() + ": all right");
    }
}

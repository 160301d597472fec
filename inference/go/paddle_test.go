package paddle

import (
	"math"
	"os"
	"sync"
	"testing"
)

// PROA_TEST_MODEL is the prefix of a model that gives the row sums of a float32 [N, 3].
func load(t *testing.T) *Predictor {
	prefix := os.Getenv("PROA_TEST_MODEL")
	if prefix == "" {
		t.Skip("PROA_TEST_MODEL is not set")
	}
	config := NewConfig()
	config.SetModel(prefix+".pdmodel", prefix+".pdiparams")
	p, why := NewPredictorOrError(config)
	if p == nil {
		t.Fatal(why)
	}
	return p
}

func sums(t *testing.T, p *Predictor, rows int32) []float32 {
	in, out := p.GetInputHandle(p.GetInputNames()[0]), p.GetOutputHandle(p.GetOutputNames()[0])
	data := make([]float32, rows*3)
	for i := range data {
		data[i] = float32(i)
	}
	in.Reshape([]int32{rows, 3})
	in.CopyFromCpu(data)
	if !p.Run() {
		t.Fatal(p.Error())
	}
	got := make([]float32, numElements(out.Shape()))
	out.CopyToCpu(got)
	return got
}

func TestRuns(t *testing.T) {
	p := load(t)
	for _, rows := range []int32{1, 4, 2} {
		for i, sum := range sums(t, p, rows) {
			if want := float64(9*i + 3); math.Abs(float64(sum)-want) > 1e-5 {
				t.Errorf("row %d of %d: %v, expected %v", i, rows, sum, want)
			}
		}
	}
}

func TestClonesInGoroutines(t *testing.T) {
	p := load(t)
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		clone := p.Clone()
		all.Add(1)
		go func() {
			defer all.Done()
			for k := 0; k < 50; k++ {
				if got := sums(t, clone, 2); got[1] != 12 {
					t.Errorf("got %v", got)
				}
			}
		}()
	}
	all.Wait()
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	p := load(t)
	in := p.GetInputHandle(p.GetInputNames()[0])
	in.Reshape([]int32{2, 4})
	in.CopyFromCpu(make([]float32, 8))
	if !p.Run() {
		t.Error("rows of another length did not run: ", p.Error())
	}
	in.Reshape([]int32{8})
	in.CopyFromCpu(make([]float32, 8))
	if p.Run() || p.Error() == "" {
		t.Error("a wrong rank ran")
	}
	sums(t, p, 2)
	if p.GetInputHandle("nothing") != nil || p.Error() == "" {
		t.Error("an input that is not there was found")
	}
	config := NewConfig()
	config.DisableGlogInfo()
	config.SetModel("nowhere.pdmodel", "nowhere.pdiparams")
	if q, why := NewPredictorOrError(config); q != nil || why == "" {
		t.Error("a model that is not there was loaded")
	}
}

func TestLod(t *testing.T) {
	in := load(t).GetInputHandle("x")
	in.SetLod([][]uint{{0, 1, 3}})
	if lod := in.Lod(); len(lod) != 1 || len(lod[0]) != 3 || lod[0][2] != 3 {
		t.Errorf("got %v", lod)
	}
}

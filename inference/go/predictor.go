package paddle

// #include <pd_inference_api.h>
import "C"

import "runtime"

// Predictor runs a model. One goroutine at a time uses it; a clone serves another.
type Predictor struct {
	c   *C.PD_Predictor
	err string
}

func newPredictor(make func() *C.PD_Predictor) (*Predictor, string) {
	p := &Predictor{}
	message := onThread(func() bool {
		p.c = make()
		return p.c != nil
	})
	if p.c == nil {
		return nil, message
	}
	runtime.SetFinalizer(p, func(p *Predictor) { C.PD_PredictorDestroy(p.c) })
	return p, ""
}

// NewPredictor loads the config's model, and takes the config. nil if it cannot; the message is on stderr, unless
// the config says DisableGlogInfo.
func NewPredictor(config *Config) *Predictor {
	p, _ := NewPredictorOrError(config)
	return p
}

// NewPredictorOrError is NewPredictor with the message of what went wrong.
func NewPredictorOrError(config *Config) (*Predictor, string) {
	p, message := newPredictor(func() *C.PD_Predictor { return C.PD_PredictorCreate(config.c) })
	if p != nil {
		runtime.SetFinalizer(config, nil) // the predictor has taken the C config
	}
	runtime.KeepAlive(config)
	return p, message
}

// Clone makes a predictor of the same weights for another goroutine.
func (p *Predictor) Clone() *Predictor {
	clone, message := newPredictor(func() *C.PD_Predictor { return C.PD_PredictorClone(p.c) })
	p.err = message
	return clone
}

// Error is the message of the last call that failed.
func (p *Predictor) Error() string { return p.err }

// GetInputNum counts the inputs.
func (p *Predictor) GetInputNum() uint { return uint(C.PD_PredictorGetInputNum(p.c)) }

// GetOutputNum counts the outputs.
func (p *Predictor) GetOutputNum() uint { return uint(C.PD_PredictorGetOutputNum(p.c)) }

// GetInputNames lists the inputs.
func (p *Predictor) GetInputNames() []string { return takeTexts(C.PD_PredictorGetInputNames(p.c)) }

// GetOutputNames lists the outputs.
func (p *Predictor) GetOutputNames() []string { return takeTexts(C.PD_PredictorGetOutputNames(p.c)) }

func (p *Predictor) handle(name string, get func(*C.char) *C.PD_Tensor) *Tensor {
	t := &Tensor{owner: p}
	p.err = onThread(func() bool {
		withText(name, func(text *C.char) { t.c = get(text) })
		return t.c != nil
	})
	if t.c == nil {
		return nil
	}
	runtime.SetFinalizer(t, func(t *Tensor) { C.PD_TensorDestroy(t.c) })
	return t
}

// GetInputHandle finds an input; nil if there is none of that name.
func (p *Predictor) GetInputHandle(name string) *Tensor {
	return p.handle(name, func(text *C.char) *C.PD_Tensor { return C.PD_PredictorGetInputHandle(p.c, text) })
}

// GetOutputHandle finds an output; nil if there is none of that name.
func (p *Predictor) GetOutputHandle(name string) *Tensor {
	return p.handle(name, func(text *C.char) *C.PD_Tensor { return C.PD_PredictorGetOutputHandle(p.c, text) })
}

// Run runs the model on what the input handles hold. false: Error says why; the predictor can run again.
func (p *Predictor) Run() bool {
	p.err = onThread(func() bool { return toGo(C.PD_PredictorRun(p.c)) })
	return p.err == ""
}

// ClearIntermediateTensor releases the tensors of inputs and outputs.
func (p *Predictor) ClearIntermediateTensor() { C.PD_PredictorClearIntermediateTensor(p.c) }

// TryShrinkMemory frees what the next run makes again; returns the bytes.
func (p *Predictor) TryShrinkMemory() uint64 { return uint64(C.PD_PredictorTryShrinkMemory(p.c)) }

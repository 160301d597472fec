// Package paddle is Paddle's Go interface to inference over Proa's C library: the same types and methods.
//
// It needs libpaddle_inference_c, which pkg-config finds. Where Paddle would end the process, a constructor here
// returns nil and a method does nothing; Error says why.
package paddle

// #cgo pkg-config: paddle_inference_c
// #include <pd_inference_api.h>
// #include <stdlib.h>
// extern const char *proa_error_message(void);
import "C"

import (
	"runtime"
	"unsafe"
)

// DataType of a tensor.
type DataType C.PD_DataType

const (
	Unk     DataType = C.PD_DATA_UNK
	Float32 DataType = C.PD_DATA_FLOAT32
	Int32   DataType = C.PD_DATA_INT32
	Int64   DataType = C.PD_DATA_INT64
	Uint8   DataType = C.PD_DATA_UINT8
	Int8    DataType = C.PD_DATA_INT8
)

// Precision of an engine.
type Precision C.PD_PrecisionType

const (
	PrecisionFloat32 Precision = C.PD_PRECISION_FLOAT32
	PrecisionInt8    Precision = C.PD_PRECISION_INT8
	PrecisionHalf    Precision = C.PD_PRECISION_HALF
)

// Version of the library.
func Version() string { return C.GoString(C.PD_GetVersion()) }

// lastError is the message of this thread: callers hold the thread.
func lastError() string { return C.GoString(C.proa_error_message()) }

// onThread runs f on one thread and returns the message of the error that it left; "" if it says that it went well.
func onThread(f func() bool) string {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if f() {
		return ""
	}
	return lastError()
}

func toC(x bool) C.PD_Bool {
	if x {
		return 1
	}
	return 0
}

func toGo(x C.PD_Bool) bool { return x != 0 }

// withText calls f with a C copy of the text.
func withText(text string, f func(*C.char)) {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	f(c)
}

// withTexts calls f with C copies of the texts.
func withTexts(texts []string, f func(C.size_t, **C.char)) {
	list := make([]*C.char, len(texts)+1)
	for i, text := range texts {
		list[i] = C.CString(text)
		defer C.free(unsafe.Pointer(list[i]))
	}
	f(C.size_t(len(texts)), &list[0])
}

// takeTexts copies a list of the library's and frees it.
func takeTexts(list *C.PD_OneDimArrayCstr) []string {
	if list == nil {
		return nil
	}
	defer C.PD_OneDimArrayCstrDestroy(list)
	out := make([]string, int(list.size))
	if len(out) > 0 {
		for i, text := range unsafe.Slice(list.data, len(out)) {
			out[i] = C.GoString(text)
		}
	}
	return out
}

func numElements(shape []int32) int32 {
	n := int32(1)
	for _, dim := range shape {
		n *= dim
	}
	return n
}

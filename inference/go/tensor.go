package paddle

// #include <pd_inference_api.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Tensor is the handle of an input or output.
type Tensor struct {
	c     *C.PD_Tensor
	owner *Predictor // lives as long as its handles
}

// Name is the variable's.
func (t *Tensor) Name() string { return C.GoString(C.PD_TensorGetName(t.c)) }

// Type is the element's; Unk before there are data.
func (t *Tensor) Type() DataType { return DataType(C.PD_TensorGetDataType(t.c)) }

// Shape is the one that was set or that the data have; empty before there is either.
func (t *Tensor) Shape() []int32 {
	list := C.PD_TensorGetShape(t.c)
	if list == nil {
		return nil
	}
	defer C.PD_OneDimArrayInt32Destroy(list)
	shape := make([]int32, int(list.size))
	if len(shape) > 0 {
		for i, dim := range unsafe.Slice(list.data, len(shape)) {
			shape[i] = int32(dim)
		}
	}
	return shape
}

// Reshape sets an input's shape.
func (t *Tensor) Reshape(shape []int32) {
	dims := append([]int32{}, shape...)
	dims = append(dims, 0)
	C.PD_TensorReshape(t.c, C.size_t(len(shape)), (*C.int32_t)(unsafe.Pointer(&dims[0])))
}

// address of a slice's elements, and their kind; panics for what is no slice of numbers, as Paddle does, and for a
// slice that is shorter than the tensor.
func (t *Tensor) address(who string, value interface{}) (unsafe.Pointer, reflect.Kind) {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Slice {
		panic(fmt.Sprintf("%s: '%s' takes a slice of numbers, got %T", who, t.Name(), value))
	}
	if n := int(numElements(t.Shape())); v.Len() < n {
		panic(fmt.Sprintf("%s: '%s' has %d elements, the slice %d", who, t.Name(), n, v.Len()))
	}
	if v.Len() == 0 {
		return nil, v.Type().Elem().Kind()
	}
	return unsafe.Pointer(v.Index(0).UnsafeAddr()), v.Type().Elem().Kind()
}

// CopyFromCpu copies a slice of float32, int32, int64, uint8 or int8 to an input of the shape that was set.
func (t *Tensor) CopyFromCpu(value interface{}) {
	at, kind := t.address("CopyFromCpu", value)
	switch kind {
	case reflect.Float32:
		C.PD_TensorCopyFromCpuFloat(t.c, (*C.float)(at))
	case reflect.Int32:
		C.PD_TensorCopyFromCpuInt32(t.c, (*C.int32_t)(at))
	case reflect.Int64:
		C.PD_TensorCopyFromCpuInt64(t.c, (*C.int64_t)(at))
	case reflect.Uint8:
		C.PD_TensorCopyFromCpuUint8(t.c, (*C.uint8_t)(at))
	case reflect.Int8:
		C.PD_TensorCopyFromCpuInt8(t.c, (*C.int8_t)(at))
	default:
		panic(fmt.Sprintf("CopyFromCpu: '%s' takes no elements of %s", t.Name(), kind))
	}
}

// CopyToCpu copies an output's elements to a slice of its type that has room for them.
func (t *Tensor) CopyToCpu(value interface{}) {
	at, kind := t.address("CopyToCpu", value)
	switch kind {
	case reflect.Float32:
		C.PD_TensorCopyToCpuFloat(t.c, (*C.float)(at))
	case reflect.Int32:
		C.PD_TensorCopyToCpuInt32(t.c, (*C.int32_t)(at))
	case reflect.Int64:
		C.PD_TensorCopyToCpuInt64(t.c, (*C.int64_t)(at))
	case reflect.Uint8:
		C.PD_TensorCopyToCpuUint8(t.c, (*C.uint8_t)(at))
	case reflect.Int8:
		C.PD_TensorCopyToCpuInt8(t.c, (*C.int8_t)(at))
	default:
		panic(fmt.Sprintf("CopyToCpu: '%s' gives no elements of %s", t.Name(), kind))
	}
}

// Lod is the offsets of the sequences that the rows form, a list a level.
func (t *Tensor) Lod() [][]uint {
	levels := C.PD_TensorGetLod(t.c)
	if levels == nil {
		return nil
	}
	defer C.PD_TwoDimArraySizeDestroy(levels)
	out := make([][]uint, int(levels.size))
	if len(out) == 0 {
		return out
	}
	for i, level := range unsafe.Slice(levels.data, len(out)) {
		out[i] = make([]uint, int(level.size))
		if len(out[i]) == 0 {
			continue
		}
		for k, offset := range unsafe.Slice(level.data, len(out[i])) {
			out[i][k] = uint(offset)
		}
	}
	return out
}

// SetLod sets the offsets, which are copied.
func (t *Tensor) SetLod(levels [][]uint) {
	n := len(levels)
	lists := (*C.PD_OneDimArraySize)(C.calloc(C.size_t(n+1), C.sizeof_PD_OneDimArraySize))
	rows := (**C.PD_OneDimArraySize)(C.calloc(C.size_t(n+1), C.size_t(unsafe.Sizeof(uintptr(0)))))
	whole := (*C.PD_TwoDimArraySize)(C.calloc(1, C.sizeof_PD_TwoDimArraySize))
	defer C.free(unsafe.Pointer(lists))
	defer C.free(unsafe.Pointer(rows))
	defer C.free(unsafe.Pointer(whole))
	for i, level := range levels {
		list := &unsafe.Slice(lists, n)[i]
		list.size = C.size_t(len(level))
		list.data = (*C.size_t)(C.calloc(C.size_t(len(level)+1), C.sizeof_size_t))
		defer C.free(unsafe.Pointer(list.data))
		for k, offset := range level {
			unsafe.Slice(list.data, len(level))[k] = C.size_t(offset)
		}
		unsafe.Slice(rows, n)[i] = list
	}
	whole.size, whole.data = C.size_t(n), rows
	C.PD_TensorSetLod(t.c, whole)
}

package cmd

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestEncode holds what is written by hand to encoding/json, byte by byte, for
// documents whose every field has any value.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d document
		anything(t, reflect.ValueOf(&d).Elem())
		want, got := encodeByReflection(&d), d.encode()
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("encode() differs from encoding/json (-want +got):\n%s", diff)
		}
	})
}

// TestEncodeZero is the document of nothing: every list is null.
func TestEncodeZero(t *testing.T) {
	var d document
	if diff := cmp.Diff(string(encodeByReflection(&d)), string(d.encode())); diff != "" {
		t.Errorf("encode() differs from encoding/json (-want +got):\n%s", diff)
	}
}

func encodeByReflection(d *document) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// anything gives every field below v a value. A kind that it does not know fails,
// so that a new one in a document is not passed over.
func anything(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			anything(t, field)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			anything(t, v.Elem())
		}
	case reflect.Slice:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 3).Draw(t, "length"), 3))
			for i := range v.Len() {
				anything(t, v.Index(i))
			}
		}
	case reflect.String:
		v.SetString(rapid.OneOf(
			rapid.String(),
			rapid.SampledFrom([]string{"", "plain", `a"b`, `a\b`, "a\nb", "<&>", "\u2028", "\xff", "\x00", "\x7f", "~ "}),
		).Draw(t, "string"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.OneOf(rapid.Int64(), rapid.Just[int64](0)).Draw(t, "integer"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "boolean"))
	case reflect.Float64:
		v.SetFloat(rapid.OneOf(
			rapid.Float64(),
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 20, 0.3, 1e-7, 1e21, 1 << 53, 1<<53 - 1, -3}),
		).Draw(t, "number"))
	default:
		t.Fatalf("a document has a %s; teach jsonText and this test about it", v.Kind())
	}
}

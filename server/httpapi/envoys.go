package httpapi

import (
	"io"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
)

// maxCallBytes bounds the body of a call at /json. A call over gRPC has the same bound, and JSON is longer.
const maxCallBytes = 256 << 10

// Envoys is Envoy's rate limit service.
type Envoys interface {
	// AnswerUser decides a call. Its error is a status of gRPC. A nil user may ask everything.
	AnswerUser(u *acl.User, addr string, in *rlspb.Request) (*rlspb.Response, error)
	// Healthy reports whether calls can be decided.
	Healthy() bool
	// ConfigText returns the limits in force, a line each.
	ConfigText() string
}

// ServeEnvoys adds the paths that envoyproxy/ratelimit serves. Call it before Serve.
//
//	/json         a call in JSON, for the clients of /check
//	/healthcheck  200 while calls can be decided
//	/rlconfig     the limits in force, for those who may see the page
func (h *Server) ServeEnvoys(e Envoys) {
	h.mux.HandleFunc("/healthcheck", func(w http.ResponseWriter, _ *http.Request) {
		if !e.Healthy() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "OK")
	})
	h.mux.HandleFunc("/rlconfig", h.page.forPeople(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, e.ConfigText())
	}))
	if h.check == nil {
		h.mux.HandleFunc("/json", checkIsOff)
		return
	}
	h.mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) { h.check.answerJSON(w, r, e) })
}

// answerJSON answers a call in JSON.
func (h *httpCheck) answerJSON(w http.ResponseWriter, r *http.Request, e Envoys) {
	w.Header().Set("Cache-Control", "no-store")
	u, ok := h.asker(w, r)
	if !ok {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallBytes))
	in := new(rlspb.Request)
	if err == nil {
		err = readCall(body, in)
	}
	if err != nil {
		err = resp.Error("ERR the body must be a call of Envoy's rate limit service in JSON: " + err.Error())
		writePlain(w, http.StatusBadRequest, "Bad Request: "+h.CheckRejected(err))
		return
	}
	h.running.RLock()
	defer h.running.RUnlock()
	out, err := new(rlspb.Response), status.Error(codes.Unavailable, "TRYAGAIN the server is stopping")
	if !h.closed {
		out, err = e.AnswerUser(u, r.RemoteAddr, in)
	}
	text, _ := protojson.Marshal(out) // never fails for the messages of a server
	switch s := status.Convert(err); {
	case s.Code() == codes.InvalidArgument:
		writePlain(w, http.StatusBadRequest, "Bad Request: "+s.Message())
	case s.Code() == codes.PermissionDenied:
		writePlain(w, http.StatusForbidden, s.Message())
	case err != nil:
		writePlain(w, http.StatusServiceUnavailable, s.Message())
	default:
		w.Header().Set("Content-Type", "application/json")
		if out.OverallCode == rlspb.Code_OVER_LIMIT {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = w.Write(text)
	}
}

// textRequest is rlspb.Request with text in place of bytes, which JSON would write in base64.
var textRequest = makeTextRequest()

func makeTextRequest() protoreflect.MessageType {
	file := protodesc.ToFileDescriptorProto(rlspb.File_rls_proto)
	for _, m := range file.MessageType {
		for _, f := range m.Field {
			if f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_BYTES {
				f.Type = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()
			}
		}
	}
	made, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		panic("the messages of Envoy with text: " + err.Error())
	}
	return dynamicpb.NewMessageType(made.Messages().ByName("Request"))
}

// readCall reads a call from JSON.
func readCall(text []byte, in *rlspb.Request) error {
	m := textRequest.New().Interface()
	if err := protojson.Unmarshal(text, m); err != nil {
		return err
	}
	wire, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return proto.Unmarshal(wire, in)
}

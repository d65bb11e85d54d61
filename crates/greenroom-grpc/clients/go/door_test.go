// Package door calls a real node's gRPC door by grpc-go, knowing nothing but what its reflection says, as grpcurl does.
package door

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A door that is open, and what it says of its service.
type door struct {
	*grpc.ClientConn
	http    string
	program *exec.Cmd
	files   *protoregistry.Files
	service protoreflect.ServiceDescriptor
}

// open starts the real program, and reads what its door says of itself.
func open(t *testing.T, flags ...string) *door {
	program := os.Getenv("GREENROOM_BIN")
	if program == "" {
		if os.Getenv("GREENROOM_LANGUAGES") == "all" {
			t.Fatal("GREENROOM_BIN is not set")
		}
		t.Skip("no program: set GREENROOM_BIN")
	}
	d := new(door)
	arguments := append([]string{"node", "--hosts", "off", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"}, flags...)
	d.program = exec.Command(program, arguments...)
	d.program.Stderr = os.Stderr
	d.program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := d.program.StdoutPipe()
	must(t, err)
	must(t, d.program.Start())
	t.Cleanup(func() { d.program.Process.Signal(os.Interrupt); d.program.Wait() })
	var address string
	for lines := bufio.NewScanner(output); (d.http == "" || address == "") && lines.Scan(); {
		if _, at, is := strings.Cut(lines.Text(), "HTTP door is at "); is {
			d.http = at
		}
		if _, at, is := strings.Cut(lines.Text(), "gRPC door is at "); is {
			address = at
		}
	}
	if d.http == "" || address == "" {
		t.Fatal("the program did not say where its doors are")
	}
	d.ClientConn, err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { d.Close() })
	health := grpc_health_v1.NewHealthClient(d)
	said, err := health.Check(within(t), &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	for err == nil && said.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		said, err = health.Check(within(t), &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	}
	must(t, err)
	return d
}

// reflect learns the service from the door.
func (d *door) reflect(t *testing.T) []string {
	conversation, err := grpc_reflection_v1.NewServerReflectionClient(d).ServerReflectionInfo(within(t))
	must(t, err)
	ask := func(request *grpc_reflection_v1.ServerReflectionRequest) *grpc_reflection_v1.ServerReflectionResponse {
		must(t, conversation.Send(request))
		answer, err := conversation.Recv()
		must(t, err)
		return answer
	}
	listed := ask(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	})
	var names []string
	for _, service := range listed.GetListServicesResponse().GetService() {
		names = append(names, service.Name)
	}
	var set descriptorpb.FileDescriptorSet
	for _, request := range []*grpc_reflection_v1.ServerReflectionRequest{
		{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileByFilename{FileByFilename: "google/protobuf/struct.proto"}},
		{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "greenroom.v1.Actors"}},
	} {
		for _, encoded := range ask(request).GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := new(descriptorpb.FileDescriptorProto)
			must(t, proto.Unmarshal(encoded, file))
			set.File = append(set.File, file)
		}
	}
	must(t, conversation.CloseSend())
	d.files, err = protodesc.NewFiles(&set)
	must(t, err)
	found, err := d.files.FindDescriptorByName("greenroom.v1.Actors")
	must(t, err)
	d.service = found.(protoreflect.ServiceDescriptor)
	return names
}

// message is a message of the service, from JSON.
func (d *door) message(t *testing.T, name, text string) *dynamicpb.Message {
	found, err := d.files.FindDescriptorByName(protoreflect.FullName("greenroom.v1." + name))
	must(t, err)
	message := dynamicpb.NewMessage(found.(protoreflect.MessageDescriptor))
	must(t, protojson.Unmarshal([]byte(text), message))
	return message
}

// call makes a call with a request in JSON; the reply in JSON.
func (d *door) call(t *testing.T, ctx context.Context, method, request string, options ...grpc.CallOption) (string, error) {
	described := d.service.Methods().ByName(protoreflect.Name(method))
	reply := dynamicpb.NewMessage(described.Output())
	err := d.Invoke(ctx, "/greenroom.v1.Actors/"+method, d.message(t, string(described.Input().Name()), request), reply, options...)
	return text(t, reply), err
}

// stream opens a stream with a request in JSON; what gives its items in JSON.
func (d *door) stream(t *testing.T, ctx context.Context, request string) func() (string, error) {
	stream, err := d.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/greenroom.v1.Actors/Stream")
	must(t, err)
	must(t, stream.SendMsg(d.message(t, "StreamRequest", request)))
	must(t, stream.CloseSend())
	return func() (string, error) {
		item := dynamicpb.NewMessage(d.service.Methods().ByName("Stream").Output())
		err := stream.RecvMsg(item)
		return text(t, item), err
	}
}

// problem is the detail of a failure, as JSON.
func (d *door) problem(t *testing.T, err error) string {
	for _, detail := range status.Convert(err).Proto().GetDetails() {
		if strings.HasSuffix(detail.TypeUrl, "/greenroom.v1.Problem") {
			problem := d.message(t, "Problem", "{}")
			must(t, proto.Unmarshal(detail.Value, problem))
			return text(t, problem)
		}
	}
	t.Fatalf("%v has no problem among its details", err)
	return ""
}

func TestAnActorIsCalledThroughReflectionAlone(t *testing.T) {
	d := open(t)
	names := d.reflect(t)
	for _, name := range []string{"greenroom.v1.Actors", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"} {
		if !slices.Contains(names, name) {
			t.Errorf("%v lacks %s", names, name)
		}
	}
	for form, wanted := range map[string]string{
		`"json": "{\"user\": \"ada\", \"text\": \"hi\"}"`: `{"json":"1"}`,
		`"fields": {"user": "ada", "text": "hi"}`:         `{"fields":1}`,
		`"msgpack": "gqR1c2VyoWGkdGV4dKJoaQ=="`:           `{"msgpack":"AQ=="}`,
	} {
		reply, err := d.call(t, within(t), "Call", `{"kind": "chat_room", "key": "`+key(form)+`", "method": "post", `+form+`}`)
		must(t, err)
		if reply != wanted {
			t.Errorf("%s: %s", form, reply)
		}
	}
	said, err := d.call(t, within(t), "Describe", `{"kind": "chat_room"}`)
	must(t, err)
	if !strings.Contains(said, `"post"`) {
		t.Error(said)
	}
}

func TestFailuresHaveCodesAndDetails(t *testing.T) {
	d := open(t)
	d.reflect(t)
	for _, failing := range []struct {
		request string
		code    codes.Code
		problem string
	}{
		{`"kind": "chat_rom", "key": "a", "method": "post"`, codes.NotFound, `"name":"unknown-kind"`},
		{`"kind": "chat_room", "key": "a", "method": "pots"`, codes.NotFound, `"name":"unknown-method"`},
		{`"kind": "chat_room", "key": "a", "method": "post", "fields": {"user": 7}`, codes.InvalidArgument, `"field":"user"`},
		{`"kind": "chat_room", "key": "a", "method": "post", "fields": {"user": "ada", "text": ""}`, codes.FailedPrecondition, `"errorJson":`},
	} {
		var trailer metadata.MD
		_, err := d.call(t, within(t), "Call", "{"+failing.request+"}", grpc.Trailer(&trailer))
		if status.Code(err) != failing.code {
			t.Errorf("%s: %v", failing.request, err)
			continue
		}
		problem := d.problem(t, err)
		if !strings.Contains(problem, failing.problem) {
			t.Errorf("%s: %s", failing.request, problem)
		}
		ran := fmt.Sprint(failing.code == codes.FailedPrecondition)
		if said := trailer.Get("may-have-run"); !slices.Equal(said, []string{ran}) {
			t.Errorf("%s: may-have-run %v, not %s", failing.request, said, ran)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	if _, err := d.call(t, ctx, "Call", `{"kind": "chat_room", "key": "a", "method": "read"}`); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a deadline that has passed: %v", err)
	}
}

func TestATopicIsWatchedUntilTheClientLeaves(t *testing.T) {
	d := open(t)
	d.reflect(t)
	ctx, cancel := context.WithCancel(within(t))
	next := d.stream(t, ctx, `{"topic": {"topic": "prices/eu"}}`)
	// Until the door has subscribed, nobody is told.
	published := make(chan struct{})
	go func() {
		defer close(published)
		for ctx.Err() == nil {
			answer, err := http.Post(d.http+"/topics/prices%2Feu", "application/json", bytes.NewReader([]byte("7.5")))
			if err == nil {
				answer.Body.Close()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	item, err := next()
	must(t, err)
	if !strings.Contains(item, `"json":"7.5"`) {
		t.Error(item)
	}
	cancel()
	<-published
	for err == nil {
		_, err = next()
	}
	if status.Code(err) != codes.Canceled {
		t.Errorf("left: %v", err)
	}
}

func TestANodeThatStopsSaysSo(t *testing.T) {
	d := open(t)
	d.reflect(t)
	health, err := grpc_health_v1.NewHealthClient(d).Watch(within(t), &grpc_health_v1.HealthCheckRequest{})
	must(t, err)
	said, err := health.Recv()
	must(t, err)
	if said.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Fatal(said)
	}
	next := d.stream(t, within(t), `{"topic": {"topic": "prices/eu"}}`)
	must(t, d.program.Process.Signal(os.Interrupt))
	said, err = health.Recv()
	must(t, err)
	if said.Status != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Error(said)
	}
	if _, err := next(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	must(t, d.program.Wait())
}

// key is an actor's key that is its own for each text.
func key(text string) string { return fmt.Sprintf("%x", text)[:16] }

// text is a message as JSON without spaces.
func text(t *testing.T, message proto.Message) string {
	encoded, err := protojson.Marshal(message)
	must(t, err)
	return strings.ReplaceAll(string(encoded), `": `, `":`)
}

// within is a time that is long enough for everything.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package forward

import (
	"io"
	"net"
	"strings"
	"testing"
)

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	err := listenAndEnter("0.0.0.0:0", "", "")
	if err == nil || !strings.Contains(err.Error(), "not a loopback address") {
		t.Errorf("error = %v", err)
	}
}

// A client that is done sending still gets the answer: kubectl exec needs that.
func TestAHalfCloseIsPassedOn(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		connection, err := server.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		request, _ := io.ReadAll(connection)
		connection.Write([]byte("got " + string(request)))
	}()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	go func() {
		if client, err := front.Accept(); err == nil {
			join(client, server.Addr().String())
		}
	}()
	client, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.Write([]byte("hello"))
	client.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(client)
	if err != nil || string(answer) != "got hello" {
		t.Errorf("answer = %q, %v", answer, err)
	}
}

// Package forward makes one TCP address of a network namespace reachable from
// the host's loopback. It must never listen on anything but loopback: the
// cluster is invisible from other machines.
package forward

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
)

// inherited is the descriptor under which the listening socket arrives in the
// copy of this program that runs inside the namespace.
const inherited = 3

// Main listens on -listen in the namespace it was started in and then becomes
// two processes: this one waits, the other runs inside -netns, accepts on the
// inherited socket and dials -to. A socket keeps the namespace it was made in,
// so no goroutine ever has to change its namespace.
func Main() {
	listen := flag.String("listen", "127.0.0.1:0", "loopback address to listen on")
	namespace := flag.String("netns", "", "path of the network namespace to dial in")
	to := flag.String("to", "", "address to dial inside the namespace")
	inside := flag.Bool("inside", false, "this is the copy inside the namespace")
	flag.Parse()
	var err error
	if *inside {
		err = serve(*to)
	} else {
		err = listenAndEnter(*listen, *namespace, *to)
	}
	log.Fatal(err)
}

func listenAndEnter(listen, namespace, to string) error {
	address, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return err
	}
	if !address.IP.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", listen)
	}
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		return err
	}
	socket, err := listener.File()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command("nsenter", "--net="+namespace, self, "forward", "-inside", "-to", to)
	child.ExtraFiles = []*os.File{socket}
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	return child.Run()
}

func serve(to string) error {
	listener, err := net.FileListener(os.NewFile(inherited, "listener"))
	if err != nil {
		return err
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go join(client, to)
	}
}

// join copies in both directions and passes on a half-close, which the
// streaming protocols of kubectl (exec, port-forward) rely on.
func join(client net.Conn, to string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		log.Printf("dial %s: %v", to, err)
		return
	}
	defer server.Close()
	go copyAndClose(server, client)
	copyAndClose(client, server)
}

func copyAndClose(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil && !errors.Is(err, net.ErrClosed) {
		log.Printf("copy: %v", err)
	}
	if half, ok := to.(*net.TCPConn); ok {
		// The other side may be gone already; there is nothing left to do then.
		_ = half.CloseWrite()
	}
}

package forward

import (
	"flag"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
)

// forwardMain listens in the current network namespace, then re-executes itself
// inside -netns with the listening socket inherited as fd 3.
func Main() {
	listen := flag.String("listen", "127.0.0.1:0", "")
	ns := flag.String("netns", "", "path")
	to := flag.String("to", "", "")
	fd := flag.Bool("fd3", false, "")
	flag.Parse()
	if !*fd {
		l, err := net.Listen("tcp", *listen)
		if err != nil {
			log.Fatal(err)
		}
		f, _ := l.(*net.TCPListener).File()
		c := exec.Command("nsenter", "--net="+*ns, os.Args[0], "forward", "-fd3", "-to", *to)
		c.ExtraFiles = []*os.File{f}
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			log.Fatal(err)
		}
		os.Stdout.WriteString(l.Addr().String() + "\n")
		log.Fatal(c.Wait())
	}
	l, err := net.FileListener(os.NewFile(3, "l"))
	if err != nil {
		log.Fatal(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer c.Close()
			d, err := net.Dial("tcp", *to)
			if err != nil {
				log.Print(err)
				return
			}
			defer d.Close()
			go func() { io.Copy(d, c); d.(*net.TCPConn).CloseWrite() }()
			io.Copy(c, d)
		}()
	}
}

// Command pause is the process that holds a Pod's namespaces open. It must
// never do anything else: it is PID 1 of every Pod sandbox.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}

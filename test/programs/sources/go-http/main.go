package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	server := &http.Server{Addr: ":" + os.Getenv("PORT"), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from go, pid %d", os.Getpid())
	})}
	ended := make(chan struct{})
	go func() {
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		<-told
		server.Shutdown(context.Background())
		close(ended)
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		panic(err)
	}
	<-ended
}

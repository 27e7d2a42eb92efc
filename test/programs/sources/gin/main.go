package main

import (
	"net/http"
	"os"

	"github.com/gin-gonic/gin"
)

// As its own first example has it: SIGTERM ends it at once.
func main() {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "hello from gin, pid %d", os.Getpid()) })
	router.Run()
}

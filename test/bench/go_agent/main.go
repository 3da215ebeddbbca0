// The yardstick of the agent's bench: an HTTP server of Go's standard library that runs a shell
// command, reads its two pipes line by line and sends each line as one JSON event; and that takes
// and gives files. What a straightforward agent in Go costs, with no polling and no fixed tail.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

type event struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Timestamp int64  `json:"timestamp"`
}

type stream struct {
	sync.Mutex
	w http.ResponseWriter
}

func (s *stream) send(kind, text string) {
	line, _ := json.Marshal(event{kind, text, time.Now().UnixMilli()})
	s.Lock()
	defer s.Unlock()
	s.w.Write(line)
	s.w.Write([]byte("\n\n"))
	s.w.(http.Flusher).Flush()
}

func (s *stream) copyLines(kind string, from io.Reader, done *sync.WaitGroup) {
	defer done.Done()
	reader := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := reader.ReadString('\n')
		if line != "" {
			s.send(kind, line)
		}
		if err != nil {
			return
		}
	}
}

func runCommand(w http.ResponseWriter, r *http.Request) {
	var request struct{ Command string }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{w: w}
	out.send("init", fmt.Sprint(time.Now().UnixNano()))
	command := exec.Command("bash", "-c", request.Command)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, _ := command.StdoutPipe()
	stderr, _ := command.StderrPipe()
	if err := command.Start(); err != nil {
		out.send("error", err.Error())
		return
	}
	var done sync.WaitGroup
	done.Add(2)
	go out.copyLines("stdout", stdout, &done)
	go out.copyLines("stderr", stderr, &done)
	done.Wait()
	if err := command.Wait(); err != nil {
		out.send("error", err.Error())
		return
	}
	out.send("execution_complete", "")
}

func upload(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("path")
	file, err := os.CreateTemp(filepath.Dir(path), ".upload-*")
	if err == nil {
		defer file.Close()
		_, err = io.CopyBuffer(struct{ io.Writer }{file}, r.Body, make([]byte, 1<<20))
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		http.Error(w, err.Error(), 500)
	}
}

func main() {
	http.HandleFunc("/command", runCommand)
	http.HandleFunc("/files/upload", upload)
	http.HandleFunc("/files/download", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, r.URL.Query().Get("path"))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}

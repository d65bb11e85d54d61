package greenroom

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentedAndGeneratedCodeCompiles builds each file in a module of its own, as its reader does.
func TestDocumentedAndGeneratedCodeCompiles(t *testing.T) {
	for _, document := range []string{"README.md", "../../docs/guide/hosts.md", "../../crates/greenroom-cli/src/generate/golden/chat_room.go"} {
		t.Run(filepath.Base(document), func(t *testing.T) {
			text, err := os.ReadFile(document)
			if err != nil {
				t.Fatal(err)
			}
			code := string(text)
			if filepath.Ext(document) == ".md" {
				_, code, _ = strings.Cut(code, "```go\n")
				code, _, _ = strings.Cut(code, "```")
			}
			compiles(t, code)
		})
	}
}

func compiles(t *testing.T, code string) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	module := "module chat\n\ngo 1.26\n\nrequire greenroom v0.1.0\n\nrequire (\n\tgithub.com/vmihailenco/msgpack/v5 v5.4.1 // indirect\n" +
		"\tgithub.com/vmihailenco/tagparser/v2 v2.0.0 // indirect\n)\n\nreplace greenroom => " + here + "\n"
	for name, text := range map[string]string{"main.go": code, "go.mod": module, "go.sum": string(sum)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "vet", "./...")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

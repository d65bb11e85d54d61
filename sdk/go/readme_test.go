package greenroom_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
			vetted(t, map[string]string{"main.go": code})
		})
	}
}

// TestTheGuidesCodeCompilesAndRuns types what the guide on Go shows, as its reader does.
func TestTheGuidesCodeCompilesAndRuns(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/go.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, block := range regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		first, code, _ := strings.Cut(block[1], "\n")
		name, isNamed := strings.CutPrefix(first, "// ")
		if _, twice := files[name]; !isNamed || twice {
			t.Fatalf("a block that begins with %q does not say which file it is", first)
		}
		files[name] = code
	}
	if len(files) != 8 {
		t.Fatalf("there are %d files", len(files))
	}
	folder := vetted(t, files)
	node := node(t)
	run := func(words ...string) string {
		t.Helper()
		command := exec.Command(words[0], words[1:]...)
		command.Dir, command.Env = folder, append(os.Environ(), "GREENROOM_HOST="+node.URL)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	run("go", "build", "-o", "bin/", "./host", "./client")
	host := node.Command(filepath.Join(folder, "bin/host")).Serves("chat_room", "user")
	if said := run(filepath.Join(folder, "bin/client")); said != "1 <nil>\n[ada: hello] <nil>\nbob may not post\n" {
		t.Fatal(said)
	}
	host.Drain()
	if said := run("go", "test", "-v", "."); strings.Count(said, "\n--- PASS") != 2 {
		t.Fatal(said)
	}
}

// vetted writes files of a module, which compile and have no faults that are known to lints, and gives their folder.
func vetted(t *testing.T, files map[string]string) string {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	files["go.mod"] = "module chat\n\ngo 1.26\n\nrequire greenroom v0.1.0\n\nrequire (\n\tgithub.com/vmihailenco/msgpack/v5 v5.4.1 // indirect\n" +
		"\tgithub.com/vmihailenco/tagparser/v2 v2.0.0 // indirect\n)\n\nreplace greenroom => " + here + "\n"
	files["go.sum"] = string(sum)
	for name, text := range files {
		path := filepath.Join(folder, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	vet := exec.Command("go", "vet", "./...")
	vet.Dir = folder
	if out, err := vet.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return folder
}

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	shells = []string{"sh", "bash", "shell", "console", "zsh"}
	// programs begin the lines of a shell block, whether the block is marked as shell or not.
	programs = []string{
		"make", "weir", "bin/weir", "curl", "docker", "kubectl", "helm", "go", "git", "redis-cli", "redis-benchmark",
		"npm", "pip", "apt-get", "apt", "sudo", "systemctl", "openssl", "python3", "python", "node", "$", "#!/bin/sh",
	}

	trailingComment = regexp.MustCompile(`\S\s+#(\s|$)`)
	quoted          = regexp.MustCompile(`'[^']*'|"(?:[^"\\]|\\.)*"`)
	prompt          = regexp.MustCompile(`^\s*[$>%] `)
	placeholder     = regexp.MustCompile(`(^|\s)(\.\.\.|…)(\s|$)`)
	heredoc         = regexp.MustCompile(`<<-?\s*['"]?(\w+)['"]?`)
)

// unpasteable returns what prevents a reader from pasting the shell blocks of a page.
func unpasteable(name string, blocks []block) (found []string) {
	for _, b := range blocks {
		say := func(line int, problem string) {
			found = append(found, fmt.Sprintf("%s:%d: %s", name, line, problem))
		}
		if b.language == "" && forShell(b.lines) {
			say(b.line, "a block of commands: begin it with ```sh")
		}
		if slices.Contains(shells, b.language) {
			checkPaste(b, say)
		}
	}
	return found
}

func forShell(lines []string) bool {
	for _, line := range lines {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "# ") {
			return slices.Contains(programs, words[0])
		}
	}
	return false
}

// checkPaste reports the problems of the lines of a block. Text after << is a file and not a command.
func checkPaste(b block, say func(line int, problem string)) {
	until := ""
	for i, line := range b.lines {
		if until != "" {
			if strings.TrimSpace(line) == until {
				until = ""
			}
			continue
		}
		if match := heredoc.FindStringSubmatch(line); match != nil {
			until = match[1]
		}
		bare := quoted.ReplaceAllString(line, "''")
		switch at := b.line + 1 + i; {
		case prompt.MatchString(line):
			say(at, "a prompt before a command: leave it out")
		case trailingComment.MatchString(bare):
			say(at, "a comment behind a command: say it in the text, or in a line of its own")
		case placeholder.MatchString(bare):
			say(at, "dots in a command: write out what stands there")
		}
	}
}

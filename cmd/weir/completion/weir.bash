# Completion of weir for bash: source <(weir completion bash)
_weir() {
	local IFS=$'\n'
	COMPREPLY=($("$1" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o bashdefault -o default -F _weir weir

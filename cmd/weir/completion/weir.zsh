#compdef weir
# Completion of weir for zsh: source <(weir completion zsh)
_weir() {
	local -a found
	found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "$found" ]]; then compadd -- "${found[@]}"; else _files; fi
}
if [[ "${funcstack[1]}" = _weir ]]; then _weir "$@"; else compdef _weir weir; fi

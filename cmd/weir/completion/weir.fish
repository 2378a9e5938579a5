# Completion of weir for fish: weir completion fish | source
function __weir_complete
	set -l words (commandline -opc) (commandline -ct)
	$words[1] __complete $words[2..] 2>/dev/null
end
complete -c weir -a '(__weir_complete)'

# bash completion for ddrun-rendezvous
_ddrun_rendezvous() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if [[ $current == = ]]; then
        current=""
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $previous in
    --secret-file | --state-file)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        ;;
    --listen | --status-listen) ;;
    *)
        mapfile -t COMPREPLY < <(compgen -W '--listen= --secret-file= --insecure --status-listen= --state-file= --quiet --help --version' -- "$current")
        [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
        ;;
    esac
}
complete -F _ddrun_rendezvous ddrun-rendezvous

# bash completion for ddrun, made by: ddrun --print-completion bash
_ddrun_value() { # FLAG BEGINNING
    local value=$2
    case $1 in
    --local-rank-flag)
        mapfile -t COMPREPLY < <(compgen -W '--local-rank --local_rank none' -- "$value")
        ;;
    --nproc-per-node)
        mapfile -t COMPREPLY < <(compgen -W 'auto gpu cpu' -- "$value")
        ;;
    --rdzv-backend)
        mapfile -t COMPREPLY < <(compgen -W 'ddrun c10d static' -- "$value")
        ;;
    --agent-store)
        mapfile -t COMPREPLY < <(compgen -W 'auto on off' -- "$value")
        ;;
    --secret-file)
        mapfile -t COMPREPLY < <(compgen -f -- "$value")
        ;;
    --crash-loop)
        mapfile -t COMPREPLY < <(compgen -W 'off' -- "$value")
        ;;
    --hang-timeout)
        mapfile -t COMPREPLY < <(compgen -W 'off' -- "$value")
        ;;
    --early-exit-timeout)
        mapfile -t COMPREPLY < <(compgen -W 'off' -- "$value")
        ;;
    --signals-to-handle)
        mapfile -t COMPREPLY < <(compgen -W 'SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2' -- "$value")
        ;;
    --start-method)
        mapfile -t COMPREPLY < <(compgen -W 'spawn fork forkserver' -- "$value")
        ;;
    --gpu-binding)
        mapfile -t COMPREPLY < <(compgen -W 'none per-rank' -- "$value")
        ;;
    --numa-binding)
        mapfile -t COMPREPLY < <(compgen -W 'off node socket exclusive core-complex' -- "$value")
        ;;
    --log-dir)
        mapfile -t COMPREPLY < <(compgen -d -- "$value")
        ;;
    --redirects | -r)
        mapfile -t COMPREPLY < <(compgen -W '0 1 2 3' -- "$value")
        ;;
    --tee | -t)
        mapfile -t COMPREPLY < <(compgen -W '0 1 2 3' -- "$value")
        ;;
    --log-line-prefix-template)
        mapfile -t COMPREPLY < <(compgen -W 'none' -- "$value")
        ;;
    --status-file)
        mapfile -t COMPREPLY < <(compgen -f -- "$value")
        ;;
    --event-log-handler)
        mapfile -t COMPREPLY < <(compgen -W 'null' -- "$value")
        ;;
    --config)
        mapfile -t COMPREPLY < <(compgen -f -- "$value")
        ;;
    --help | -h)
        mapfile -t COMPREPLY < <(compgen -W 'all' -- "$value")
        ;;
    --print-completion)
        mapfile -t COMPREPLY < <(compgen -W 'bash zsh' -- "$value")
        ;;
    esac
}

_ddrun_flags='--module -m --no-python --run-path --local-rank-flag --prefix-command --stdin --nproc-per-node --nnodes --node-rank --spares --topology-group --role --standalone --rdzv-id --rdzv-endpoint --rdzv-port --rdzv-backend --rdzv-conf --master-addr --master-port --agent-store --local-addr --interface --secret-file --insecure --make-secret --join-timeout --last-call --heartbeat --lease --rendezvous-grace --status-listen --max-restarts --no-restart-on --restart-backoff --crash-loop --shutdown-timeout --hang-timeout --early-exit-timeout --signals-to-handle --monitor-interval --start-method --env --gpus --gpu-binding --virtual-local-rank --require-gpus --numa-binding --strict-binding --log-dir --redirects -r --tee -t --local-ranks-filter --ranks-filter --log-line-prefix-template --duplicate-stdout-filters --duplicate-stderr-filters --log-strict --status-file --event-log-handler --config --print-config --dry-run --verbose -v --quiet -q --help -h --version -V --print-completion'
_ddrun_valued=' --local-rank-flag --prefix-command --stdin --nproc-per-node --nnodes --node-rank --spares --topology-group --role --rdzv-id --rdzv-endpoint --rdzv-port --rdzv-backend --rdzv-conf --master-addr --master-port --agent-store --local-addr --interface --secret-file --join-timeout --last-call --heartbeat --lease --rendezvous-grace --status-listen --max-restarts --no-restart-on --restart-backoff --crash-loop --shutdown-timeout --hang-timeout --early-exit-timeout --signals-to-handle --monitor-interval --start-method --env --gpus --gpu-binding --numa-binding --log-dir --redirects -r --tee -t --local-ranks-filter --ranks-filter --log-line-prefix-template --duplicate-stdout-filters --duplicate-stderr-filters --status-file --event-log-handler --config --print-completion '

_ddrun() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word at=1
    COMPREPLY=()
    # Flags end at the first word that is neither a flag nor the value of one; '=' is a word of its own.
    while ((at < COMP_CWORD)); do
        word=${COMP_WORDS[at]}
        if [[ $word == -- ]]; then
            at=$((at + 1))
            break
        elif [[ $word != -* ]]; then
            break
        elif [[ ${COMP_WORDS[at + 1]} == = ]]; then
            at=$((at + 3))
        elif [[ $_ddrun_valued == *" $word "* ]]; then
            at=$((at + 2))
        else
            at=$((at + 1))
        fi
    done
    compopt -o filenames 2>/dev/null
    if ((at < COMP_CWORD)); then
        if declare -F _command_offset >/dev/null; then
            _command_offset "$at"
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
    elif [[ $current == = ]]; then
        _ddrun_value "$previous" ""
    elif [[ $previous == = ]]; then
        _ddrun_value "${COMP_WORDS[COMP_CWORD - 2]}" "$current"
    elif ((at > COMP_CWORD)); then
        _ddrun_value "$previous" "$current"
    elif [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$_ddrun_flags" -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current"; compgen -c -- "$current")
    fi
}

complete -F _ddrun ddrun

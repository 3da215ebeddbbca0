# Runs the cells of one context in this very shell: variables, functions, options and directory
# stay. A cell that leaves the shell (exit, a fatal error, an interrupt) hands its state to the
# agent, which gives it to the next shell. Descriptor 3 is the control channel; it is moved to a
# number that scripts do not use.
exec 249>&3 3>&-

__osb_send() { # letter, payload
    local LC_ALL=C
    printf '%s%d\n%s' "$1" "${#2}" "$2" >&249
}

# One frame into __osb_body; fails at the end of the channel.
__osb_receive() {
    local header LC_ALL=C IFS=
    read -r -u 249 header || return 1
    __osb_body=
    ((${header:1} == 0)) || read -r -N "${header:1}" -u 249 __osb_body
}

__osb_done() { # status, further members
    if (($1 != 0)); then
        __osb_send j "{\"type\":\"error\",\"ename\":\"CommandExecError\",\"evalue\":\"$1\",\"traceback\":[\"exit status $1\"]}"
    fi
    __osb_send j "{\"type\":\"done\"$2}"
}

# What a shell has, as commands that give it to another one.
__osb_state() {
    declare -f
    declare -p
    alias -p
    shopt -p
    set +o
    printf 'umask %s\ncd -- %q\n' "$(umask)" "$PWD"
}

__osb_leave() { # status
    {
        __osb_options=$-
        set +euxvn
        trap '' INT
    } 2>/dev/null
    unset __osb_body
    __osb_send s "$(__osb_state 2>/dev/null)"
    __osb_done "$1" ',"leaving":true'
}

__osb_options=
__osb_receive || exit
# At the top level: in a function these declarations would be local.
eval "$__osb_body" 2>/dev/null
set +euxvn
trap '__osb_leave "$?"' EXIT
__osb_send j '{"type":"ready"}'
__osb_status=0
while __osb_receive; do
    for __osb_letter in e u x v; do
        [[ $__osb_options != *$__osb_letter* ]] || set "-$__osb_letter"
    done 2>/dev/null
    eval "(exit $__osb_status)
$__osb_body" </dev/null
    {
        __osb_status=$?
        __osb_options=$-
        set +euxv
    } 2>/dev/null
    __osb_done "$__osb_status"
done
trap - EXIT

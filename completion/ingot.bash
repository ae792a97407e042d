# SPDX-License-Identifier: Apache-2.0
# Completion of ingot(1) for bash.

_ingot_options()
{
    case $1 in
    convert)
        echo "--name --force --dtype --saturate --rules --max-header --keep-unindexed
            --accept-stale-quant --no-config --threads --fsverity"
        ;;
    export) echo "--safetensors --threads" ;;
    verify)
        echo "--quick --fast --source --reproduce --trust-stamp --expect --self --strict --threads --all --signature --key
            --certificate-chain --system-roots --at --tsa-roots --allow-unheld --endorse
            --passphrase-fd --receipt
            --allow-unsigned --output --nonce"
        ;;
    pin) echo "--name --force --attribution --license --check --threads" ;;
    sign) echo "--key --certificate --chain --passphrase-fd --output --expect --threads" ;;
    lineage) echo "--key --certificate-chain --system-roots --at --tsa-roots" ;;
    manifest) echo "--format --hash --output --threads" ;;
    show) echo "--tensors --scales --config --null" ;;
    ls) echo "--long --null" ;;
    find) echo "--tensor --digest --sha256 --null" ;;
    load)
        echo "--device --verify --engine --tensors --rank --threads --repeat --drop-cache
            --limit-memory --receipt --receipt-key --passphrase-fd --nonce --input
            --require-signature --keyring"
        ;;
    tag | rm) echo "--force" ;;
    gc) echo "--dry-run --all-ages" ;;
    esac
    echo "--store --json --quiet --help"
}

# Names in the store that the words so far speak of.
_ingot_names()
{
    local i store=()
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -s | --store) store=(--store "${COMP_WORDS[i + 1]}") ;;
        esac
    done
    "${COMP_WORDS[0]}" ls -0 "${store[@]}" 2>/dev/null | tr '\0' '\n'
}

_ingot()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local cmd=${COMP_WORDS[1]}
    local cmds="convert export pin verify sign lineage manifest show ls find load tag rm gc reindex devices help"
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$cmds --help --version" -- "$cur")
        return
    fi
    case $prev in
    --dtype)
        mapfile -t COMPREPLY < <(compgen -W "f16 bf16 f32" -- "$cur")
        return
        ;;
    --verify)
        mapfile -t COMPREPLY < <(compgen -W "full fast off" -- "$cur")
        return
        ;;
    --format)
        mapfile -t COMPREPLY < <(compgen -W "sha256sum oms modelpack slsa" -- "$cur")
        return
        ;;
    --engine)
        mapfile -t COMPREPLY < <(compgen -W "auto ring map direct" -- "$cur")
        return
        ;;
    -s | --store | --source | --check | --keyring)
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    --safetensors | --attribution)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    -n | --name | --license | --rules | --max-header | --threads | --expect | --tensor | --digest | --sha256 | \
        -d | --device | --rank | --repeat | --limit-memory)
        return
        ;;
    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_ingot_options "$cmd")" -- "$cur")
        return
    fi
    case $cmd in
    help) mapfile -t COMPREPLY < <(compgen -W "$cmds pack store" -- "$cur") ;;
    convert | pin) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    export | verify | sign | lineage | manifest | show | load | tag | rm)
        mapfile -t COMPREPLY < <(
            compgen -W "$(_ingot_names)" -- "$cur"
            compgen -f -- "$cur"
        )
        ;;
    esac
}
complete -o filenames -F _ingot ingot

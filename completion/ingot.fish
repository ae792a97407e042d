# SPDX-License-Identifier: Apache-2.0
# Completion of ingot(1) for fish.

function __ingot_names
    set -l words (commandline -opc)
    set -l store
    for i in (seq (count $words))
        if contains -- $words[$i] -s --store
            set store --store $words[(math $i + 1)]
        end
    end
    ingot ls -0 $store 2>/dev/null | string split0
end

complete -c ingot -f
complete -c ingot -n __fish_use_subcommand -l version -d 'Version and libraries'
complete -c ingot -n __fish_use_subcommand -a convert -d 'Make a pack from a checkpoint'
complete -c ingot -n __fish_use_subcommand -a export -d 'Get the original files back'
complete -c ingot -n __fish_use_subcommand -a pin -d 'Keep evaluation inputs as a set'
complete -c ingot -n __fish_use_subcommand -a verify -d 'Prove that packs hold what they should'
complete -c ingot -n __fish_use_subcommand -a sign -d 'Sign a model for OpenSSF Model Signing'
complete -c ingot -n __fish_use_subcommand -a lineage -d 'Show what a model was made from'
complete -c ingot -n __fish_use_subcommand -a show -d 'Describe a pack'
complete -c ingot -n __fish_use_subcommand -a ls -d 'List the models of the store'
complete -c ingot -n __fish_use_subcommand -a find -d 'Find models by tensor or file'
complete -c ingot -n __fish_use_subcommand -a load -d 'Bring a model into GPU memory'
complete -c ingot -n __fish_use_subcommand -a tag -d 'Give a model one more name'
complete -c ingot -n __fish_use_subcommand -a rm -d 'Remove names'
complete -c ingot -n __fish_use_subcommand -a gc -d 'Delete packs that no name needs'
complete -c ingot -n __fish_use_subcommand -a reindex -d 'Rebuild the index of the store'
complete -c ingot -n __fish_use_subcommand -a devices -d 'List CUDA devices'
complete -c ingot -n __fish_use_subcommand -a help -d 'Open a manual page'

# Every command
complete -c ingot -s s -l store -xa '(__fish_complete_directories)' -d 'The store'
complete -c ingot -l json -d 'Report as JSON'
complete -c ingot -s q -l quiet -d 'No progress, no notices'
complete -c ingot -s h -l help -d 'Open the manual page'

set -l for '__fish_seen_subcommand_from'
complete -c ingot -n "$for convert" -F
complete -c ingot -n "$for convert" -s n -l name -x -d 'Name in the store'
complete -c ingot -n "$for convert" -s f -l force -d 'Let the name stand for the new pack'
complete -c ingot -n "$for convert" -l dtype -xa 'f16 bf16 f32' -d 'Convert floating-point tensors'
complete -c ingot -n "$for convert" -l saturate -d 'Clip instead of refusing'
complete -c ingot -n "$for convert" -l rules -x -d 'Version of the layout'
complete -c ingot -n "$for convert" -l max-header -x -d 'Longest header to accept'
complete -c ingot -n "$for convert" -l keep-unindexed -d 'Keep tensors that the index lacks'
complete -c ingot -n "$for convert" -l accept-stale-quant -d 'Accept a merely declared quantisation'
complete -c ingot -n "$for convert" -l no-config -d 'Accept a folder without config.json'
complete -c ingot -n "$for convert" -l threads -x -d 'Threads to use'
complete -c ingot -n "$for convert" -l fsverity -d 'Enable fs-verity on the pack'

complete -c ingot -n "$for export verify sign lineage show load tag rm" -F -a '(__ingot_names)'
complete -c ingot -n "$for export" -l safetensors -r -F -d 'One merged file'
complete -c ingot -n "$for export" -l threads -x -d 'Threads to use'

complete -c ingot -n "$for verify" -l quick -d 'Structure and sizes only'
complete -c ingot -n "$for verify" -l fast -d 'XXH3 only'
complete -c ingot -n "$for verify" -l source -xa '(__fish_complete_directories)' -d 'Original files'
complete -c ingot -n "$for verify" -l reproduce -d 'Make it again and compare'
complete -c ingot -n "$for verify" -l expect -x -d 'Digest it must have'
complete -c ingot -n "$for verify" -l self -d 'Accept without an expected digest'
complete -c ingot -n "$for verify" -l strict -d 'Unknown files are failures'
complete -c ingot -n "$for verify" -l threads -x -d 'Threads to use'
complete -c ingot -n "$for verify" -l all -d 'Every pack of the store'
complete -c ingot -n "$for verify" -l signature -rF -d 'Bundle to check'
complete -c ingot -n "$for verify lineage" -l key -rF -d 'Public key'
complete -c ingot -n "$for verify lineage" -l certificate-chain -rF -d 'Trusted roots'
complete -c ingot -n "$for verify lineage" -l system-roots -d 'Trust the roots of the system'
complete -c ingot -n "$for verify lineage" -l at -x -d 'Time to judge certificates at'
complete -c ingot -n "$for verify lineage" -l tsa-roots -rF -d 'Roots of time-stamping authorities'
complete -c ingot -n "$for verify" -l allow-unheld -x -d 'Signed files that may be missing'
complete -c ingot -n "$for pin" -F
complete -c ingot -n "$for pin" -s n -l name -x -d 'Name in the store'
complete -c ingot -n "$for pin" -s f -l force -d 'Let the name stand for the new set'
complete -c ingot -n "$for pin" -l attribution -rF -d 'Text to keep with it'
complete -c ingot -n "$for pin" -l license -x -d 'SPDX expression'
complete -c ingot -n "$for pin" -l check -xa '(__fish_complete_directories)' -d 'Compare a folder with a set'
complete -c ingot -n "$for pin" -l threads -x -d 'Threads to use'
complete -c ingot -n "$for sign" -l key -rF -d 'Private key'
complete -c ingot -n "$for sign" -l certificate -rF -d 'Certificate of the key'
complete -c ingot -n "$for sign" -l chain -rF -d 'More certificates'
complete -c ingot -n "$for sign" -l passphrase-fd -x -d 'Where to read the passphrase'
complete -c ingot -n "$for sign" -s o -l output -rF -d 'Bundle to write'
complete -c ingot -n "$for sign" -l expect -x -d 'Digest it must have'
complete -c ingot -n "$for sign" -l threads -x -d 'Threads to use'

complete -c ingot -n "$for show" -l tensors -d 'List tensors'
complete -c ingot -n "$for show" -l scales -d 'List scales'
complete -c ingot -n "$for show" -l config -d 'Print config.json'
complete -c ingot -n "$for show ls find" -s 0 -l null -d 'Names ended by NUL'
complete -c ingot -n "$for ls" -s l -l long -d 'More columns'
complete -c ingot -n "$for find" -s t -l tensor -x -d 'Tensor name pattern'
complete -c ingot -n "$for find" -s d -l digest -x -d 'Tensor digest'
complete -c ingot -n "$for find" -l sha256 -x -d 'Hash of a source file'
complete -c ingot -n "$for tag rm" -s f -l force -d 'Do it even if the name is in use'
complete -c ingot -n "$for load" -s d -l device -xa 'cuda:0 host' -d 'Where to'
complete -c ingot -n "$for load" -l verify -xa 'full fast off' -d 'How to check'
complete -c ingot -n "$for load" -l engine -xa 'auto ring map direct' -d 'How to read'
complete -c ingot -n "$for load" -s t -l tensors -x -d 'Only these'
complete -c ingot -n "$for load" -l rank -x -d 'Only what a rank holds'
complete -c ingot -n "$for load" -l threads -x -d 'Threads that read'
complete -c ingot -n "$for load" -l repeat -x -d 'Load again and again'
complete -c ingot -n "$for load" -l drop-cache -d 'From the disk, not the page cache'
complete -c ingot -n "$for load" -l limit-memory -x -d 'Host memory of its own'
complete -c ingot -n "$for load" -l receipt -rF -d 'Record to write'
complete -c ingot -n "$for load" -l receipt-key -rF -d 'Private key'
complete -c ingot -n "$for load" -l passphrase-fd -x -d 'Where to read the passphrase'
complete -c ingot -n "$for load" -l nonce -x -d 'To be found in the receipt'
complete -c ingot -n "$for load" -l input -rF -d 'To be recorded'
complete -c ingot -n "$for verify" -l receipt -rF -d 'Record of a run to check'
complete -c ingot -n "$for verify" -l allow-unsigned -d 'Accept one without signature'
complete -c ingot -n "$for verify" -l output -rF -d 'What must have come out'
complete -c ingot -n "$for verify" -l nonce -x -d 'That it must have'
complete -c ingot -n "$for gc" -s n -l dry-run -d 'Only say what would go'
complete -c ingot -n "$for gc" -l all-ages -d 'Young packs too'
complete -c ingot -n "$for help" -a 'convert export pin verify sign lineage show ls find load tag rm gc reindex devices pack store'

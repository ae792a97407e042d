#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Policy: what load accepts, from where rules may come, and who may not make them.

load common

setup() {
    setup_store
    command -v openssl >/dev/null || skip "openssl is not installed"
    ingot convert -q -n acme/pocket "$(model phi3-pocket)"
    ingot convert -q -n other/phi4 "$(model phi4-pocket)"
    for k in acme evil operator; do
        openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $k.pem
        chmod 600 $k.pem
        openssl pkey -in $k.pem -pubout -out $k.pub
    done
    mkdir trust
    cp acme.pub operator.pub trust
    digest=fsverity-sha256:b377b3eca0e2cae65965a8c7107edf7e8e2a5411ea1b6e6f64b6ef41eafea6b1
    export XDG_CONFIG_HOME=$PWD/config
}

print_of() {
    echo "sha256:$(sha256sum <"$1" | cut -c1-64)"
}

rules() {
    printf '%s\n' "$@" >trust/rules.trust
}

try() {
    run --separate-stderr "$INGOT" load -d host --require-signature --keyring trust "$@"
}

refused() {
    [ "$status" -eq 1 ] || flunk "exit $status: $output $stderr"
    [ -z "$output" ]
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
    [[ $stderr == *"$1"* ]] || flunk "does not say '$1': $stderr"
}

@test "trust: a signed model by the rule's key, in words and as JSON" {
    rules "# releases" "" "allow key=$(print_of acme.pub) name=acme/*"
    try acme/pocket
    refused "there is no signature beside it"
    ingot sign -q --key acme.pem acme/pocket
    try acme/pocket
    [ "$status" -eq 0 ]
    [[ $output == *"accepted by rules.trust:3: signature "*".sig of $(print_of acme.pub)"* ]]
    try acme/pocket --json
    echo "$output" | "$PYTHON" -c '
import json, sys
p = json.load(sys.stdin)["policy"]
assert p["rule"] == "rules.trust:3" and p["kind"] == "signature"'
    try acme/pocket --receipt run.json -q
    [ "$status" -eq 0 ]
    grep -q '"policy":{' run.json
}

@test "trust: what no rule is about, and whom no rule knows" {
    rules "allow key=$(print_of acme.pub) name=acme/*"
    ingot sign -q --key acme.pem other/phi4
    try other/phi4
    refused "none is about this model"
    ingot sign -q --key evil.pem acme/pocket
    try acme/pocket
    refused "made with the key"
    rules
    try acme/pocket
    refused "none is about this model"
}

@test "trust: a name that was moved to another pack" {
    rules "allow key=$(print_of acme.pub) name=acme/*"
    ingot sign -q --key acme.pem acme/pocket
    ingot tag -f other/phi4 acme/pocket
    try acme/pocket
    refused "there is no signature beside it"
    # with the bundle of the right one laid beside it
    mkdir "$INGOT_STORE/packs/be654d4c8d62c3b4ab270516a734b75265f284f9ca39983ea5281390391838df.sigs"
    cp "$INGOT_STORE"/packs/b377*.sigs/* "$INGOT_STORE"/packs/be65*.sigs/
    try acme/pocket
    refused "of another pack"
}

@test "trust: digests that a rule lists, and deny" {
    ingot sign -q --key acme.pem acme/pocket
    ingot sign -q --key acme.pem other/phi4
    rules "allow key=$(print_of acme.pub) name=* digest=$digest"
    try acme/pocket
    [ "$status" -eq 0 ]
    try other/phi4
    refused "none is about this model"
    rules "allow key=$(print_of acme.pub) name=*" "deny digest=$digest"
    try other/phi4
    [ "$status" -eq 0 ]
    try acme/pocket
    refused "rules.trust:2 denies $digest"
}

@test "trust: by digest or path a model has no name" {
    ingot sign -q --key acme.pem acme/pocket
    rules "allow key=$(print_of acme.pub) name=acme/*"
    try b377b3eca0e2
    refused "none is about this model"
    try "$INGOT_STORE"/packs/b377*.ingot
    refused "none is about this model"
    rules "allow key=$(print_of acme.pub) name=acme/* digest=$digest"
    try b377b3eca0e2
    [ "$status" -eq 0 ]
    rules "allow key=$(print_of acme.pub) name=*"
    try "$INGOT_STORE"/packs/b377*.ingot
    [ "$status" -eq 0 ]
    cp "$INGOT_STORE"/packs/b377*.ingot ./moved.ingot
    try ./moved.ingot
    refused "nothing says what its digest must be"
}

@test "trust: when a rule counts" {
    ingot sign -q --key acme.pem acme/pocket
    rules "allow key=$(print_of acme.pub) name=* not-after=2020-01-01"
    try acme/pocket
    refused "none is about this model"
    rules "allow key=$(print_of acme.pub) name=* not-before=2100-01-01T00:00:00Z"
    try acme/pocket
    refused "none is about this model"
    rules "allow key=$(print_of acme.pub) name=* not-before=2020-01-01 not-after=2100-01-01"
    try acme/pocket
    [ "$status" -eq 0 ]
}

@test "trust: rules that others could write are none" {
    ingot sign -q --key acme.pem acme/pocket
    rules "allow key=$(print_of acme.pub) name=*"
    chmod g+w trust
    try acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"trust: others than its owner can write it"* ]]
    chmod g-w trust
    chmod o+w trust/rules.trust
    try acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"rules.trust: others than its owner can write it"* ]]
    chmod o-w trust/rules.trust
    chmod g+w trust/acme.pub
    try acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"acme.pub: others than its owner can write it"* ]]
    chmod g-w trust/acme.pub
    try acme/pocket
    [ "$status" -eq 0 ]
    mkdir above
    cp -rp trust above/trust
    chmod 777 above
    run --separate-stderr "$INGOT" load -d host --require-signature --keyring above/trust acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"above: everybody can write it"* ]]
    chmod 1777 above
    run --separate-stderr "$INGOT" load -d host --require-signature --keyring above/trust acme/pocket
    [ "$status" -eq 0 ]
}

@test "trust: rules never come from the store" {
    ingot sign -q --key acme.pem acme/pocket
    rules "allow key=$(print_of acme.pub) name=*"
    cp -r trust "$INGOT_STORE/trust.d"
    run --separate-stderr "$INGOT" load -d host --require-signature --keyring "$INGOT_STORE/trust.d" acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"lies in the store"* ]]
    ln -s "$INGOT_STORE/trust.d" link
    run --separate-stderr "$INGOT" load -d host --require-signature --keyring link acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"lies in the store"* ]]
    # and with neither keyring nor a folder of the user's there are none
    run --separate-stderr "$INGOT" load -d host --require-signature acme/pocket
    [ "$status" -eq 1 ]
    [[ $stderr == *"/etc/ingot/trust.d, $XDG_CONFIG_HOME/ingot/trust.d accepts it"* ]]
}

@test "trust: the user's own folder" {
    ingot sign -q --key acme.pem acme/pocket
    rules "allow key=$(print_of acme.pub) name=*"
    mkdir -p config/ingot
    cp -r trust config/ingot/trust.d
    run --separate-stderr "$INGOT" load -d host --require-signature acme/pocket
    [ "$status" -eq 0 ]
}

@test "trust: files of another user" {
    skip_unless_root
    ingot sign -q --key acme.pem acme/pocket
    rules "allow key=$(print_of acme.pub) name=*"
    chown 12345 trust/rules.trust
    try acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"belongs to somebody else"* ]]
}

@test "trust: what is not understood refuses everything, with file and line" {
    ingot sign -q --key acme.pem acme/pocket
    key=key=$(print_of acme.pub)
    for line in "permit $key name=*" "allow $key" "allow name=*" "allow $key name=* extra=1" "allow $key name" \
        "allow $key $key name=*" "allow $key name=* name=a" "allow key=sha256:12 name=*" "allow $key name=* digest=12" \
        "allow $key name=* not-after=soon" "deny name=*" "deny $key" "deny" "allow $key name="; do
        rules "allow $key name=*" "$line"
        try acme/pocket
        [ "$status" -eq 3 ] || flunk "exit $status: $line"
        [[ $stderr == *"rules.trust:2: "* ]] || flunk "$line: $stderr"
    done
    rules "allow key=$(print_of evil.pub) name=*"
    try acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"rules.trust:1: no .pem or .pub file"* ]]
    rules "allow $key name=*"
    echo nonsense >trust/bad.pem
    try acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"bad.pem"* ]]
}

@test "trust: certificates, of a CA that a rule knows and of one that it does not" {
    for ca in good bad; do
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $ca.key -out $ca.crt -days 30 \
            -subj "/CN=$ca root" 2>/dev/null
        openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $ca-leaf.key -out leaf.csr \
            -subj "/CN=$ca signer" 2>/dev/null
        printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\n' >ext
        openssl x509 -req -in leaf.csr -CA $ca.crt -CAkey $ca.key -CAcreateserial -days 20 -extfile ext -out $ca-leaf.crt 2>/dev/null
        chmod 600 $ca-leaf.key
    done
    cp good.crt trust/good.pem
    print=$(openssl x509 -in good.crt -noout -fingerprint -sha256 | sed 's/.*=//; s/://g' | tr A-F a-f)
    rules "allow ca=sha256:$print name=acme/*"
    ingot sign -q --key bad-leaf.key --certificate bad-leaf.crt acme/pocket
    try acme/pocket
    refused "leads to no trusted root"
    ingot sign -q --key good-leaf.key --certificate good-leaf.crt acme/pocket
    try acme/pocket
    [ "$status" -eq 0 ]
    [[ $output == *"of CN=good signer"* ]]
    cat good.crt bad.crt >trust/two.pem
    try acme/pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"two.pem: holds several certificates"* ]]
}

@test "trust: a bundle over files counts once somebody has endorsed it" {
    rules "allow key=$(print_of acme.pub) name=acme/*" "allow key=$(print_of operator.pub) name=acme/*"
    ingot sign -q --key acme.pem -o full.sig acme/pocket
    # As other tools write it: without the digest of the pack.
    "$PYTHON" - <<'EOF'
import base64, json, subprocess
b = json.load(open("full.sig"))
s = json.loads(base64.b64decode(b["dsseEnvelope"]["payload"]))
del s["predicate"]["ingot"]
payload = json.dumps(s).encode()
kind = b"application/vnd.in-toto+json"
open("pae", "wb").write(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
subprocess.run("openssl dgst -sha256 -sign acme.pem -out pae.sig pae".split(), check=True)
b["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()
b["dsseEnvelope"]["signatures"][0]["sig"] = base64.b64encode(open("pae.sig", "rb").read()).decode()
json.dump(b, open("theirs.sig", "w"))
EOF
    mkdir "$INGOT_STORE"/packs/b377b3eca0e2cae65965a8c7107edf7e8e2a5411ea1b6e6f64b6ef41eafea6b1.sigs
    cp theirs.sig "$INGOT_STORE"/packs/b377*.sigs/
    try acme/pocket
    refused "ingot verify --signature BUNDLE --key PUBLIC --endorse KEY MODEL"
    # Nothing is endorsed that was not found good.
    run --separate-stderr "$INGOT" verify --signature theirs.sig --key evil.pub --endorse operator.pem acme/pocket
    [ "$status" -eq 1 ]
    [ -z "$(find "$INGOT_STORE" -name "*.endorsement")" ]
    run --separate-stderr "$INGOT" verify --signature theirs.sig --key acme.pub --endorse operator.pem acme/pocket
    [ "$status" -eq 0 ]
    [[ $output == *"endorsed: "*".endorsement"* ]]
    try acme/pocket
    [ "$status" -eq 0 ]
    [[ $output == *"accepted by rules.trust:2: endorsement "*" of $(print_of operator.pub)"* ]]
    # An endorsement of one pack is none of another.
    mkdir "$INGOT_STORE"/packs/be654d4c8d62c3b4ab270516a734b75265f284f9ca39983ea5281390391838df.sigs
    cp "$INGOT_STORE"/packs/b377*.sigs/*.endorsement "$INGOT_STORE"/packs/be65*.sigs/
    ingot tag -f other/phi4 acme/pocket
    try acme/pocket
    refused "of another pack"
    run --separate-stderr "$INGOT" verify --endorse operator.pem acme/pocket
    [ "$status" -eq 2 ]
}

@test "trust: an accepted model is still proven by the load" {
    rules "allow key=$(print_of acme.pub) name=*"
    ingot sign -q --key acme.pem acme/pocket
    pack=$(echo "$INGOT_STORE"/packs/b377*.ingot)
    chmod u+w "$pack"
    printf '\001' | dd of="$pack" bs=1 seek=300000 conv=notrunc status=none
    try acme/pocket
    [ "$status" -eq 1 ]
    [[ $stderr == *"$pack"* ]]
    run --separate-stderr "$INGOT" load -d host --require-signature --verify fast acme/pocket
    [ "$status" -eq 2 ]
    run --separate-stderr "$INGOT" load -d host --keyring trust acme/pocket
    [ "$status" -eq 2 ]
}

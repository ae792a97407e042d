#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Receipts: who says it, what it names, what came out.

load common

setup() {
    setup_store
    ingot convert -q -n pocket "$(model phi3-pocket)"
    command -v openssl >/dev/null || skip "openssl is not installed"
    for k in key other; do
        openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $k.pem
        chmod 600 $k.pem
        openssl pkey -in $k.pem -pubout -out $k.pub
    done
    mkdir in
    echo "The capital of France is" >in/panel.txt
    ingot pin -q -n evals in
}

receipt() {
    ingot load -q -d host --receipt "$@" pocket
}

check() {
    run --separate-stderr "$INGOT" verify --receipt "$@"
}

# of FILE EXPRESSION: something of a receipt; `p` is its predicate, `s` the statement
of() {
    "$PYTHON" - "$1" "$2" <<'EOF'
import base64, json, sys
s = json.load(open(sys.argv[1]))
if "dsseEnvelope" in s:
    s = json.loads(base64.b64decode(s["dsseEnvelope"]["payload"]))
p = s["predicate"]
print(eval(sys.argv[2]))
EOF
}

# alter FILE CODE OUT: a changed receipt, its signature as it was
alter() {
    "$PYTHON" - "$@" <<'EOF'
import base64, json, sys
b = json.load(open(sys.argv[1]))
signed = "dsseEnvelope" in b
s = json.loads(base64.b64decode(b["dsseEnvelope"]["payload"])) if signed else b
p = s["predicate"]
exec(sys.argv[2])
if signed:
    b["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(s).encode()).decode()
json.dump(b, open(sys.argv[3], "w"))
EOF
}

@test "receipt: a signed one, all of it" {
    receipt run.json --receipt-key key.pem --nonce 7f3a --input pin:evals/panel.txt --input in/panel.txt
    check run.json --key key.pub --nonce 7f3a
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "run.json: verified" ]
    [[ ${lines[1]} == "  signature: good, by sha256:"* ]]
    [[ $output == *"model pocket  fsverity-sha256:"*"  in the store"* ]]
    [[ $output == *"input pin:evals/panel.txt  sha256:$(sha256sum <in/panel.txt | cut -c1-64)  in the store"* ]]
    [[ $output == *"not pinned: not looked for"* ]]
    [[ $output == *"model proven at level full: 11264000 of 11264000 bytes proven, 33 of 33 tensors"* ]]
    check run.json --key key.pub --json
    echo "$output" | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
assert (r["signature"], r["word"], r["model"]["present"], r["ok"]) == ("good", "verified", True, True)'
}

@test "receipt: the program is what the kernel runs, the arguments are as given" {
    receipt run.json --threads 2 --rank 0/1
    [ "$(of run.json 'p["program"]["executable"]["sha256"]')" = "$(sha256sum "$(program)" | cut -c1-64)" ]
    id=$(readelf -n "$(program)" | sed -n 's/.*Build ID: //p')
    [ "$(of run.json 'p["program"]["executable"]["build_id"]')" = "$id" ]
    [ "$(of run.json '" ".join(p["arguments"])')" = "load -q -d host --receipt run.json --threads 2 --rank 0/1 pocket" ]
    [ "$(of run.json 'p["settings"]')" = "{'rank': '0/1'}" ]
    [ "$(of run.json 'p["started"] < p["ended"] and p["ended"][-1]')" = Z ]
}

@test "receipt: without a signature it is consistent at best" {
    receipt run.json
    check run.json
    [ "$status" -eq 1 ]
    [[ $output == *"FAILED"*"signature: none"*"is not signed"* ]]
    check run.json --allow-unsigned
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "run.json: consistent" ]
    [[ $output != *verified* ]]
    check run.json --allow-unsigned --key key.pub
    [ "$status" -eq 1 ]
    [[ $output == *"a signature was asked for"* ]]
}

@test "receipt: another signer, another word" {
    receipt run.json --receipt-key key.pem
    check run.json --key other.pub
    [ "$status" -eq 1 ]
    [[ $output == *"signature: bad"* ]]
    reject 2 "is signed: give --key" -- ingot verify --receipt run.json --allow-unsigned
    alter run.json 'p["model"]["name"] = "other"' changed.json
    check changed.json --key key.pub
    [ "$status" -eq 1 ]
    [[ $output == *"signature: bad"*"is not over this statement"* ]]
    [[ $output != *"model other"* ]] # what nobody signed is not repeated
}

@test "receipt: what it names must be here" {
    receipt run.json --receipt-key key.pem --input pin:evals/panel.txt
    ingot rm evals
    ingot gc -q --all-ages
    check run.json --key key.pub
    [ "$status" -eq 1 ]
    [[ $output == *"signature: good"*"model pocket"*"in the store"*"NOT THERE"*"input"*"pin:evals/panel.txt is not in the store"* ]]
    ingot pin -q -n later in
    check run.json --key key.pub
    [ "$status" -eq 0 ] # the same files have the same digest
    ingot rm pocket
    ingot gc -q --all-ages
    check run.json --key key.pub
    [ "$status" -eq 1 ]
    [[ $output == *"model"*"is not in the store"* ]]
}

@test "receipt: output and nonce" {
    echo "Paris" >out.txt
    receipt run.json
    sum=$(sha256sum <out.txt | cut -c1-64)
    alter run.json "p['output'] = {'name': 'out.txt', 'sha256': '$sum', 'bytes': 6}; p['nonce'] = 'n1'" made.json
    check made.json --allow-unsigned --output out.txt --nonce n1
    [ "$status" -eq 0 ]
    [[ $output == *"output out.txt  sha256:$sum  equal"* ]]
    echo "London" >out.txt
    check made.json --allow-unsigned --output out.txt --nonce n2
    [ "$status" -eq 1 ]
    [[ $output == *DIFFERENT*"is not what came out"*"nonce"*"is another one"* ]]
    check run.json --allow-unsigned --output out.txt --nonce n1
    [ "$status" -eq 1 ]
    [[ $output == *"nothing came out"*"there is none"* ]]
}

@test "receipt: a load that failed its check has one that says so" {
    pack=$(echo "$INGOT_STORE"/packs/b377*.ingot)
    chmod u+w "$pack"
    printf '\001' | dd of="$pack" bs=1 seek=300000 conv=notrunc status=none
    run --separate-stderr "$INGOT" load -q -d host --receipt run.json --receipt-key key.pem pocket
    [ "$status" -eq 1 ]
    [ "$(of run.json 'p["verification"]["verdict"]')" = failed ]
    [ "$(of run.json 'p["verification"]["error"]')" = check_failed ]
    check run.json --key key.pub
    [ "$status" -eq 1 ]
    [[ $output == *"signature: good"*"the run itself found the model not to be"* ]]
}

@test "receipt: levels below proof are called what they are" {
    receipt fast.json --verify fast
    receipt off.json --verify off
    check fast.json --allow-unsigned
    [[ $output == *"model intact at level fast: 0 of 11264000 bytes proven, 0 of 33 tensors"* ]]
    check off.json --allow-unsigned
    [[ $output == *"model unchecked at level off: 0 of"* ]]
}

@test "receipt: everything that can fail does so before the load" {
    touch there.json
    reject 3 "there.json: exists already" -- ingot load -d host --receipt there.json pocket
    reject 3 "none.pem" -- ingot load -d host --receipt r --receipt-key none.pem pocket
    reject 3 "nowhere/r: no folder" -- ingot load -d host --receipt nowhere/r pocket
    reject 3 "no input set" -- ingot load -d host --receipt r --input pin:none/x pocket
    reject 3 'no file "x"' -- ingot load -d host --receipt r --input pin:evals/x pocket
    reject 2 "nonce" -- ingot load -d host --receipt r --nonce "" pocket
    run --separate-stderr "$INGOT" load -d host --nonce x pocket
    [ "$status" -eq 2 ]
    run --separate-stderr "$INGOT" load -d host --receipt r none
    [ "$status" -eq 3 ]
    [ ! -e r ]
}

@test "receipt: a pinned input is held to its set" {
    pack=$(ingot show --json evals | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["pack"])')
    chmod u+w "$pack"
    at=$(LC_ALL=C grep -abo capital "$pack" | head -1 | cut -d: -f1)
    printf K | dd of="$pack" bs=1 seek="$at" conv=notrunc status=none
    reject 1 "the tail gives the digest" -- ingot load -d host --receipt r --input pin:evals/panel.txt pocket
}

@test "receipt: keys with a passphrase, and no secret in what is written" {
    openssl pkey -in key.pem -aes256 -passout pass:sesame-secret -out locked.pem
    chmod 600 locked.pem
    INGOT_KEY_PASSPHRASE=sesame-secret receipt env.json --receipt-key locked.pem
    check env.json --key key.pub
    [ "$status" -eq 0 ]
    exec 5< <(echo sesame-secret)
    receipt fd.json --receipt-key locked.pem --passphrase-fd 5
    check fd.json --key key.pub
    [ "$status" -eq 0 ]
    [[ $(of env.json s) != *sesame* ]]
    run --separate-stderr env INGOT_KEY_PASSPHRASE=wrong "$INGOT" load -d host --receipt r --receipt-key locked.pem pocket
    [ "$status" -eq 3 ]
    [ ! -e r ]
    chmod 644 key.pem
    run --separate-stderr "$INGOT" load -d host --receipt r --receipt-key key.pem pocket
    [ "$status" -eq 0 ]
    [[ $stderr == *"others than its owner can read this key"* ]]
}

@test "receipt: what is no receipt" {
    receipt run.json
    echo '{"_type": "x"}' >a.json
    reject 3 "_type" -- ingot verify --receipt a.json --allow-unsigned
    alter run.json 's["predicateType"] = "urn:other"' b.json
    reject 3 "predicateType" -- ingot verify --receipt b.json --allow-unsigned
    alter run.json 's["more"] = 1' c.json
    reject 3 "more" -- ingot verify --receipt c.json --allow-unsigned
    alter run.json 'p["model"]["digest"] = "fsverity-sha256:12"' d.json
    reject 3 "predicate.model.digest" -- ingot verify --receipt d.json --allow-unsigned
    alter run.json 'p["inputs"] = [{"name": "x"}]' e.json
    reject 3 "predicate.inputs.sha256" -- ingot verify --receipt e.json --allow-unsigned
    alter run.json 'del p["program"]' f.json
    reject 3 "predicate.program" -- ingot verify --receipt f.json --allow-unsigned
    head -c 100 run.json >g.json
    reject 3 "g.json" -- ingot verify --receipt g.json --allow-unsigned
    reject 3 "absent.json" -- ingot verify --receipt absent.json
    run --separate-stderr "$INGOT" verify --receipt run.json pocket
    [ "$status" -eq 2 ]
    run --separate-stderr "$INGOT" verify --output x pocket
    [ "$status" -eq 2 ]
    # A signature over files is no receipt.
    ingot sign -q --key key.pem -o files.sig pocket
    reject 3 "predicateType" -- ingot verify --receipt files.sig --key key.pub
}

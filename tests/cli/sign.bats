#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Signatures: the published vector, each kind of damage with its own words, keys and certificates.

load common

setup_file() {
    build_shim
}

setup() {
    setup_store
    cp -r "$(model phi3-pocket)" m
    chmod -R u+w m
    ingot convert -q -n pocket m >/dev/null
    make_key key P-256
}

# make_key NAME CURVE: NAME.pem and NAME.pub
make_key() {
    openssl genpkey -quiet -algorithm EC -pkeyopt "ec_paramgen_curve:$2" -out "$1.pem"
    chmod 600 "$1.pem"
    openssl pkey -in "$1.pem" -pubout -out "$1.pub"
}

verify() {
    run --separate-stderr "$INGOT" verify --signature "$@" pocket
}

# edit BUNDLE CODE: change a bundle; `b` is the bundle, `s` its statement
edit() {
    "$PYTHON" - "$1" "$2" <<'EOF'
import base64, json, sys
b = json.load(open(sys.argv[1]))
s = json.loads(base64.b64decode(b["dsseEnvelope"]["payload"]))
before = json.dumps(s)
exec(sys.argv[2])
if json.dumps(s) != before:
    b["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(s).encode()).decode()
json.dump(b, open("edited.sig", "w"))
EOF
}

# resign CODE: the statement changed and signed anew, as a signer who means it would
resign() {
    "$PYTHON" - out.sig "$1" <<'EOF'
import base64, json, subprocess, sys, hashlib
b = json.load(open(sys.argv[1]))
s = json.loads(base64.b64decode(b["dsseEnvelope"]["payload"]))
del s["predicate"]["ingot"]
exec(sys.argv[2])
root = hashlib.sha256(b"".join(bytes.fromhex(r["digest"]) for r in s["predicate"]["resources"]))
if s["subject"]: s["subject"][0]["digest"]["sha256"] = root.hexdigest()
payload = json.dumps(s).encode()
kind = b"application/vnd.in-toto+json"
pae = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
open("pae", "wb").write(pae)
subprocess.run("openssl dgst -sha256 -sign key.pem -out pae.sig pae".split(), check=True)
b["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()
b["dsseEnvelope"]["signatures"][0]["sig"] = base64.b64encode(open("pae.sig", "rb").read()).decode()
json.dump(b, open("edited.sig", "w"))
EOF
}

@test "sign: the published vector is good, for its folder, with the folder gone" {
    mkdir -p demo/sub
    printf '{}\n' >demo/config.json
    printf '\0\1\2\3' >demo/sub/w.bin
    cat >demo.pub <<'EOF'
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEp4MiEJdFS4xabEQHanggO3elMJ1b
fOJL/xWbrqKT/3+yuNY70cQjGE2DSfPWnE9mMo9oup1cXlvdK/mOQzX8qg==
-----END PUBLIC KEY-----
EOF
    # Its w.bin is no weight file; beside one that nobody signed the rest must match.
    cp m/model-00001-of-*.safetensors demo/model.safetensors
    ingot convert -q -n demo demo
    rm -rf demo
    cp "$srcdir/tests/fixtures_oms.json" demo.sig
    run --separate-stderr "$INGOT" verify --signature demo.sig --key demo.pub --json demo
    [ "$status" -eq 1 ]
    "$PYTHON" - "$output" <<'EOF'
import json, sys
s = json.loads(sys.argv[1])["models"][0]["signature"]
assert s["good"] and s["by"] == "files", s
assert s["key"] == "sha256:d900ca6237305566df984ab8c3faee013e412449df0353542e95784ac365bc67", s
assert s["extra"] and all(x.endswith(".safetensors") for x in s["extra"]), s
assert s["signed"] == 2 and s["matched"] + len(s["missing"]) == 2 and not s["different"], s
EOF
}

@test "sign: what is signed is verified after the source is gone; another key is refused" {
    ingot sign --key key.pem pocket
    ingot sign --key key.pem -o out.sig pocket
    rm -rf m
    verify out.sig --key key.pub
    [ "$status" -eq 0 ]
    [[ $output == *"7 files signed, 7 matched by the digest of the pack"* ]]
    resign 'pass'
    verify edited.sig --key key.pub
    [ "$status" -eq 0 ]
    [[ $output == *"7 files signed, 7 matched, 0 missing, 0 different, 0 extra"* ]]
    make_key other P-256
    verify out.sig --key other.pub
    [ "$status" -eq 1 ]
    [[ $output == *"which is not the one given"* ]]
    verify "$(basename "$INGOT_STORE"/packs/*.sigs/*)" --key key.pub
    [ "$status" -eq 0 ]
}

@test "sign: P-384 and P-521 too; RSA and Ed25519 are refused" {
    for curve in P-384 P-521; do
        make_key k "$curve"
        ingot sign --key k.pem -o "$curve.sig" pocket
        verify "$curve.sig" --key k.pub
        [ "$status" -eq 0 ]
        [[ $output == *"($curve)"* ]]
    done
    for kind in "RSA -pkeyopt rsa_keygen_bits:2048" ED25519 "EC -pkeyopt ec_paramgen_curve:secp256k1"; do
        # shellcheck disable=SC2086
        openssl genpkey -quiet -algorithm $kind -out bad.pem
        run --separate-stderr "$INGOT" sign --key bad.pem -o x.sig pocket
        [ "$status" -eq 3 ]
        [[ $stderr == *"P-256, P-384 or P-521"* ]]
        [ ! -e x.sig ]
    done
}

@test "sign: a byte changed in the pack fails, and the tensor and the file are named" {
    ingot sign --key key.pem -o out.sig pocket
    resign 'pass'
    pack=$(ls "$INGOT_STORE"/packs/*.ingot)
    chmod u+w "$pack"
    printf '\xff' | dd of="$pack" bs=1 seek=200001 conv=notrunc status=none
    verify edited.sig --key key.pub
    [ "$status" -eq 1 ]
    [[ $output == *'tensor "'* ]]
    [[ $output == *"signature"*".safetensors: SHA-256 of the file in the pack is not the signed one"* ]]
}

@test "sign: other tensors, a file more and a file less are refused" {
    ingot sign --key key.pem -o out.sig pocket
    resign 'pass'
    shard=$(ls m/*00001-of*.safetensors)
    printf '\xff' | dd of="$shard" bs=1 seek=200001 conv=notrunc status=none
    rm m/generation_config.json
    echo hello >m/extra.txt
    ingot convert -q -n other m
    run --separate-stderr "$INGOT" verify --signature edited.sig --key key.pub other
    [ "$status" -eq 1 ]
    [[ $output == *"$(basename "$shard"): SHA-256 of the file in the pack is not the signed one"* ]]
    [[ $output == *"extra.txt: held by the pack, but not signed"* ]]
    [[ $output == *"generation_config.json: signed, but not held by the pack"* ]]
    [[ $output == *"7 files signed, 5 matched, 1 missing, 1 different, 1 extra"* ]]
    run --separate-stderr "$INGOT" verify --signature edited.sig --key key.pub --allow-unheld 'gen*' other
    [ "$status" -eq 1 ]
    [[ $output == *"0 missing, 1 different, 1 extra"*"not held, as allowed: generation_config.json"* ]]
}

@test "sign: each kind of damage to a bundle has its own words" {
    ingot sign --key key.pem -o out.sig pocket
    check() { # CODE STATUS WORDS
        edit out.sig "$1"
        verify edited.sig --key key.pub
        [ "$status" -eq "$2" ] || fail "$1: exit $status"
        [[ $output$stderr == *"$3"* ]] || fail "$1: $output$stderr"
    }
    check 's["predicate"]["resources"][0]["digest"] = "0" * 64' 1 "not over this statement"
    check 'b["dsseEnvelope"]["signatures"] *= 2' 3 "2 signatures, expected one"
    check 'b["dsseEnvelope"]["signatures"][0]["sig"] += "!"' 3 "expected base64"
    check 'b["dsseEnvelope"]["payload"] = " " + b["dsseEnvelope"]["payload"]' 3 "expected base64"
    check 'b["dsseEnvelope"]["payloadType"] = "text/plain"' 3 "payloadType"
    check 'b["extra"] = 1' 3 "extra: unknown to this format"
    check 'b["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.2"' 3 "only v0.3"
    check 'b["verificationMaterial"] = {"certificate": {"rawBytes": "AAAA"}, "tlogEntries": [{}]}' 3 keyless
    check 'b["verificationMaterial"] = {}' 3 "exactly one of"
    printf '{"mediaType":"x","mediaType":"x"}' >edited.sig
    verify edited.sig --key key.pub
    [ "$status" -eq 3 ]
    [[ $stderr == *"duplicate key"* ]]
}

@test "sign: what a signer may not say is refused although the signature is good" {
    ingot sign --key key.pem -o out.sig pocket
    check() { # CODE STATUS WORDS
        resign "$1"
        verify edited.sig --key key.pub
        [ "$status" -eq "$2" ] || fail "$1: exit $status"
        [[ $output$stderr == *"$3"* ]] || fail "$1: $output$stderr"
    }
    r='s["predicate"]["resources"]'
    check "${r}.append(${r}[0])" 3 "is listed twice"
    check "${r}[0]['name'] = '/etc/passwd'" 3 "expected a relative path"
    check "${r}[0]['name'] = '../x'" 3 "expected a relative path"
    check "${r}[0]['algorithm'] = 'blake3'" 3 "blake3"
    check 's["predicate"]["serialization"]["method"] = "shards"' 3 "shards"
    check 's["predicateType"] = "https://model_signing/Digests/v0.1"' 3 "Digests/v0.1"
    check 's["subject"] *= 2' 3 "2 subjects, expected one"
    check "${r}.clear()" 3 "nothing is signed"
    check "${r}[0]['digest'] = 'f' * 64" 1 "is not the signed one"
    check "${r}.append({'name': 'gone.bin', 'algorithm': 'sha256', 'digest': 'a' * 64})" 1 "gone.bin: signed, but not held"
    check "s['predicate']['serialization']['ignore_paths'] = ['config.json']; ${r}[:] = [x for x in $r if x['name'] != 'config.json']" 0 "left out by the signature: config.json"
}

@test "sign: certificates: chain, purpose and expiry are judged" {
    make_key ca P-256
    openssl req -x509 -key ca.pem -subj /CN=Root -days 3650 -out ca.crt
    issue() { # NAME DAYS EXTENSION
        openssl req -new -key key.pem -subj "/CN=$1" -out r.csr
        printf 'basicConstraints=CA:FALSE\n%s\n' "$3" >ext
        openssl x509 -req -in r.csr -CA ca.crt -CAkey ca.pem -days "$2" -extfile ext -out "$1.crt" 2>/dev/null
    }
    issue good 30 keyUsage=digitalSignature
    ingot sign --key key.pem --certificate good.crt -o good.sig pocket
    verify good.sig --certificate-chain ca.crt
    [ "$status" -eq 0 ]
    [[ $output == *"by CN=good"*"certificate of CN=Root"*"(now)"* ]]
    verify good.sig --certificate-chain ca.crt --at 2100-01-01
    [ "$status" -eq 1 ]
    [[ $output == *"signature good, certificate expired"*"stated by operator"* ]]
    verify good.sig --certificate-chain ca.crt --at @0
    [ "$status" -eq 1 ]
    [[ $output == *"valid only from"* ]]
    openssl req -x509 -key ca.pem -subj /CN=Stranger -days 9 -out stranger.crt
    verify good.sig --certificate-chain stranger.crt
    [ "$status" -eq 1 ]
    [[ $output == *"leads to no trusted root"* ]]
    verify good.sig --key key.pub
    [ "$status" -eq 3 ]
    [[ $stderr == *"give --certificate-chain"* ]]
    issue wrong 30 extendedKeyUsage=serverAuth
    run --separate-stderr "$INGOT" sign --key key.pem --certificate wrong.crt -o x.sig pocket
    [ "$status" -eq 1 ]
    [[ $stderr == *"may not sign"* ]]
    run --separate-stderr "$INGOT" sign --key ca.pem --certificate ca.crt -o x.sig pocket
    [ "$status" -eq 1 ]
    [[ $stderr == *"is a CA's"* ]]
    run --separate-stderr "$INGOT" sign --key ca.pem --certificate good.crt -o x.sig pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"not the certificate of this key"* ]]
}

@test "sign: a timestamp of a trusted authority proves the time, and no other does" {
    make_key tsa P-256
    openssl req -x509 -key tsa.pem -subj /CN=TSA -days 99 -out tsa.crt \
        -addext keyUsage=digitalSignature \
        -addext extendedKeyUsage=critical,timeStamping -addext basicConstraints=critical,CA:FALSE
    cat >tsa.cnf <<'EOF'
[tsa]
default_tsa = t
[t]
serial = serial
default_policy = 1.2.3.4
digests = sha256
signer_digest = sha256
clock_precision_digits = 0
EOF
    echo 01 >serial
    stamp() { # BUNDLE: as edited.sig, with a timestamp over its signature
        "$PYTHON" -c 'import base64, json, sys
b = json.load(open(sys.argv[1]))
open("raw.sig", "wb").write(base64.b64decode(b["dsseEnvelope"]["signatures"][0]["sig"]))' "$1"
        openssl ts -query -data raw.sig -sha256 -cert -out q.tsq 2>/dev/null
        openssl ts -reply -config tsa.cnf -queryfile q.tsq -signer tsa.crt -inkey tsa.pem -out r.tsr \
            2>/dev/null
        attach "$1"
    }
    attach() {
        edit "$1" 'stamp = base64.b64encode(open("r.tsr", "rb").read()).decode()
b["verificationMaterial"]["timestampVerificationData"] = {"rfc3161Timestamps": [{"signedTimestamp": stamp}]}'
    }
    openssl req -x509 -key key.pem -subj /CN=leaf -days 1 -out leaf.crt \
        -addext keyUsage=digitalSignature -addext basicConstraints=critical,CA:FALSE
    ingot sign --key key.pem --certificate leaf.crt -o a.sig pocket
    stamp a.sig
    verify edited.sig --certificate-chain leaf.crt --tsa-roots tsa.crt
    [ "$status" -eq 0 ]
    [[ $output == *"(proven by a timestamp)"* ]]
    verify edited.sig --certificate-chain leaf.crt --tsa-roots leaf.crt
    [ "$status" -eq 1 ]
    [[ $output == *"no timestamp of a trusted authority"* && $output != *proven* ]]
    verify a.sig --certificate-chain leaf.crt --tsa-roots tsa.crt
    [ "$status" -eq 1 ]
    [[ $output == *"there is none"* ]]
    # One of another signature proves nothing for this one.
    ingot sign --key key.pem --certificate leaf.crt -o b.sig pocket
    attach b.sig
    verify edited.sig --certificate-chain leaf.crt --tsa-roots tsa.crt
    [ "$status" -eq 1 ]
    [[ $output == *"message imprint mismatch"* ]]
}

@test "sign: passphrases come by file descriptor or environment and are never printed" {
    openssl pkey -in key.pem -aes128 -passout pass:hunter2x -out locked.pem
    chmod 600 locked.pem
    run --separate-stderr "$INGOT" sign --key locked.pem --passphrase-fd 7 -o a.sig pocket 7<<<hunter2x
    [ "$status" -eq 0 ]
    [[ $output$stderr != *hunter2x* ]]
    INGOT_KEY_PASSPHRASE=hunter2x ingot sign --key locked.pem -o b.sig pocket
    run --separate-stderr env INGOT_KEY_PASSPHRASE=wrong "$INGOT" sign --key locked.pem -o c.sig pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"the passphrase is wrong"* ]]
    chmod 644 key.pem
    run --separate-stderr "$INGOT" sign --key key.pem -o d.sig pocket
    [[ $stderr == *"others than its owner"* ]]
    run --separate-stderr "$INGOT" sign --key key.pem -o d.sig pocket
    [ "$status" -eq 3 ]
    [[ $stderr == *"d.sig: exists already"* ]]
}

@test "sign: a pack that is not what its name says is not signed" {
    pack=$(ls "$INGOT_STORE"/packs/*.ingot)
    chmod u+w "$pack"
    printf '\xff' | dd of="$pack" bs=1 seek=200001 conv=notrunc status=none
    run --separate-stderr "$INGOT" sign --key key.pem -o out.sig pocket
    [ "$status" -eq 1 ]
    [ ! -e out.sig ]
    [[ $output == *FAILED* ]]
}

@test "sign: options that do not belong together are usage errors" {
    for args in "--key key.pub" "--signature x" "--signature x --key a --certificate-chain b" \
        "--signature x --key a --at 2026-01-01" "--signature x --certificate-chain a --at soon" \
        "--signature x --key a --all"; do
        # shellcheck disable=SC2086
        run --separate-stderr "$INGOT" verify $args pocket
        [ "$status" -eq 2 ] || fail "$args: $status"
    done
}

@test "sign: a byte that changes while the files are hashed is judged as it was read" {
    ingot sign --key key.pem -o out.sig pocket
    resign 'pass'
    pack=$(ls "$INGOT_STORE"/packs/*.ingot)
    chmod u+w "$pack"
    cp "$pack" kept
    passed=0 failed=0
    for nth in 1 2 3 5 8 13 21 34 55 89 144; do
        run --separate-stderr shimmed "pread:packs/:$nth:FLIP" "$INGOT" verify --signature edited.sig --key key.pub pocket
        case $status in
        0) passed=$((passed + 1)) ;;
        1) failed=$((failed + 1)) ;;
        *) flunk "$nth: exit $status $output $stderr" ;;
        esac
        [ "$nth" -gt 1 ] || [ "$status" -eq 1 ] || flunk "flipped before anything was read, and not found"
        [ "$status" -eq 0 ] || [[ $output == *FAILED* ]]
        cp kept "$pack"
    done
    echo "$passed passed, $failed found"
    [ "$failed" -gt 0 ]
    verify edited.sig --key key.pub
    [ "$status" -eq 0 ]
}

@test "sign: without room for leaves the pack is read again" {
    ingot sign --key key.pem -o out.sig pocket
    resign 'pass'
    run --separate-stderr env TMPDIR=/nonexistent "$INGOT" verify --signature edited.sig --key key.pub pocket
    [ "$status" -eq 0 ]
    [[ $output == *"7 files signed, 7 matched, 0 missing"* ]]
}

@test "sign: a passphrase is asked for on the terminal" {
    command -v script >/dev/null || skip "script is not installed"
    openssl pkey -in key.pem -aes256 -passout pass:sesame-secret -out locked.pem
    chmod 600 locked.pem
    (sleep 1 && echo sesame-secret) | script -qec "'$INGOT' sign --key locked.pem -o asked.sig pocket" typescript >/dev/null
    grep -q "Passphrase of the key" typescript
    ! grep -q sesame-secret typescript || flunk "the passphrase was echoed"
    verify asked.sig --key key.pub
    [ "$status" -eq 0 ]
}

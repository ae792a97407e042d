#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Manifests that other tools read.

load common

setup() {
    setup_store
    cp -r "$(model phi3-pocket)" src
    chmod -R u+w src
    mkdir src/sub
    printf 'x' >'src/sub/back\slash'
    printf 'y' >$'src/sub/line\nbreak'
    echo "# read me" >src/README.md
    echo "print()" >src/run.py
    ingot convert -q -n pocket src
}

manifest() {
    ingot manifest --format "$@"
}

@test "manifest: sha256sum -c passes on the export, and on the source" {
    manifest sha256sum pocket >sums
    ingot export -q pocket out
    (cd out && sha256sum --quiet -c ../sums)
    (cd src && sha256sum --quiet -c ../sums)
    [ "$(wc -l <sums)" -eq "$(find out -type f -printf x | wc -c)" ]
    printf z >>out/config.json
    run bash -c "cd out && sha256sum --quiet -c ../sums"
    [ "$status" -eq 1 ]
    # as sha256sum itself would print them
    (cd src && find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum) | LC_ALL=C sort >theirs
    LC_ALL=C sort sums | diff - theirs
}

@test "manifest: of a derived model only with --hash" {
    ingot convert -q -n small --dtype bf16 pocket
    reject 2 "derived" "--hash" -- ingot manifest --format sha256sum small
    manifest sha256sum --hash small >sums
    ingot export -q small out
    (cd out && sha256sum --quiet -c ../sums)
}

@test "manifest: recorded hashes cost no reading of weights, --hash finds what they do not" {
    pack=$(ingot show --json pocket | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["pack"])')
    manifest sha256sum pocket >before
    chmod u+w "$pack"
    printf '\001' | dd of="$pack" bs=1 seek=300000 conv=notrunc status=none
    manifest sha256sum pocket | diff before -
    ! manifest sha256sum --hash pocket | diff -q before - >/dev/null || flunk "--hash did not read"
}

@test "manifest: modelpack, whose layers are the files" {
    manifest modelpack pocket >m.json
    "$PYTHON" - <<'EOF'
import base64, hashlib, json, os
m = json.load(open("m.json"))
assert m["schemaVersion"] == 2 and m["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
assert m["artifactType"] == "application/vnd.cncf.model.manifest.v1+json"
config = base64.b64decode(m["config"]["data"])
assert m["config"]["digest"] == "sha256:" + hashlib.sha256(config).hexdigest() and m["config"]["size"] == len(config)
config = json.loads(config)
assert config["modelfs"] == {"type": "layers", "diffIds": [l["digest"] for l in m["layers"]]}
assert config["config"] == {"format": "safetensors", "precision": "fp16"} and config["descriptor"]["name"] == "pocket"
kinds = {}
for layer in m["layers"]:
    name = layer["annotations"]["org.cncf.model.filepath"]
    data = open(os.path.join("src", name), "rb").read()
    assert layer["digest"] == "sha256:" + hashlib.sha256(data).hexdigest() and layer["size"] == len(data), name
    kinds[name] = layer["mediaType"].split("model.")[1]
assert len(kinds) == sum(len(files) for _, _, files in os.walk("src"))
assert kinds["model-00001-of-00002.safetensors"] == "weight.v1.raw" and kinds["config.json"] == "weight.config.v1.raw"
assert kinds["README.md"] == "doc.v1.raw" and kinds["run.py"] == "code.v1.raw" and kinds["tokenizer.model"] == "weight.config.v1.raw"
EOF
    ingot pin -q -n set --license MIT src/sub
    manifest modelpack set >p.json
    grep -q 'dataset.v1.raw' p.json
}

@test "manifest: slsa, with the files as dependencies" {
    manifest slsa pocket >s.json
    "$PYTHON" - <<'EOF'
import hashlib, json, os
s = json.load(open("s.json"))
assert s["_type"] == "https://in-toto.io/Statement/v1" and s["predicateType"] == "https://slsa.dev/provenance/v1"
d = s["predicate"]["buildDefinition"]
assert d["buildType"] and d["externalParameters"]["derivation"] == {"kind": "identity"}
assert s["predicate"]["runDetails"]["builder"]["id"]
assert len(s["subject"][0]["digest"]["fsverity-sha256"]) == 64
for r in d["resolvedDependencies"]:
    assert r["digest"]["sha256"] == hashlib.sha256(open(os.path.join("src", r["name"]), "rb").read()).hexdigest()
assert len(d["resolvedDependencies"]) == sum(len(files) for _, _, files in os.walk("src"))
EOF
}

@test "manifest: oms is what sign signs" {
    command -v openssl >/dev/null || skip "openssl is not installed"
    openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
    rm src/sub/back* src/sub/line*
    ingot convert -q -f -n pocket src
    ingot sign -q --key key.pem -o model.sig pocket
    manifest oms pocket >oms.json
    "$PYTHON" - <<'EOF'
import base64, json
signed = base64.b64decode(json.load(open("model.sig"))["dsseEnvelope"]["payload"])
assert signed == open("oms.json", "rb").read().rstrip(b"\n")
EOF
}

@test "manifest: usage, a new file, a pack that is not its digest's" {
    run --separate-stderr "$INGOT" manifest pocket
    [ "$status" -eq 2 ]
    [[ $stderr == *"expected sha256sum, oms, modelpack or slsa"* ]]
    run --separate-stderr "$INGOT" manifest --format tar pocket
    [ "$status" -eq 2 ]
    accept -- ingot manifest --format slsa -o new.json pocket
    reject 3 "new.json" -- ingot manifest --format slsa -o new.json pocket
    pack=$(ingot show --json pocket | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["pack"])')
    cp "$pack" alone.ingot
    reject 2 "nothing says what its digest must be" -- ingot manifest --format slsa ./alone.ingot
    chmod u+w "$pack"
    at=$(LC_ALL=C grep -abo '# read me' "$pack" | head -1 | cut -d: -f1)
    printf '@' | dd of="$pack" bs=1 seek="$at" conv=notrunc status=none
    reject 1 "the tail gives the digest" -- ingot manifest --format sha256sum pocket
}

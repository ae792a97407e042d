#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ingot's signatures and those of model_signing (PyPI), each checked by the other.  Prints TAP.

Folders with sub-folders, names beyond ASCII, empty files and a thousand files; three curves; by key
and by certificate; the source is gone when ingot looks.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
INGOT = os.environ["INGOT"]
MODELS = HERE.parent / "models"


def run(*args, ok=True):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if (done.returncode == 0) != ok:
        raise AssertionError(f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def upstream(*args, ok=True):
    return run(sys.executable, "-m", "model_signing", *args, ok=ok)


def openssl(*args):
    return run("openssl", *args)


def make_key(name, curve="P-256"):
    openssl("genpkey", "-quiet", "-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{curve}", "-out",
            f"{name}.pem")
    os.chmod(f"{name}.pem", 0o600)
    openssl("pkey", "-in", f"{name}.pem", "-pubout", "-out", f"{name}.pub")


def make_folder(many=0):
    shutil.rmtree("m", ignore_errors=True)
    shutil.copytree(MODELS / "phi3-pocket", "m")
    for path in Path("m").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    files = {"sub.a": "x", "sub/x": "y", "sub/deep/\u00fcml\u00e4ut \u6a21\u578b.txt": "z", "empty": "", ".gitattributes": "w"}
    files.update({f"many/{i}.txt": str(i) for i in range(many)})
    for name, text in files.items():
        path = Path("m") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def convert(name):
    run(INGOT, "convert", "-q", "-n", name, "m")
    shutil.rmtree("m")


def export(name):
    shutil.rmtree("out", ignore_errors=True)
    shutil.rmtree("out.sigs", ignore_errors=True)
    run(INGOT, "export", name, "out")


def theirs_by_key(curve, many):
    make_key("k", curve)
    make_folder(many)
    upstream("sign", "key", "--private_key", "k.pem", "--signature", "theirs.sig", "m")
    convert("theirs")
    text = run(INGOT, "verify", "--signature", "theirs.sig", "--key", "k.pub", "theirs")
    assert "0 missing, 0 different, 0 extra" in text, text


def ours_by_key(curve, many):
    make_key("k", curve)
    make_folder(many)
    convert("ours")
    run(INGOT, "sign", "--key", "k.pem", "-o", "ours.sig", "ours")
    export("ours")
    upstream("verify", "key", "--public_key", "k.pub", "--signature", "ours.sig", "out")
    (Path("out") / "config.json").write_text("{}")
    upstream("verify", "key", "--public_key", "k.pub", "--signature", "ours.sig", "out", ok=False)
    os.unlink("ours.sig")


def make_chain():
    make_key("root"), make_key("middle"), make_key("leaf")
    openssl("req", "-x509", "-key", "root.pem", "-subj", "/CN=Root", "-days", "99", "-out", "root.crt",
            "-addext", "keyUsage=keyCertSign")
    for name, issuer, extensions in (
            ("middle", "root", "basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n"),
            ("leaf", "middle", "basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\n")):
        Path("ext").write_text(extensions)
        openssl("req", "-new", "-key", f"{name}.pem", "-subj", f"/CN={name}", "-out", "r.csr")
        openssl("x509", "-req", "-in", "r.csr", "-CA", f"{issuer}.crt", "-CAkey", f"{issuer}.pem", "-days", "30",
                "-extfile", "ext", "-out", f"{name}.crt")


def by_certificate():
    make_chain()
    make_folder()
    upstream("sign", "certificate", "--private_key", "leaf.pem", "--signing_certificate", "leaf.crt",
             "--certificate_chain", "middle.crt", "--signature", "theirs.sig", "m")
    convert("certified")
    text = run(INGOT, "verify", "--signature", "theirs.sig", "--certificate-chain", "root.crt", "certified")
    assert "by CN=leaf" in text and "0 extra" in text, text
    run(INGOT, "sign", "--key", "leaf.pem", "--certificate", "leaf.crt", "--chain", "middle.crt", "-o", "ours.sig",
        "certified")
    export("certified")
    upstream("verify", "certificate", "--certificate_chain", "root.crt", "--signature", "ours.sig", "out")
    os.unlink("ours.sig")


def two_on_one_export():
    make_folder()
    make_key("a"), make_key("b")
    upstream("sign", "key", "--private_key", "a.pem", "--signature", "m/model.sig", "--ignore-paths", "m/model.sig", "m")
    convert("both")
    run(INGOT, "sign", "--key", "b.pem", "both")
    export("both")
    kept = sorted(Path("out.sigs").iterdir())
    assert len(kept) == 2, kept
    for path in kept:
        key = "a.pub" if path.name == "model.sig" else "b.pub"
        upstream("verify", "key", "--public_key", key, "--signature", path, "out")
        run(INGOT, "verify", "--signature", path, "--key", key, "both")


def other_tensors_under_a_manifest_that_quotes_the_signed_hashes():
    make_key("k")
    make_folder()
    shard = next(Path("m").glob("*00001*.safetensors"))
    upstream("sign", "key", "--private_key", "k.pem", "--signature", "theirs.sig", "m")
    data = bytearray(shard.read_bytes())
    signed = hashlib.sha256(data).hexdigest()
    data[-1] ^= 1
    shard.write_bytes(data)
    convert("other")
    from forge import forge

    forged = forge(next(Path(os.environ["INGOT_STORE"], "packs").glob("*.ingot")),
                   hashlib.sha256(data).hexdigest(), signed)
    # By its own digest it is all that it says it is: whoever packed it wrote that.
    run(INGOT, "verify", forged)
    text = run(INGOT, "verify", "--signature", "theirs.sig", "--key", "k.pub", forged, ok=False)
    assert f"{shard.name}: SHA-256 of the file in the pack is not the signed one" in text, text
    assert "1 different, 0 extra" in text, text


def main():
    try:
        import model_signing  # noqa: F401
        import numpy  # noqa: F401
        import OpenSSL  # noqa: F401
    except ImportError:
        print("1..0 # SKIP model_signing or numpy is not installed")
        return
    tests = [(f"{f.__name__} {curve}, {many} files more", lambda f=f, c=curve, n=many: f(c, n))
             for f in (theirs_by_key, ours_by_key) for curve, many in (("P-256", 0), ("P-384", 1000), ("P-521", 0))]
    tests += [(f.__name__, f) for f in (by_certificate, two_on_one_export,
                                        other_tensors_under_a_manifest_that_quotes_the_signed_hashes)]
    print(f"1..{len(tests)}")
    for i, (name, test) in enumerate(tests, 1):
        folder = tempfile.mkdtemp()
        os.environ["INGOT_STORE"] = folder + "/store"
        os.chdir(folder)
        try:
            test()
            print(f"ok {i} - signing: {name}", flush=True)
        except Exception as error:  # noqa: BLE001
            print("# " + str(error).replace("\n", "\n# "))
            print(f"not ok {i} - signing: {name}", flush=True)
        os.chdir("/")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
